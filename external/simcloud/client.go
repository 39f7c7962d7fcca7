package simcloud

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// Client calls a cloud, as the client of an author would. Its errors are classified by package external as those of any
// API by HTTP.
type Client struct {
	// URL is where the cloud is, without a slash at its end.
	URL string
	// Login is that of [Options.Login]; empty if it needs none.
	Login string
	// HTTP is what to call it with. Nil means [http.DefaultClient].
	HTTP *http.Client
}

// Error is an answer that is none of success.
type Error struct {
	Code  int
	Why   string
	After time.Duration
}

// Error implements error.
func (e *Error) Error() string { return fmt.Sprintf("the cloud answers %d: %s", e.Code, e.Why) }

// StatusCode returns the HTTP status.
func (e *Error) StatusCode() int { return e.Code }

// RetryAfter returns how long the cloud asks to wait; zero if it does not.
func (e *Error) RetryAfter() time.Duration { return e.After }

// Changed is the answer to a change.
type Changed struct {
	// Item is the item as it is now; the zero value if Operation is still to be done.
	Item Item
	// Operation is the operation's id; empty if the change is done.
	Operation string
}

// Create creates an item. The token may be empty.
func (c *Client) Create(ctx context.Context, i Item, token string) (Changed, error) {
	return c.change(ctx, http.MethodPost, "/items", token, i)
}

// Update replaces the properties of an item.
func (c *Client) Update(ctx context.Context, id string, properties map[string]string) (Changed, error) {
	return c.change(ctx, http.MethodPut, "/items/"+url.PathEscape(id), "", Item{Properties: properties})
}

// SetTags replaces the tags of an item.
func (c *Client) SetTags(ctx context.Context, id string, tags map[string]string) (Changed, error) {
	return c.change(ctx, http.MethodPut, "/items/"+url.PathEscape(id)+"/tags", "", Item{Tags: tags})
}

// Delete deletes an item.
func (c *Client) Delete(ctx context.Context, id string) (Changed, error) {
	return c.change(ctx, http.MethodDelete, "/items/"+url.PathEscape(id), "", Item{})
}

// Get reads an item.
func (c *Client) Get(ctx context.Context, id string) (i Item, err error) {
	_, err = c.call(ctx, http.MethodGet, "/items/"+url.PathEscape(id), "", nil, &i)
	return i, err
}

// Tagged returns all items that have a tag.
func (c *Client) Tagged(ctx context.Context, key, value string) (all []Item, err error) {
	after := ""
	for {
		var page Page
		query := url.Values{"tag": {key + "=" + value}, "after": {after}}
		if _, err := c.call(ctx, http.MethodGet, "/items?"+query.Encode(), "", nil, &page); err != nil {
			return nil, err
		}
		all = append(all, page.Items...)
		if after = page.Next; after == "" {
			return all, nil
		}
	}
}

// Operation returns the state of an operation.
func (c *Client) Operation(ctx context.Context, id string) (o Operation, err error) {
	_, err = c.call(ctx, http.MethodGet, "/operations/"+url.PathEscape(id), "", nil, &o)
	return o, err
}

func (c *Client) change(ctx context.Context, method, path, token string, in Item) (Changed, error) {
	var body json.RawMessage
	code, err := c.call(ctx, method, path, token, in, &body)
	if err != nil {
		return Changed{}, err
	}
	if code == http.StatusAccepted {
		var o Operation
		err = json.Unmarshal(body, &o)
		return Changed{Operation: o.ID, Item: Item{ID: o.Item}}, err
	}
	var out Changed
	err = json.Unmarshal(body, &out.Item)
	return out, err
}

func (c *Client) call(ctx context.Context, method, path, token string, in, out any) (int, error) {
	data, err := json.Marshal(in)
	if err != nil {
		return 0, err
	}
	r, err := http.NewRequestWithContext(ctx, method, c.URL+path, bytes.NewReader(data))
	if err != nil {
		return 0, err
	}
	if token != "" {
		r.Header.Set("Idempotency-Key", token)
	}
	if c.Login != "" {
		r.Header.Set("Authorization", "Bearer "+c.Login)
	}
	h := c.HTTP
	if h == nil {
		h = http.DefaultClient
	}
	response, err := h.Do(r)
	if err != nil {
		return 0, err
	}
	defer func() { _ = response.Body.Close() }() // it was read
	if response.StatusCode >= http.StatusMultipleChoices {
		var said struct{ Error string }
		_ = json.NewDecoder(response.Body).Decode(&said) // the status says enough
		seconds, _ := strconv.Atoi(response.Header.Get("Retry-After"))
		return response.StatusCode, &Error{Code: response.StatusCode, Why: said.Error, After: time.Duration(seconds) * time.Second}
	}
	return response.StatusCode, json.NewDecoder(response.Body).Decode(out)
}
