package plain

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
)

// Instance is a database as the vendor knows it.
type Instance struct {
	// ID is the vendor's, given at creation.
	ID string `json:"id,omitempty"`
	// Owner is a tag that the vendor keeps for us: the UID of the Database. There is never
	// more than one instance with it.
	Owner string `json:"owner"`
	// Name is for people.
	Name string `json:"name"`
	// Engine and Size are as in DatabaseSpec.
	Engine string `json:"engine"`
	Size   int64  `json:"size"`
	// Host and Password are for those who use the database.
	Host     string `json:"host,omitempty"`
	Password string `json:"password,omitempty"`
}

// Vendor is what we need of the vendor's API.
type Vendor interface {
	// Find returns the instance with the given tag, nil if there is none.
	Find(ctx context.Context, owner string) (*Instance, error)
	// Create makes an instance. It fails with ErrTaken if there is one with that tag.
	Create(ctx context.Context, want Instance) (*Instance, error)
	// Resize changes an instance's size.
	Resize(ctx context.Context, id string, size int64) error
	// Delete removes an instance; one that is gone already is fine.
	Delete(ctx context.Context, id string) error
}

// ErrTaken means that there is an instance with that tag.
var ErrTaken = errors.New("the owner has an instance already")

// HTTPVendor is the vendor's API over HTTP.
type HTTPVendor struct {
	// URL is where it is: "https://api.vendor.example.com".
	URL string
	// Client makes the requests. Required.
	Client *http.Client
}

var _ Vendor = (*HTTPVendor)(nil)

// Find implements Vendor.
func (v *HTTPVendor) Find(ctx context.Context, owner string) (*Instance, error) {
	var found []Instance
	if err := v.do(ctx, http.MethodGet, "/instances?owner="+url.QueryEscape(owner), nil, &found); err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, nil
	}
	return &found[0], nil
}

// Create implements Vendor.
func (v *HTTPVendor) Create(ctx context.Context, want Instance) (*Instance, error) {
	var made Instance
	return &made, v.do(ctx, http.MethodPost, "/instances", want, &made)
}

// Resize implements Vendor.
func (v *HTTPVendor) Resize(ctx context.Context, id string, size int64) error {
	return v.do(ctx, http.MethodPatch, "/instances/"+url.PathEscape(id), Instance{Size: size}, nil)
}

// Delete implements Vendor.
func (v *HTTPVendor) Delete(ctx context.Context, id string) error {
	return v.do(ctx, http.MethodDelete, "/instances/"+url.PathEscape(id), nil, nil)
}

// do makes one request with a JSON body and reads a JSON answer, if wanted.
func (v *HTTPVendor) do(ctx context.Context, method, path string, body, answer any) error {
	sent, err := json.Marshal(body)
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, method, v.URL+path, bytes.NewReader(sent))
	if err != nil {
		return err
	}
	resp, err := v.Client.Do(r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	switch {
	case resp.StatusCode == http.StatusConflict:
		return ErrTaken
	case resp.StatusCode == http.StatusNotFound && method == http.MethodDelete:
		return nil
	case resp.StatusCode >= http.StatusMultipleChoices:
		return fmt.Errorf("%s %s: the vendor answers %s", method, path, resp.Status)
	case answer == nil:
		return nil
	}
	return json.NewDecoder(resp.Body).Decode(answer)
}
