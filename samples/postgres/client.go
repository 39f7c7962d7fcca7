package postgres

import (
	"context"
	"crypto/hmac"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/trimtab-dev/trimtab/external"
	"github.com/trimtab-dev/trimtab/samples/postgres/api/v1alpha1"
)

// Client talks to one server.
type Client struct {
	pool *pgxpool.Pool
	host string
	port int32
}

// Connect logs in to a server, whose password is loaded.
func Connect(ctx context.Context, s *v1alpha1.Server) (*Client, error) {
	u := url.URL{
		Scheme: "postgres", Path: "/" + s.Spec.Database,
		User:     url.UserPassword(s.Spec.Username, string(s.Spec.Password.Value())),
		RawQuery: url.Values{"sslmode": {s.Spec.SSLMode}, "host": {s.Spec.Host}, "port": {strconv.Itoa(int(s.Spec.Port))}, "application_name": {"postgres-operator"}}.Encode(),
	}
	config, err := pgxpool.ParseConfig(u.String())
	if err != nil { // its text may have the password
		return nil, external.Invalid(errors.New("the address of the server cannot be used"), "spec.host")
	}
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, err
	}
	c := &Client{pool: pool, host: s.Spec.Host, port: s.Spec.Port}
	if err := pool.Ping(ctx); err != nil {
		return nil, errors.Join(explained(err), c.Close())
	}
	return c, nil
}

// Close implements [io.Closer].
func (c *Client) Close() error {
	c.pool.Close()
	return nil
}

func (c *Client) endpoint() string { return net.JoinHostPort(c.host, strconv.Itoa(int(c.port))) }

// exec runs one statement.
func (c *Client) exec(ctx context.Context, statement string) error {
	_, err := c.pool.Exec(ctx, statement)
	return explained(err)
}

// transact runs statements of which either all have an effect or none.
func (c *Client) transact(ctx context.Context, statements ...string) error {
	return explained(pgx.BeginFunc(ctx, c.pool, func(tx pgx.Tx) error {
		for _, s := range statements {
			if _, err := tx.Exec(ctx, s); err != nil {
				return err
			}
		}
		return nil
	}))
}

// query scans one row; found is false if there is none.
func (c *Client) query(ctx context.Context, sql string, args []any, into ...any) (found bool, err error) {
	err = c.pool.QueryRow(ctx, sql, args...).Scan(into...)
	if errors.Is(err, pgx.ErrNoRows) {
		return false, nil
	}
	return err == nil, explained(err)
}

// explained adds to an error of the server what it says in detail: which objects keep a role from being dropped, and what to do.
func explained(err error) error {
	said, is := errors.AsType[*pgconn.PgError](err)
	if !is || said.Detail == "" && said.Hint == "" {
		return err
	}
	return fmt.Errorf("%w: %s", err, strings.TrimSpace(said.Detail+" "+said.Hint))
}

// classes are those of the errors that PostgreSQL names by SQLSTATE, or by the first two characters of it.
var classes = map[string]external.Class{
	"28":    external.ClassDenied,   // invalid authorization
	"42501": external.ClassDenied,   // insufficient privilege
	"42710": external.ClassConflict, // duplicate object
	"42P04": external.ClassConflict, // duplicate database
	"2BP01": external.ClassConflict, // dependent objects still exist
	"55006": external.ClassConflict, // object in use
	"55":    external.ClassConflict,
	"53":    external.ClassTransient, // insufficient resources
	"57":    external.ClassTransient, // operator intervention, such as a shutdown
	"22":    external.ClassInvalid,
	"42":    external.ClassInvalid,
	"0A":    external.ClassInvalid, // not supported
}

// classify says what an error of the server means.
func classify(err error) external.Class {
	said, is := errors.AsType[*pgconn.PgError](err)
	if !is || len(said.Code) != 5 {
		return external.ClassUnknown
	}
	if c, known := classes[said.Code]; known {
		return c
	}
	return classes[said.Code[:2]]
}

// name is a quoted identifier.
func name(s string) string { return pgx.Identifier{s}.Sanitize() }

// text is a quoted string.
func text(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

// checkName refuses what PostgreSQL would cut off.
func checkName(s string) (string, error) {
	if len(s) > 63 {
		return "", fmt.Errorf("%q has %d bytes, and PostgreSQL takes 63; set spec.name", s, len(s))
	}
	return s, nil
}

// markLine begins the last line of a comment that has an ownership mark.
const markLine = "trimtab: "

// marked is a comment with a mark in place of the one that it has.
func marked(comment string, m external.Mark) string {
	data, err := json.Marshal(m)
	if err != nil { // strings can be encoded
		return comment
	}
	return strings.TrimPrefix(unmarked(comment)+"\n"+markLine+string(data), "\n")
}

// unmarked is a comment without its mark.
func unmarked(comment string) string {
	before, last := cutLast(comment)
	if strings.HasPrefix(last, markLine) {
		return before
	}
	return comment
}

// markOf is the mark in a comment; nil if there is none.
func markOf(comment string) external.Mark {
	_, last := cutLast(comment)
	data, has := strings.CutPrefix(last, markLine)
	var m external.Mark
	if !has || json.Unmarshal([]byte(data), &m) != nil {
		return nil
	}
	return m
}

func cutLast(comment string) (before, last string) {
	i := strings.LastIndexByte(comment, '\n')
	return comment[:max(i, 0)], comment[i+1:]
}

// verifier is what PostgreSQL stores of a password, so that the password itself is in no log of the server.
func verifier(password string) (string, error) {
	const rounds = 4096
	salt := make([]byte, 16)
	_, _ = rand.Read(salt) // it never fails
	salted, err := pbkdf2.Key(sha256.New, password, salt, rounds, sha256.Size)
	if err != nil {
		return "", err
	}
	sign := func(key []byte, what string) []byte {
		h := hmac.New(sha256.New, key)
		h.Write([]byte(what))
		return h.Sum(nil)
	}
	stored := sha256.Sum256(sign(salted, "Client Key"))
	encode := base64.StdEncoding.EncodeToString
	return fmt.Sprintf("SCRAM-SHA-256$%d:%s$%s:%s", rounds, encode(salt), encode(stored[:]), encode(sign(salted, "Server Key"))), nil
}
