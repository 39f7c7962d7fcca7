package nats_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/nkeys"

	"github.com/trimtab-dev/trimtab/external"
	"github.com/trimtab-dev/trimtab/internal/natsserver"
	"github.com/trimtab-dev/trimtab/operator"
	"github.com/trimtab-dev/trimtab/samples/nats"
	"github.com/trimtab-dev/trimtab/samples/nats/api/v1alpha1"
)

// users of a server: the operator, with a password.
func users(password string) []natsserver.User {
	return []natsserver.User{{Name: "operator", Password: password}}
}

// A user that is unknown or changed for a while, at the start and later, is nothing that takes
// a restart of the operator.
func TestCredentialsThatAreWrongForAWhile(t *testing.T) {
	s, _ := startNATS(t, natsserver.Options{Users: users("not yet")})
	at := strings.TrimPrefix(s.URL(), "nats://")
	c := connect(t, "nats://operator:hunter2@"+at)
	refused := "NATS at nats://" + at + " refuses the operator's credentials: Authorization Violation; " +
		"correct them, or the operator's user in NATS"

	for _, when := range []string{"at the start", "on a living connection"} {
		wantRefusedForLong(t, s, c, when, refused)
		if err := s.SetUsers(users("hunter2")); err != nil {
			t.Fatal(err)
		}
		eventually(t.Context(), t, when+": the right password lets the operator in", func() bool { return look(t, c) == nil })
		if err := s.SetUsers(users("changed")); err != nil {
			t.Fatal(err)
		}
	}
}

// Each way of saying who one is, and that a new secret needs no restart: NATS takes the new
// one, the operator's file has the old one for a while.
func TestCredentialsFromFilesAreReadAgain(t *testing.T) {
	oldSeed, oldKey := nkey(t)
	newSeed, newKey := nkey(t)
	cases := map[string]struct {
		why          string
		before, then []natsserver.User
		old, new     string
		config       func(file string) nats.Config
	}{
		"password": {
			why: "as a Secret brings it", before: users("one"), then: users("two"), old: "one", new: "two",
			config: func(file string) nats.Config { return nats.Config{User: "operator", Password: read(file)} },
		},
		"nkey": {
			why:    "the library asks for the public key only once",
			before: []natsserver.User{{NKey: oldKey}}, then: []natsserver.User{{NKey: newKey}}, old: oldSeed, new: newSeed,
			config: func(file string) nats.Config { return nats.Config{NKey: file} },
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s, _ := startNATS(t, natsserver.Options{Users: tc.before})
			file := filepath.Join(t.TempDir(), "secret")
			write(t, file, tc.old)
			cfg := tc.config(file)
			cfg.URL = s.URL()
			c, err := nats.Connect(cfg)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(c.Close)
			eventually(t.Context(), t, tc.why+": the operator is let in", func() bool { return look(t, c) == nil })
			if err := s.SetUsers(tc.then); err != nil {
				t.Fatal(err)
			}
			turned := s.Refused()
			eventually(t.Context(), t, "NATS turns the old secret away twice", func() bool { return s.Refused() >= turned+2 })
			write(t, file, tc.new)
			eventually(t.Context(), t, tc.why+": the new secret is used", func() bool { return look(t, c) == nil })
		})
	}
}

func TestTrouble(t *testing.T) {
	cases := map[string]struct {
		why  string
		cfg  nats.Config
		want string
	}{
		"nobody there": {
			why: "it may be down", cfg: nats.Config{URL: "nats://127.0.0.1:1"},
			want: "NATS at nats://127.0.0.1:1 does not answer: connection refused; start it, or correct the operator's --nats-url",
		},
		"no such host": {
			why: "a slip of the pen", cfg: nats.Config{URL: "nats://nats.invalid:4222"},
			want: "NATS at nats://nats.invalid:4222 does not answer: ",
		},
		"no password yet": {
			why: "the Secret may come yet", cfg: nats.Config{User: "operator", Password: read("/no/such/file")},
			want: "cannot be reached, because the operator's credentials cannot be read: open /no/such/file: no such file or directory",
		},
		"no such domain": {
			why: "a slip of the pen", cfg: nats.Config{Domain: "hub", User: "operator", Password: func() (string, error) { return "hunter2", nil }},
			want: `answers, but JetStream does not in domain "hub": correct the operator's --nats-domain, or enable JetStream there for the operator's account`,
		},
		"TLS that the server has not": {
			why: "a flag too many", cfg: nats.Config{URL: "tls://"},
			want: "cannot be reached by TLS: ",
		},
	}
	s, _ := startNATS(t, natsserver.Options{Users: users("hunter2")})
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			switch tc.cfg.URL {
			case "":
				tc.cfg.URL = s.URL()
			case "tls://":
				tc.cfg.URL += strings.TrimPrefix(s.URL(), "nats://")
			}
			c, err := nats.Connect(tc.cfg)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(c.Close)
			said := ""
			eventually(t.Context(), t, tc.why+": "+tc.want, func() bool {
				if err := look(t, c); err != nil {
					said = err.Error()
				}
				return strings.Contains(said, tc.want)
			})
		})
	}
}

// nkey makes a user known by a key.
func nkey(t *testing.T) (seed, public string) {
	t.Helper()
	pair, err := nkeys.CreateUser()
	if err != nil {
		t.Fatal(err)
	}
	public, err = pair.PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	b, err := pair.Seed()
	if err != nil {
		t.Fatal(err)
	}
	return string(b), public
}

// read is a secret in a file, as a flag names it.
func read(file string) func() (string, error) {
	var s operator.Secret
	if err := s.Set("file:" + file); err != nil {
		panic(err)
	}
	return s.Read
}

func write(t *testing.T, file, content string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// wantRefusedForLong waits until NATS has turned the operator away so often that a client
// which gives up has done so.
func wantRefusedForLong(t *testing.T, s *natsserver.Server, c *nats.Client, when, want string) {
	t.Helper()
	turned := s.Refused()
	eventually(t.Context(), t, when+": NATS turns the operator away three times", func() bool { return s.Refused() >= turned+3 })
	eventually(t.Context(), t, when+": the message says so", func() bool {
		err := look(t, c)
		if e, ok := errors.AsType[*external.Error](err); ok && e.Class != external.ClassTransient {
			t.Errorf("%s: class %s, want it transient: credentials may be mended on either side", when, e.Class)
		}
		return err != nil && err.Error() == want
	})
}

// look asks for a stream, whether it is there or not.
func look(t *testing.T, c *nats.Client) error {
	t.Helper()
	_, err := streams(c).tryObserve(t, stream("any", v1alpha1.StreamSpec{}))
	return err
}
