package nats

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	natsgo "github.com/nats-io/nats.go"
)

// Config says how to connect to NATS. Credentials are read again for each connection, so that new ones
// take effect without a restart.
type Config struct {
	// URL is the address of the server, or several addresses separated by commas.
	URL string
	// User is the name of a user with a password. Empty means none.
	User string
	// Password returns the password of User, and Token the token of a server without users. Nil
	// means none.
	Password, Token func() (string, error)
	// Creds is a file with the user's JWT and seed. NKey is a file with the seed of an NKey. Empty
	// means none.
	Creds, NKey string
	// CA, Cert and Key are files for TLS. Empty means the certificate authorities of the system,
	// and no client certificate.
	CA, Cert, Key string
	// TLSFirst is for servers that expect the TLS handshake first.
	TLSFirst bool
	// Domain is the JetStream domain. Empty means the server's own.
	Domain string
	// Name identifies the NATS server and account. What was created under another name is neither
	// changed nor considered missing. Empty means the addresses and Domain.
	Name string
	// Back is called when NATS becomes reachable after it was not. Resources may have been lost
	// meanwhile. It may be nil.
	Back func()
}

// Connect returns a client at once, even if NATS does not answer. The client keeps trying to connect
// until it is closed; until it succeeds, requests return an error that says what is wrong. Connect
// returns an error only if cfg is invalid.
func Connect(cfg Config) (*Client, error) {
	c := NewClient(redacted(cfg.URL), nil)
	if cfg.Domain != "" {
		c.prefix = "$JS." + cfg.Domain + ".API."
	}
	c.name = cfg.name()
	l := &link{cfg: cfg, client: c}
	if err := l.open(); err != nil {
		return nil, fmt.Errorf("connect to NATS at %s: %w", c.where, err)
	}
	c.send, c.close = l.request, l.close
	return c, nil
}

// name returns Name, or else a name that depends neither on the order of the servers nor on the protocol
// by which they are reached.
func (c Config) name() string {
	if c.Name != "" {
		return c.Name
	}
	servers := strings.Split(redacted(c.URL), ",")
	for i, s := range servers {
		if _, host, ok := strings.Cut(s, "://"); ok {
			servers[i] = host
		}
	}
	slices.Sort(servers)
	return strings.TrimSuffix(strings.Join(slices.Compact(servers), ",")+" domain "+c.Domain, " domain ")
}

// link is the connection of a client.
type link struct {
	cfg     Config
	client  *Client
	trouble troubles
	away    atomic.Bool // set while there is no connection

	mu     sync.Mutex
	conn   *natsgo.Conn
	closed bool
}

// retryPause is the delay between two attempts to connect.
const retryPause = time.Second

// open makes the connection. From then on, the library reconnects if necessary.
func (l *link) open() error {
	options, err := l.options()
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil
	}
	l.conn, err = natsgo.Connect(l.cfg.URL, options...)
	if err == nil && !l.conn.IsConnected() {
		l.away.Store(true)
	}
	return err
}

// up records that there is a connection.
func (l *link) up(*natsgo.Conn) {
	l.trouble.clear()
	l.client.up.Store(time.Now().UnixNano())
	if l.away.Swap(false) && l.cfg.Back != nil {
		l.cfg.Back()
	}
}

// down records that there is no connection any more.
func (l *link) down(*natsgo.Conn, error) {
	l.away.Store(true)
	l.client.end(errLost, func(request) bool { return true })
}

// options returns the options of the library: how to reconnect, and which events to report.
func (l *link) options() ([]natsgo.Option, error) {
	c := l.client
	options := []natsgo.Option{
		natsgo.Name("nats-operator"),
		natsgo.RetryOnFailedConnect(true),
		natsgo.MaxReconnects(-1),
		natsgo.ReconnectWait(retryPause),
		// Users and passwords do not change on both sides at the same moment.
		natsgo.IgnoreAuthErrorAbort(),
		// Requests are not buffered until NATS is back, because a request that was given up must
		// not take effect later.
		natsgo.ReconnectBufSize(-1),
		natsgo.ErrorHandler(func(_ *natsgo.Conn, _ *natsgo.Subscription, err error) {
			c.deny(err)
			l.trouble.note(err)
		}),
		natsgo.ReconnectErrHandler(func(_ *natsgo.Conn, err error) { l.trouble.note(err) }),
		natsgo.DisconnectErrHandler(l.down),
		natsgo.ConnectHandler(l.up),
		natsgo.ReconnectHandler(l.up),
		// After some errors of a server, the library gives up the connection.
		natsgo.ClosedHandler(func(*natsgo.Conn) { l.reopen() }),
	}
	credentials, err := l.credentials()
	return append(options, credentials...), err
}

