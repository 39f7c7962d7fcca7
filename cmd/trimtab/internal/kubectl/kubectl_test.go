package kubectl

import (
	"os/exec"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// TestKind: a kind is written with its group if kubectl could take it for another one, and only then.
func TestKind(t *testing.T) {
	t.Parallel()
	mapper := meta.NewDefaultRESTMapper(nil)
	for _, kind := range []schema.GroupVersionKind{
		{Group: "nats.example.dev", Version: "v1", Kind: "Stream"},
		{Group: "video.example.dev", Version: "v1", Kind: "Stream"},
		{Group: "things.example.dev", Version: "v1", Kind: "Thing"},
		{Group: "things.example.dev", Version: "v2", Kind: "Thing"},
		{Version: "v1", Kind: "Event"},
		{Group: "events.k8s.io", Version: "v1", Kind: "Event"},
	} {
		mapper.Add(kind, meta.RESTScopeNamespace)
	}
	tests := map[string]struct {
		why  string
		kind schema.GroupVersionKind
		want string
	}{
		"two groups":   {"kubectl takes the first one that it finds", schema.GroupVersionKind{Group: "nats.example.dev", Version: "v1", Kind: "Stream"}, "streams.nats.example.dev"},
		"two versions": {"it is the same kind", schema.GroupVersionKind{Group: "things.example.dev", Version: "v1", Kind: "Thing"}, "thing"},
		"Kubernetes":   {"kubectl prefers it", schema.GroupVersionKind{Version: "v1", Kind: "Event"}, "event"},
		"like one of Kubernetes": {
			"kubectl prefers the other one", schema.GroupVersionKind{Group: "events.k8s.io", Version: "v1", Kind: "Event"}, "events.events.k8s.io",
		},
		"not known": {"it may be served soon", schema.GroupVersionKind{Group: "example.dev", Version: "v1", Kind: "Gone"}, "gone.example.dev"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := (Commands{Mapper: mapper}).Kind(tt.kind); got != tt.want {
				t.Errorf("%s, want %s: %s", got, tt.want, tt.why)
			}
		})
	}
	if got := (Commands{}).Kind(schema.GroupVersionKind{Group: "example.dev", Version: "v1", Kind: "Thing"}); got != "thing.example.dev" {
		t.Errorf("without a mapper: %s", got)
	}
}

// TestLine: a shell takes each word as it is, and the flags are those that name the cluster.
func TestLine(t *testing.T) {
	t.Parallel()
	c := Commands{Flags: []string{"--context=it's prod", "--kubeconfig=/home/an na/$HOME/`x`"}}
	words := []string{"annotate", "thing", "a", `key=a "b" 'c' $(d) \e` + "\n*", ""}
	line := c.Line("shop", words...)
	out, err := exec.CommandContext(t.Context(), "sh", "-c", `kubectl() { for w; do printf '%s|' "$w"; done; }; `+line).Output()
	if err != nil {
		t.Fatalf("%v: %s", err, line)
	}
	if want := strings.Join(append(append(words, "-n", "shop"), c.Flags...), "|") + "|"; string(out) != want {
		t.Errorf("a shell takes %s\nfor   %q\nwant %q", line, out, want)
	}
	if got := (Commands{}).Line("", "get", "node", "n1"); got != "kubectl get node n1" {
		t.Errorf("nothing to quote: %q", got)
	}
}
