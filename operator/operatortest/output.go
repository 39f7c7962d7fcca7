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

	"github.com/trimtab-dev/trimtab/internal/poll"
)

// output collects the log of a running operator.
type output struct {
	t     testing.TB
	ended chan struct{}

	mu  sync.Mutex
	log bytes.Buffer
}

// Ended returns a channel that is closed when the operator has ended.
func (o *output) Ended() <-chan struct{} { return o.ended }

// Ready waits until the operator reports that it is ready.
func (o *output) Ready() {
	o.t.Helper()
	tick := time.NewTicker(20 * time.Millisecond) // readiness cannot be watched
	defer tick.Stop()
	deadline := time.After(poll.Patience)
	for last := "it has not logged its health address"; ; {
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
			o.t.Fatalf("the operator is not ready after %s: %s", poll.Patience, last)
		}
	}
}

// health returns the URL of the operator's health server, or an empty string if the operator has
// not logged it yet.
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

// answer returns the response of url, or an empty string if the status is OK.
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

// Write appends to the log.
func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.log.Write(b)
}

// Log returns what the operator has logged so far.
func (o *output) Log() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.log.String()
}

// show adds the log to the output of a failed test.
func (o *output) show() {
	if o.t.Failed() {
		o.t.Logf("the operator's log:\n%s", o.Log())
	}
}
