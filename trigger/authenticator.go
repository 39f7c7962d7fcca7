package trigger

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// Authenticator refuses a request of an [Inbound] source by an error. The sender does not see the error; the log does,
// at level debug. body reads the body of the request, once; a request that is refused without that costs the least. If
// body returns an error, the request is refused for that.
type Authenticator func(r *http.Request, body func() ([]byte, error)) error

// Anyone accepts every request: whoever reaches the address can wake objects and choose what their passes read.
func Anyone() Authenticator {
	return func(*http.Request, func() ([]byte, error)) error { return nil }
}

// BearerToken accepts requests with the header "Authorization: Bearer" and the token that secret returns, for example
// operator.Secret's method Read. secret is called for each request. An empty token accepts none. It does not read the
// bodies of others.
func BearerToken(secret func() (string, error)) Authenticator {
	return func(r *http.Request, _ func() ([]byte, error)) error {
		want, err := nonEmpty(secret)
		if err != nil {
			return err
		}
		got, is := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		if !is || subtle.ConstantTimeCompare([]byte(got), []byte(want)) != 1 {
			return errors.New("no bearer token, or another one")
		}
		return nil
	}
}

// Signature accepts requests whose header contains the HMAC-SHA256 of the body, in hexadecimal digits and perhaps after
// "sha256=", as the webhooks of GitHub, Gitea and others do. secret returns the key that was shared with the sender. It
// is called for each request. An empty key accepts none. A request that somebody recorded is accepted again.
func Signature(header string, secret func() (string, error)) Authenticator {
	return func(r *http.Request, body func() ([]byte, error)) error {
		key, err := nonEmpty(secret)
		if err != nil {
			return err
		}
		got, err := hex.DecodeString(strings.TrimPrefix(r.Header.Get(header), "sha256="))
		if err != nil || len(got) != sha256.Size {
			return fmt.Errorf("%s contains no signature in hexadecimal digits", header)
		}
		signed, err := body()
		if err != nil {
			return err
		}
		mac := hmac.New(sha256.New, []byte(key))
		_, _ = mac.Write(signed) // a hash never fails
		if !hmac.Equal(got, mac.Sum(nil)) {
			return fmt.Errorf("the signature in %s is that of another key or body", header)
		}
		return nil
	}
}

func nonEmpty(secret func() (string, error)) (string, error) {
	value, err := secret()
	if err == nil && value == "" {
		err = errors.New("the secret is empty")
	}
	return value, err
}
