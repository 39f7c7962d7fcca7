package apiserver

import (
	"errors"
	"io"
	"net/http"
	"testing"
)

// TestReadOfAClosedWatch proves that reading a watch ends with io.EOF when its reader has closed it, before or meanwhile. Another
// error would become an event that may keep a goroutine for ever.
func TestReadOfAClosedWatch(t *testing.T) {
	w := newGuardedCluster(t)
	for name, closeIt := range map[string]func(end func()){
		"before":    func(end func()) { end() },
		"meanwhile": func(end func()) { go end() },
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://kubesim/api/v1/namespaces/default/configmaps?watch=1", nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := (&Transport{Server: w.server, Client: Client{DB: w.db}}).RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		body := answer.Body
		closeIt(func() { _ = body.Close() })
		if n, err := io.Copy(io.Discard, struct{ io.Reader }{body}); err != nil {
			t.Errorf("%s: %d bytes, then %v; want io.EOF", name, n, err)
		}
		if _, err := body.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
			t.Errorf("%s: got %v, want io.EOF", name, err)
		}
	}
}
