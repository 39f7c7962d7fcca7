package operatortest

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

// output is what an operator says while it runs.
type output struct {
	t     testing.TB
	ended chan struct{}

	mu  sync.Mutex
	log bytes.Buffer
}

// Ended is closed once the operator has ended.
func (o *output) Ended() <-chan struct{} { return o.ended }

// Ready waits until the operator says that it is ready.
func (o *output) Ready() {
	o.t.Helper()
	tick := time.NewTicker(20 * time.Millisecond) // there is nothing to watch
	defer tick.Stop()
	deadline := time.After(30 * time.Second)
	for last := "does not say where to ask"; ; {
		if url := o.health(); url != "" {
			if last = answer(o.t, url+"/readyz"); last == "" {
				return
			}
		}
		select {
		case <-tick.C:
		case <-o.ended:
			o.t.Fatal("the operator ended before it was ready")
		case <-deadline:
			o.t.Fatalf("the operator is not ready after 30 s: %s", last)
		}
	}
}

// health is the address that the operator says it answers at; empty before it did.
func (o *output) health() string {
	for text := range strings.Lines(o.Log()) {
		var line struct {
			Msg     string `json:"msg"`
			Address string `json:"health-address"`
		}
		if json.Unmarshal([]byte(text), &line) == nil && line.Msg == "starting" {
			return "http://" + line.Address
		}
	}
	return ""
}

// answer is what url answers if it is not OK, and empty if it is.
func answer(t testing.TB, url string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err.Error()
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	switch {
	case err != nil:
		return err.Error()
	case resp.StatusCode == http.StatusOK:
		return ""
	}
	return string(body)
}

// Write takes a part of the operator's log.
func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.log.Write(b)
}

// Log is what the operator said so far.
func (o *output) Log() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.log.String()
}

// show adds the log to the output of a test that failed.
func (o *output) show() {
	if o.t.Failed() {
		o.t.Logf("the operator's log:\n%s", o.Log())
	}
}
