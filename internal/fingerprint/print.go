package fingerprint

import (
	"encoding/base64"
	"fmt"
)

// Print identifies what one manager owns of an object.
type Print struct {
	// Owned identifies the owned fields. It is zero if the object has no managedFields at all.
	Owned Hash
	// Values identifies the live values at these fields. It is zero if they are not known. Of a Secret
	// it keeps 16 bits.
	Values Hash
}

// Hash identifies content.
type Hash [8]byte

// hashChars is the length of a hash as text.
const hashChars = 11

// String returns the print as 22 characters of the URL-safe base64 alphabet.
func (p Print) String() string {
	return p.Owned.String() + p.Values.String()
}

// String returns the hash as 11 characters of the URL-safe base64 alphabet.
func (h Hash) String() string {
	return base64.RawURLEncoding.EncodeToString(h[:])
}

// Parse reads what [Print.String] wrote.
func Parse(text string) (Print, error) {
	if len(text) != 2*hashChars {
		return Print{}, fmt.Errorf("fingerprint %q has %d characters, not %d", text, len(text), 2*hashChars)
	}
	var p Print
	strict := base64.RawURLEncoding.Strict()
	if _, err := strict.Decode(p.Owned[:], []byte(text[:hashChars])); err != nil {
		return Print{}, fmt.Errorf("fingerprint %q: %w", text, err)
	}
	if _, err := strict.Decode(p.Values[:], []byte(text[hashChars:])); err != nil {
		return Print{}, fmt.Errorf("fingerprint %q: %w", text, err)
	}
	return p, nil
}
