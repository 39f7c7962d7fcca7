package operator

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/pflag"
)

// Secret is a flag that says where a secret is, and never what it is: "file:PATH" or
// "env:NAME". So neither arguments nor manifests show it, and a new value takes effect
// without a restart wherever the old one is read again. Bind it with FlagSet.Var; from a
// Secret of the cluster it comes by manifests --from-secret. The zero value is not set.
type Secret struct{ from, name string }

// File is a flag that names a file, which may hold secrets: credentials, a key, a
// certificate. Bind it with FlagSet.Var; from a Secret of the cluster it comes by manifests
// --from-secret. Empty means that it is not set.
type File string

var (
	_ pflag.Value = (*Secret)(nil)
	_ pflag.Value = (*File)(nil)
)

const (
	fromFile = "file"
	fromEnv  = "env"
)

// Set takes what the flag says; the secret itself is not looked for yet.
func (s *Secret) Set(where string) error {
	if where == "" {
		*s = Secret{}
		return nil
	}
	from, name, ok := strings.Cut(where, ":")
	if !ok || name == "" || from != fromFile && from != fromEnv {
		// What it says may be the secret itself, so it is not repeated.
		return errors.New("a secret does not belong among the arguments; say file:PATH or env:NAME, where it is")
	}
	*s = Secret{from, name}
	return nil
}

// String is where the secret is, as the flag says it.
func (s *Secret) String() string {
	if s.IsZero() {
		return ""
	}
	return s.from + ":" + s.name
}

// Type is what help shows as the flag's value.
func (*Secret) Type() string { return "file:PATH|env:NAME" }

// IsZero tells whether the flag is not set.
func (s *Secret) IsZero() bool { return *s == Secret{} }

// Read returns the secret as it is now: call it whenever the secret is used. One line end at
// the end of a file is not part of it. An empty one is an error; a flag that is not set has
// none, which is no error.
func (s *Secret) Read() (string, error) {
	switch s.from {
	case fromFile:
		content, err := os.ReadFile(s.name)
		if err != nil {
			return "", err // names the file
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

// Set takes the file's name.
func (f *File) Set(name string) error {
	*f = File(name)
	return nil
}

// String is the file's name.
func (f *File) String() string { return string(*f) }

// Type is what help shows as the flag's value.
func (*File) Type() string { return "file" }

// discreet is a mistake in a flag without what the flag said, if that may be a secret.
func discreet(err error) error {
	invalid, is := errors.AsType[*pflag.InvalidValueError](err)
	if !is {
		return err
	}
	if _, is := invalid.GetFlag().Value.(*Secret); !is {
		return err
	}
	return fmt.Errorf("--%s: %w", invalid.GetFlag().Name, invalid.Unwrap())
}