// credentials returns the options for authentication.
func (l *link) credentials() ([]natsgo.Option, error) {
	cfg := l.cfg
	var options []natsgo.Option
	if cfg.User != "" || cfg.Password != nil {
		options = append(options, natsgo.UserInfoHandler(func() (string, string) { return cfg.User, l.secret(cfg.Password) }))
	}
	if cfg.Token != nil {
		options = append(options, natsgo.TokenHandler(func() string { return l.secret(cfg.Token) }))
	}
	if cfg.Creds != "" {
		options = append(options, natsgo.UserCredentials(cfg.Creds))
	}
	if cfg.NKey != "" {
		nkey, err := l.nkey()
		if err != nil {
			return nil, err
		}
		options = append(options, nkey)
	}
	if cfg.CA != "" {
		options = append(options, natsgo.RootCAs(cfg.CA))
	}
	if cfg.Cert != "" || cfg.Key != "" {
		options = append(options, natsgo.ClientCert(cfg.Cert, cfg.Key))
	}
	if cfg.TLSFirst {
		options = append(options, natsgo.Secure(), natsgo.TLSHandshakeFirst())
	}
	return options, nil
}

// secret reads a secret for the library, which accepts no error: NATS refuses an empty secret.
func (l *link) secret(read func() (string, error)) string {
	if read == nil {
		return ""
	}
	s, err := read()
	if err != nil {
		l.trouble.note(unreadable{err})
	}
	return s
}

// nkey returns the options for an NKey. The library reads the public key only once, so a changed seed
// needs a new connection.
func (l *link) nkey() (natsgo.Option, error) {
	public, _, err := readNKey(l.cfg.NKey)
	if err != nil {
		return nil, err
	}
	return natsgo.Nkey(public, func(nonce []byte) ([]byte, error) {
		now, sign, err := readNKey(l.cfg.NKey)
		if err != nil {
			return nil, unreadable{err}
		}
		if now != public {
			go l.renew() // in a goroutine, because the library holds its lock
			return nil, errors.New("the NKey has changed")
		}
		return sign(nonce)
	}), nil
}

func readNKey(file string) (public string, sign natsgo.SignatureHandler, err error) {
	option, err := natsgo.NkeyOptionFromSeed(file)
	if err != nil {
		return "", nil, fmt.Errorf("read the seed of an NKey: %w", err)
	}
	var o natsgo.Options
	err = option(&o)
	return o.Nkey, o.SignatureCB, err
}

// renew closes the connection, so that a new one replaces it.
func (l *link) renew() {
	l.mu.Lock()
	conn := l.conn
	l.mu.Unlock()
	conn.Close()
}

// reopen reconnects after the library has given up, until the client is closed.
func (l *link) reopen() {
	l.mu.Lock()
	closed := l.closed
	l.mu.Unlock()
	if closed {
		return
	}
	l.away.Store(true)
	time.AfterFunc(retryPause, func() {
		if err := l.open(); err != nil {
			l.trouble.note(unreadable{err})
			l.reopen()
		}
	})
}

func (l *link) close() {
	l.mu.Lock()
	l.closed = true
	conn := l.conn
	l.mu.Unlock()
	conn.Close()
}

// request sends one request if there is a connection.
func (l *link) request(ctx context.Context, subject string, body []byte) ([]byte, error) {
	l.mu.Lock()
	conn := l.conn
	l.mu.Unlock()
	if !conn.IsConnected() {
		l.trouble.note(conn.LastError())
		return nil, l.trouble.worst()
	}
	m, err := conn.RequestWithContext(ctx, subject, body)
	switch {
	case err == nil:
		return m.Data, nil
	case errors.Is(err, natsgo.ErrReconnectBufExceeded), errors.Is(err, natsgo.ErrConnectionReconnecting):
		return nil, l.trouble.worst()
	}
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	return nil, err
}

// redacted returns an address without user and password.
func redacted(addresses string) string {
	all := strings.Split(addresses, ",")
	for i, a := range all {
		u, err := url.Parse(strings.TrimSpace(a))
		if err != nil || u.Host == "" {
			all[i] = strings.TrimSpace(a[strings.LastIndex(a, "@")+1:])
			continue
		}
		all[i] = u.Scheme + "://" + u.Host
	}
	return strings.Join(all, ",")
}
