package scenarios

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strings"
	"syscall"
	"time"

	"github.com/trimtab-dev/trimtab/external"
	"github.com/trimtab-dev/trimtab/internal/thing"
	"github.com/trimtab-dev/trimtab/kubesim/fault"
	"github.com/trimtab-dev/trimtab/test/fault/cloudfake"
)

// items is a driver of items in the cloud, as an author would write it for an API by HTTP. If later
// is set they are made without a mark, and marked by a second call.
type items struct {
	later bool
	env   *fault.Env
}

var _ interface {
	external.Driver[*thing.Thing, *cloudClient, cloudfake.Item]
	external.Updater[*thing.Thing, *cloudClient, cloudfake.Item]
	external.Marker[*thing.Thing, *cloudClient]
	external.Namer[*thing.Thing]
} = items{}

// ExternalName is the object's name.
func (items) ExternalName(t *thing.Thing) (string, error) { return t.Name, nil }

// Observe looks at an item.
func (items) Observe(ctx context.Context, r external.ObserveRequest[*thing.Thing, *cloudClient]) (external.Observation[cloudfake.Item], error) {
	var have cloudfake.Item
	if err := r.Client.call(ctx, http.MethodGet, r.ID, "", cloudfake.Item{}, &have); err != nil {
		return external.Observation[cloudfake.Item]{}, err
	}
	return external.Available(have, external.MarkOf(have.Tags)), nil
}

// Compare compares the size.
func (items) Compare(r external.CompareRequest[*thing.Thing, cloudfake.Item]) external.Changes {
	return external.Field("spec.size", r.Object.Spec.Size, r.Have.Size)
}

// Create makes an item.
func (d items) Create(ctx context.Context, r external.CreateRequest[*thing.Thing, *cloudClient]) (external.CreateResponse[cloudfake.Item], error) {
	d.env.Author("Create")
	defer d.env.Author("after Create")
	want := cloudfake.Item{Size: r.Object.Spec.Size}
	if !d.later {
		want.Tags = r.Mark
	}
	return external.CreateResponse[cloudfake.Item]{}, r.Client.call(ctx, http.MethodPost, r.ID, string(r.Object.UID), want, nil)
}

// Mark sets the tags of an item.
func (d items) Mark(ctx context.Context, r external.MarkRequest[*thing.Thing, *cloudClient]) (external.MarkResponse, error) {
	d.env.Author("Mark")
	defer d.env.Author("after Mark")
	return external.MarkResponse{}, r.Client.call(ctx, http.MethodPut, r.ID+"/tags", "", cloudfake.Item{Tags: r.Mark}, nil)
}

// Update sets the size of an item.
func (items) Update(ctx context.Context, r external.UpdateRequest[*thing.Thing, *cloudClient, cloudfake.Item]) (external.UpdateResponse[cloudfake.Item], error) {
	return external.UpdateResponse[cloudfake.Item]{}, r.Client.call(ctx, http.MethodPut, r.ID, "", cloudfake.Item{Size: r.Object.Spec.Size}, nil)
}

// Delete deletes an item.
func (d items) Delete(ctx context.Context, r external.DeleteRequest[*thing.Thing, *cloudClient]) (external.DeleteResponse, error) {
	d.env.Author("Delete")
	defer d.env.Author("after Delete")
	return external.DeleteResponse{}, r.Client.call(ctx, http.MethodDelete, r.ID, "", cloudfake.Item{}, nil)
}

// cloudClient is the cloud's client.
type cloudClient struct {
	http http.Client
	// account is the first part of each path; empty if there is one account only.
	account string
}

func newCloudClient(env *fault.Env) *cloudClient {
	return &cloudClient{http: http.Client{Transport: absent{fault.HTTP(env, (*cloudfake.Cloud).Handler)}}}
}

// call makes one call. madeFor is for the books of the fake.
func (c *cloudClient) call(ctx context.Context, method, path, madeFor string, in cloudfake.Item, out *cloudfake.Item) error {
	header := http.Header{cloudfake.MadeFor: {madeFor}}
	if out == nil { // a nil pointer in an interface is not nil
		return c.send(ctx, method, path, header, in, nil)
	}
	return c.send(ctx, method, path, header, in, out)
}

// send makes a call with headers.
func (c *cloudClient) send(ctx context.Context, method, path string, header http.Header, in cloudfake.Item, out any) error {
	body, err := json.Marshal(in)
	if err != nil {
		return err
	}
	path = cmp.Or(rooted(path), "/items/"+c.account+path)
	request, err := http.NewRequestWithContext(ctx, method, "http://cloud"+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header = header
	response, err := c.http.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }() // it was read
	if response.StatusCode >= http.StatusMultipleChoices {
		after, _ := time.ParseDuration(response.Header.Get("Retry-After") + "s") // none is 0
		return &cloudError{response.StatusCode, after}
	}
	if out == nil {
		return nil
	}
	return json.NewDecoder(response.Body).Decode(out)
}

// rooted is a path that begins at the root; empty if it begins at the items.
func rooted(path string) string {
	if strings.HasPrefix(path, "/operations/") {
		return path
	}
	return ""
}

// cloudError is the cloud's refusal.
type cloudError struct {
	code  int
	after time.Duration
}

func (e *cloudError) Error() string {
	return fmt.Sprintf("the cloud answers %d %s", e.code, http.StatusText(e.code))
}
func (e *cloudError) StatusCode() int           { return e.code }
func (e *cloudError) RetryAfter() time.Duration { return e.after }

// absent turns the answer that stands for a refused connection into the network's error.
type absent struct{ next http.RoundTripper }

func (a absent) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := a.next.RoundTrip(r)
	if err != nil || response.StatusCode != cloudfake.Gone {
		return response, err
	}
	_ = response.Body.Close() // it is empty
	return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
}
