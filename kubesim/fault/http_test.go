package fault

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/kubesim/internal/apiserver"
)

// amazon makes an HTTP API of a shelf, in AWS's JSON protocol.
func (s *shelf) amazon() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		owner, _ := io.ReadAll(r.Body)
		if r.Header.Get("X-Amz-Target") == "Shelf.PutBox" && s.find(string(owner)) == "" {
			s.put("", box{owner: string(owner)})
		}
		_ = json.NewEncoder(w).Encode(map[string]string{"id": s.find(string(owner))})
	})
}

// TestAWS proves that calls of AWS are known by the operations in them, which say what only reads, and that they
// are throttled in a way that AWS's SDKs know: those retry by the code in the answer.
func TestAWS(t *testing.T) {
	setUp := func(mgr ctrl.Manager, env *Env) error {
		call := func(ctx context.Context, operation, owner string) (id string, err error) {
			for range 3 {
				r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://aws", strings.NewReader(owner))
				if err != nil {
					return "", err
				}
				r.Header = http.Header{"X-Amz-Target": {"Shelf." + operation}, "Authorization": {"AWS4-HMAC-SHA256 x"}, "Content-Type": {"application/x-amz-json-1.1"}}
				response, err := HTTP(env, (*shelf).amazon).RoundTrip(r)
				if err != nil {
					return "", err
				}
				answer := map[string]any{}
				if err := json.NewDecoder(response.Body).Decode(&answer); err != nil || response.StatusCode == http.StatusOK {
					return fmt.Sprint(answer["id"]), err
				}
				if response.StatusCode == http.StatusBadRequest && answer["__type"] != "Throttling" || response.StatusCode == http.StatusTooManyRequests {
					return "", nil // an error for good: nobody comes again
				}
			}
			return "", fmt.Errorf("%s: tried three times", operation)
		}
		return does(func(ctx context.Context, c client.Client, cm *corev1.ConfigMap) (time.Duration, error) {
			id, err := call(ctx, "DescribeBox", string(cm.UID))
			if err != nil || id != "" {
				return 0, err
			}
			_, err = call(ctx, "PutBox", string(cm.UID))
			return 0, err
		})(mgr, env)
	}
	r := Explore(t, Scenario{
		Name: "aws", ExternalAPI: newShelf, Steps: []Step{Create(configMap("a"))}, Races: []Step{}, Operator: Operator{SetUp: setUp},
	}, Only(Crashes, Faults), Waive(I4, "nothing is deleted here"))
	for _, text := range r.texts() {
		t.Error(text)
	}
	if r.Writes != 1 || r.Schedules[Faults] == 0 {
		t.Errorf("%d writes, want that of PutBox alone; %v were played", r.Writes, r.Schedules)
	}
}

// TestDescribe names requests.
func TestDescribe(t *testing.T) {
	tests := map[string]struct {
		why, method, body string
		header            http.Header
		want              string
		write             bool
	}{
		"read":       {why: "GET reads", method: "GET", want: "GET /queues/a"},
		"write":      {why: "POST writes", method: "POST", want: "POST /queues/a", write: true},
		"json":       {why: "the operation is in a header", method: "POST", header: http.Header{"X-Amz-Target": {"V2.GetQueue"}}, want: "V2.GetQueue"},
		"json write": {why: "the operation is in a header", method: "POST", header: http.Header{"X-Amz-Target": {"V2.PutQueue"}}, want: "V2.PutQueue", write: true},
		"query": {
			why: "the operation is in the form", method: "POST", body: "Action=DescribeVpcs&Version=1", want: "DescribeVpcs",
			header: http.Header{"Authorization": {"AWS4-HMAC-SHA256 x"}, "Content-Type": {"application/x-www-form-urlencoded; charset=utf-8"}},
		},
		"form": {
			why: "not of AWS", method: "POST", body: "Action=DescribeVpcs", want: "POST /queues/a", write: true,
			header: http.Header{"Content-Type": {"application/x-www-form-urlencoded"}},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			r, err := http.NewRequestWithContext(t.Context(), test.method, "http://api/queues/a", strings.NewReader(test.body))
			if err != nil {
				t.Fatal(err)
			}
			if test.header != nil {
				r.Header = test.header
			}
			what, write, again, err := describe(r)
			if err != nil || what != test.want || write != test.write {
				t.Errorf("%s: got %q, write %v, %v; want %q, %v", test.why, what, write, err, test.want, test.write)
			}
			if body, err := io.ReadAll(again.Body); string(body) != test.body {
				t.Errorf("%s: the body that is sent is %q, %v", test.why, body, err)
			}
		})
	}
}

// TestEscapedPath proves that a handler gets the path that the client escaped: RabbitMQ's first virtual host is called /.
func TestEscapedPath(t *testing.T) {
	for name, test := range map[string]struct {
		why  string
		send func(url string) (*http.Request, error)
	}{
		"path": {"the usual way", func(url string) (*http.Request, error) {
			return http.NewRequestWithContext(t.Context(), http.MethodPut, url, http.NoBody)
		}},
		"opaque": {"older clients do that to keep %2F", func(url string) (*http.Request, error) {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPut, "http://rabbit", http.NoBody)
			r.URL.Opaque = strings.TrimPrefix(url, "http:")
			return r, err
		}},
		"query": {"the path is not all there is", func(url string) (*http.Request, error) {
			return http.NewRequestWithContext(t.Context(), http.MethodPut, url+"?if-unused=true", strings.NewReader("{}"))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			var path, uri, host string
			handler := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				path, uri, host = r.URL.EscapedPath(), r.RequestURI, r.Host
			})
			r, err := test.send("http://rabbit/api/queues/%2F/orders")
			if err != nil {
				t.Fatal(err)
			}
			what, _, r, err := describe(r)
			if err != nil || what != "PUT /api/queues/%2F/orders" {
				t.Errorf("%s: it is called %q, %v", test.why, what, err)
			}
			if _, err := apiserver.Serve(handler, received(r)); err != nil {
				t.Fatal(err)
			}
			if path != "/api/queues/%2F/orders" || !strings.HasPrefix(uri, path) || host != "rabbit" {
				t.Errorf("%s: path %q, URI %q, host %q", test.why, path, uri, host)
			}
		})
	}
}
