// Package inspect asks a running operator what it has done and how it is: the records of its flight recorder, its metrics, and what
// it says about itself. They are on the operator's debug address, which is on loopback of the machine or the pod that it runs on.
package inspect

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/trimtab-dev/trimtab/trace"
)

// Operator is a running operator. Its zero value is one that is not known.
type Operator struct {
	// URL is its debug address, such as http://127.0.0.1:8082.
	URL string
	// At returns that address where it changes because one process replaces another. It is empty while there is none. Nil: the
	// address is always URL.
	At func() string
}

// Known reports whether it is known where the operator is asked, now or later.
func (o Operator) Known() bool { return o.URL != "" || o.At != nil }

// ErrAway is the error for a question to an operator that does not run now.
var ErrAway = errors.New("no operator runs at the moment")

// Trace returns the records that q selects, oldest first.
func (o Operator) Trace(ctx context.Context, q trace.Query) ([]trace.Record, error) {
	var records []trace.Record
	err := o.get(ctx, "/debug/trace?"+valuesOf(q).Encode(), func(body io.Reader) error {
		for rec, err := range trace.Decode(body) {
			if err != nil {
				return err
			}
			records = append(records, rec)
		}
		return nil
	})
	return records, err
}

// answered is how long an operator may take to answer.
const answered = 10 * time.Second

// get reads what the operator serves at a path.
func (o Operator) get(ctx context.Context, path string, read func(io.Reader) error) error {
	if o.At != nil {
		o.URL = o.At()
	}
	if o.URL == "" {
		return ErrAway
	}
	ctx, cancel := context.WithTimeout(ctx, answered)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, o.URL+path, nil)
	if err != nil {
		return fmt.Errorf("ask the operator: %w", err)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return fmt.Errorf("ask the operator: %w", err)
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusOK {
		said, _ := io.ReadAll(io.LimitReader(answer.Body, 1<<10))
		if answer.StatusCode == http.StatusNotFound {
			return fmt.Errorf("the operator at %s is of an older version of trimtab, which does not serve %s; build it with the version of this program, or use that one's", o.URL, r.URL.Path)
		}
		return fmt.Errorf("ask the operator at %s: %s: %s", o.URL, answer.Status, strings.TrimSpace(string(said)))
	}
	if err := read(answer.Body); err != nil {
		return fmt.Errorf("read what the operator at %s says: %w", o.URL, err)
	}
	return nil
}

// valuesOf is q in the form that the operator reads.
func valuesOf(q trace.Query) url.Values {
	v := url.Values{}
	for name, value := range map[string]string{"controller": q.Controller, "kind": q.Kind, "namespace": q.Namespace, "name": q.Name, "uid": q.UID} {
		if value != "" {
			v.Set(name, value)
		}
	}
	if !q.Since.IsZero() {
		v.Set("since", time.Since(q.Since).String())
	}
	if q.Last > 0 {
		v.Set("last", strconv.Itoa(q.Last))
	}
	return v
}
