package operator

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/pflag"
)

// Secret is a flag that says where a secret is, not what it is: "file:PATH" or "env:NAME". The
// secret therefore appears neither in arguments nor in manifests, and a new value takes effect
// without a restart the next time it is read. Bind it with FlagSet.Var. To take the value from a
// Secret in the cluster, use manifests --from-secret. The zero value means that the flag is not
// set.
type Secret struct{ from, name string }

// File is a flag that names a file that may contain secrets: credentials, a key or a certificate.
// Bind it with FlagSet.Var. To mount the file from a Secret in the cluster, use manifests
// --from-secret. Empty means that the flag is not set.
type File string

var (
	_ pflag.Value = (*Secret)(nil)
	_ pflag.Value = (*File)(nil)
)

const (
	fromFile = "file"
	fromEnv  = "env"
)

// Set implements pflag.Value. It does not read the secret yet.
func (s *Secret) Set(where string) error {
	if where == "" {
		*s = Secret{}
		return nil
	}
	from, name, ok := strings.Cut(where, ":")
	if !ok || name == "" || from != fromFile && from != fromEnv {
		// The value may be the secret itself, so the error does not repeat it.
		return errors.New("do not put a secret into arguments; use file:PATH or env:NAME to say where it is")
	}
	*s = Secret{from, name}
	return nil
}

// String returns the value of the flag, which says where the secret is.
func (s *Secret) String() string {
	if s.IsZero() {
		return ""
	}
	return s.from + ":" + s.name
}

// Type implements pflag.Value. Help shows it as the flag's value.
func (*Secret) Type() string { return "file:PATH|env:NAME" }

// IsZero reports whether the flag is not set.
func (s *Secret) IsZero() bool { return *s == Secret{} }

// Read returns the present value of the secret; call it each time the secret is used. One newline
// at the end of a file is removed. An empty secret is an error. If the flag is not set, Read
// returns an empty string and no error.
func (s *Secret) Read() (string, error) {
	switch s.from {
	case fromFile:
		content, err := os.ReadFile(s.name)
		if err != nil {
			return "", err // it names the file
		}
		secret := strings.TrimSuffix(strings.TrimSuffix(string(content), "\n"), "\r")
		if secret == "" {
			return "", fmt.Errorf("the secret in %s is empty", s.name)
		}
		return secret, nil
	case fromEnv:
		secret := os.Getenv(s.name)
		if secret == "" {
			return "", fmt.Errorf("the environment variable %s is not set", s.name)
		}
		return secret, nil
	}
	return "", nil
}

// Set implements pflag.Value.
func (f *File) Set(name string) error {
	*f = File(name)
	return nil
}

// String returns the name of the file.
func (f *File) String() string { return string(*f) }

// Type implements pflag.Value. Help shows it as the flag's value.
func (*File) Type() string { return "file" }

// redacted returns err, an error about a flag, without the value of the flag if it may be a secret.
func redacted(err error) error {
	invalid, is := errors.AsType[*pflag.InvalidValueError](err)
	if !is {
		return err
	}
	if _, is := invalid.GetFlag().Value.(*Secret); !is {
		return err
	}
	return fmt.Errorf("--%s: %w", invalid.GetFlag().Name, invalid.Unwrap())
}
