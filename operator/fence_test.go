package operator

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/rest"
)

// TestFence: whoever led sends nothing but reads and renewals after the lease has run out.
func TestFence(t *testing.T) {
	const lease = "/apis/coordination.k8s.io/v1/namespaces/n/leases/op"
	synctest.Test(t, func(t *testing.T) {
		code := http.StatusOK
		f := newFence("n", "op")
		config := f.config(&rest.Config{Host: "http://localhost", Transport: transport(func(*http.Request) *http.Response {
			w := httptest.NewRecorder()
			w.WriteHeader(code)
			return w.Result()
		})})
		send := func(method, path string) error {
			t.Helper()
			client, err := rest.HTTPClientFor(config) // the manager and its leader election have one each
			if err != nil {
				t.Fatal(err)
			}
			r, err := http.NewRequestWithContext(t.Context(), method, "http://localhost"+path, http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			response, err := client.Do(r)
			if err == nil {
				_ = response.Body.Close()
			}
			return err
		}
		allowed := func(when string, yes bool) {
			t.Helper()
			for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete} {
				if err := send(method, "/api/v1/namespaces/n/configmaps/a"); (err == nil) != yes || err != nil && !errors.Is(err, errLeaseLost) {
					t.Errorf("%s: %s: %v", when, method, err)
				}
			}
			if err := send(http.MethodGet, "/api/v1/namespaces/n/configmaps/a"); err != nil {
				t.Errorf("%s: a read: %v", when, err)
			}
		}
		renew := func(answer int) {
			t.Helper()
			code = answer
			if err := send(http.MethodPut, lease); err != nil {
				t.Errorf("a renewal: %v", err)
			}
			code = http.StatusOK
		}
		allowed("before it leads", true)
		watching, cancel := context.WithCancel(t.Context())
		stopped := false
		go f.watch(watching, func(error) { stopped = true })
		renew(http.StatusConflict)
		time.Sleep(leaseDuration) //nolint:forbidigo // simulated time
		allowed("another one took the lease first", true)
		renew(http.StatusOK)
		time.Sleep(leaseDuration - leaseMargin) //nolint:forbidigo // simulated time
		synctest.Wait()
		allowed("while it leads", true)
		if stopped {
			t.Error("it was stopped while it led")
		}
		renew(http.StatusInternalServerError)
		time.Sleep(time.Millisecond) //nolint:forbidigo // simulated time
		allowed("it could not renew the lease", false)
		synctest.Wait()
		if !stopped {
			t.Error("it was not stopped, and passes go on")
		}
		renew(http.StatusOK)
		allowed("it renewed the lease", true)
		cancel()
	})
}

type transport func(*http.Request) *http.Response

func (t transport) RoundTrip(r *http.Request) (*http.Response, error) { return t(r), nil }
