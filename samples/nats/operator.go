package nats

import (
	"context"
	"sync"
	"time"

	"github.com/spf13/pflag"

	"github.com/trimtab-dev/trimtab/external"
	"github.com/trimtab-dev/trimtab/operator"
	"github.com/trimtab-dev/trimtab/samples/nats/api/v1alpha1"
	"github.com/trimtab-dev/trimtab/trigger"
)

// Operator returns the options for [operator.Main].
func Operator() operator.Options {
	s := &settings{nats: Config{URL: "nats://nats:4222"}}
	return operator.Options{
		Name:        "nats-operator",
		AddToScheme: v1alpha1.AddToScheme,
		CRDs:        CRDs,
		Flags:       s.flags,
		Controllers: s.controllers,
	}
}

// settings holds the operator's flags and the connection that its controllers share.
type settings struct {
	nats            Config
	password, token operator.Secret
	creds, nkey     operator.File
	ca, cert, key   operator.File
	drift           time.Duration

	back trigger.Waker // woken when NATS is back

	mu     sync.Mutex
	client *Client
}

func (s *settings) flags(f *pflag.FlagSet) {
	f.StringVar(&s.nats.URL, "nats-url", s.nats.URL, "address of NATS, or several separated by commas")
	f.StringVar(&s.nats.User, "nats-user", "", "name of the operator's user, for --nats-password")
	f.Var(&s.password, "nats-password", "location of the password of --nats-user")
	f.Var(&s.token, "nats-token", "location of the token, for servers that use a token instead of a user")
	f.Var(&s.creds, "nats-creds", "file with the credentials (JWT and seed) of the operator's user")
	f.Var(&s.nkey, "nats-nkey", "file with the seed of the NKey of the operator's user")
	f.Var(&s.ca, "nats-tls-ca", "file with the certificate authorities for the server's certificate")
	f.Var(&s.cert, "nats-tls-cert", "file with the operator's client certificate")
	f.Var(&s.key, "nats-tls-key", "file with the key of --nats-tls-cert")
	f.BoolVar(&s.nats.TLSFirst, "nats-tls-first", false, "do the TLS handshake first, for servers with handshake_first")
	f.StringVar(&s.nats.Domain, "nats-domain", "", "JetStream domain (default: the server's own)")
	f.StringVar(&s.nats.Name, "nats-name", "", "name that identifies the NATS server and account; what was created under another name is not changed (default: the addresses and the domain)")
	f.DurationVar(&s.drift, "drift-interval", 0, "how often NATS is compared with the specs; 0 means 10m")
}

// config returns the configuration from the flags.
func (s *settings) config() Config {
	c := s.nats
	c.Back = func() { s.back.All(wakeWithin) }
	c.Creds, c.NKey = s.creds.String(), s.nkey.String()
	c.CA, c.Cert, c.Key = s.ca.String(), s.cert.String(), s.key.String()
	if !s.password.IsZero() {
		c.Password = s.password.Read
	}
	if !s.token.IsZero() {
		c.Token = s.token.Read
	}
	return c
}

func (s *settings) controllers() ([]operator.Controller, error) {
	return Controllers(s.connect, s.drift, &s.back), nil
}

// Controllers returns the controllers of the operator, one for each kind. Each of them calls connect until
// it returns a client. drift is how often NATS is compared with the specs; 0 means 10 minutes. back wakes
// all objects when NATS is back; it may be nil.
func Controllers(connect func(context.Context) (*Client, error), drift time.Duration, back *trigger.Waker) []operator.Controller {
	return []operator.Controller{
		external.New(Streams{}, options[*v1alpha1.Stream](connect, drift, back)),
		external.New(Consumers{}, options[*v1alpha1.Consumer](connect, drift, back)),
		external.New(KeyValues{}, options[*v1alpha1.KeyValue](connect, drift, back)),
	}
}

// createGrace is longer than a NATS cluster needs until all servers show what one has accepted.
const createGrace = time.Second

func options[T external.Object](connect func(context.Context) (*Client, error), drift time.Duration, back *trigger.Waker) external.Options[T, *Client] {
	o := external.Options[T, *Client]{
		Connect: connect, DriftInterval: drift, CreateGrace: createGrace, UniqueNames: true,
		Endpoint: func(_ context.Context, c *Client) (string, error) { return c.name, nil },
	}
	if back != nil {
		o.Loop.Sources = []trigger.Source[T]{trigger.External[T]{Waker: back}}
	}
	return o
}

// wakeWithin is the time over which the passes of all objects are spread when NATS is back.
const wakeWithin = 5 * time.Second

// connect connects once for all kinds.
func (s *settings) connect(context.Context) (*Client, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.client != nil {
		return s.client, nil
	}
	c, err := Connect(s.config())
	if err != nil {
		return nil, err
	}
	s.client = c
	return c, nil
}
