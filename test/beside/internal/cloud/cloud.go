// Package cloud is an external API with items that have a name, a size and labels: it answers every
// call after a fixed time, its answers contain the item, reads are never behind writes, and deletions
// take effect at once.
package cloud

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strings"
	"sync"
	"time"
)

// Item is an external resource.
type Item struct {
	Name   string            `json:"name"`
	Size   int               `json:"size"`
	Labels map[string]string `json:"labels,omitempty"`
}

var (
	// ErrNotFound is returned for an item that does not exist.
	ErrNotFound = errors.New("the item does not exist")
	// ErrExists is returned for a create with a name that is taken.
	ErrExists = errors.New("the item exists")
)

// API is what operators call.
type API interface {
	Get(ctx context.Context, name string) (Item, error)
	Create(ctx context.Context, item Item) (Item, error)
	Resize(ctx context.Context, name string, size int) (Item, error)
	Delete(ctx context.Context, name string) error
}

// Memory is the API without a network. Its zero value is empty and answers at once.
type Memory struct {
	mu    sync.Mutex
	items map[string]Item
	calls map[string]int
}

var _ API = (*Memory)(nil)

// Get returns an item.
func (m *Memory) Get(_ context.Context, name string) (Item, error) {
	return m.with("get", func() (Item, error) {
		i, ok := m.items[name]
		if !ok {
			return Item{}, ErrNotFound
		}
		return i, nil
	})
}

// Create creates an item.
func (m *Memory) Create(_ context.Context, item Item) (Item, error) {
	return m.with("create", func() (Item, error) {
		if _, ok := m.items[item.Name]; ok {
			return Item{}, ErrExists
		}
		m.items[item.Name] = item
		return item, nil
	})
}

// Resize changes the size of an item.
func (m *Memory) Resize(_ context.Context, name string, size int) (Item, error) {
	return m.with("resize", func() (Item, error) {
		i, ok := m.items[name]
		if !ok {
			return Item{}, ErrNotFound
		}
		i.Size = size
		m.items[name] = i
		return i, nil
	})
}

// Delete deletes an item. An item that does not exist is success.
func (m *Memory) Delete(_ context.Context, name string) error {
	_, err := m.with("delete", func() (Item, error) {
		delete(m.items, name)
		return Item{}, nil
	})
	return err
}

func (m *Memory) with(op string, f func() (Item, error)) (Item, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.items == nil {
		m.items, m.calls = map[string]Item{}, map[string]int{}
	}
	m.calls[op]++
	return f()
}

// Calls returns the number of calls so far by operation: get, create, resize, delete.
func (m *Memory) Calls() map[string]int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.calls)
}

// Len returns the number of items.
func (m *Memory) Len() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.items)
}

// Handler serves m over HTTP, for [Client]. Each call takes at least the given time.
func (m *Memory) Handler(takes time.Duration) http.Handler {
	mux := http.NewServeMux()
	serve := func(pattern string, f func(context.Context, string, Item) (Item, error)) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			var sent Item
			if r.Method == http.MethodPost || r.Method == http.MethodPut {
				if err := json.NewDecoder(r.Body).Decode(&sent); err != nil {
					http.Error(w, err.Error(), http.StatusBadRequest)
					return
				}
			}
			item, err := f(r.Context(), r.PathValue("name"), sent)
			select { // the effect comes first: an answer is never ahead of it
			case <-time.After(takes):
			case <-r.Context().Done():
			}
			answer(w, item, err)
		})
	}
	serve("GET /items/{name}", func(ctx context.Context, name string, _ Item) (Item, error) { return m.Get(ctx, name) })
	serve("POST /items/{name}", func(ctx context.Context, _ string, i Item) (Item, error) { return m.Create(ctx, i) })
	serve("PUT /items/{name}", func(ctx context.Context, name string, i Item) (Item, error) { return m.Resize(ctx, name, i.Size) })
	serve("DELETE /items/{name}", func(ctx context.Context, name string, _ Item) (Item, error) { return Item{}, m.Delete(ctx, name) })
	return mux
}

func answer(w http.ResponseWriter, item Item, err error) {
	switch {
	case errors.Is(err, ErrNotFound):
		http.Error(w, err.Error(), http.StatusNotFound)
	case errors.Is(err, ErrExists):
		http.Error(w, err.Error(), http.StatusConflict)
	default:
		_ = json.NewEncoder(w).Encode(item) // the client is gone if this fails
	}
}

// Client calls an API that a [Memory] serves.
type Client struct {
	url  string
	http *http.Client
}

var _ API = (*Client)(nil)

// NewClient returns a client of the API at url.
func NewClient(url string) *Client {
	return &Client{url: strings.TrimSuffix(url, "/") + "/items/", http: &http.Client{
		Transport: &http.Transport{MaxIdleConnsPerHost: 100},
	}}
}

// Get returns an item.
func (c *Client) Get(ctx context.Context, name string) (Item, error) {
	return c.do(ctx, http.MethodGet, name, nil)
}

// Create creates an item.
func (c *Client) Create(ctx context.Context, item Item) (Item, error) {
	return c.do(ctx, http.MethodPost, item.Name, &item)
}

// Resize changes the size of an item.
func (c *Client) Resize(ctx context.Context, name string, size int) (Item, error) {
	return c.do(ctx, http.MethodPut, name, &Item{Name: name, Size: size})
}

// Delete deletes an item. An item that does not exist is success.
func (c *Client) Delete(ctx context.Context, name string) error {
	_, err := c.do(ctx, http.MethodDelete, name, nil)
	return err
}

func (c *Client) do(ctx context.Context, method, name string, send *Item) (Item, error) {
	var body bytes.Buffer
	if send != nil {
		if err := json.NewEncoder(&body).Encode(send); err != nil {
			return Item{}, err
		}
	}
	req, err := http.NewRequestWithContext(ctx, method, c.url+name, &body)
	if err != nil {
		return Item{}, err
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return Item{}, err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body) // to the end, so that the connection is used again
	switch {
	case err != nil:
		return Item{}, err
	case resp.StatusCode == http.StatusNotFound:
		return Item{}, ErrNotFound
	case resp.StatusCode == http.StatusConflict:
		return Item{}, ErrExists
	case resp.StatusCode != http.StatusOK:
		return Item{}, fmt.Errorf("%s %s: %s: %s", method, name, resp.Status, answer)
	}
	var got Item
	return got, json.Unmarshal(answer, &got)
}
