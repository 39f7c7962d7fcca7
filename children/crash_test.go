package children_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/children"
	"github.com/trimtab-dev/trimtab/internal/poll"
	"github.com/trimtab-dev/trimtab/internal/probe"
	"github.com/trimtab-dev/trimtab/testenv"
)

var errDead = errors.New("the process is dead")

// blade kills a process at one of its writes: the API server gets the write, the process no answer, and nothing after it.
type blade struct {
	next http.RoundTripper
	// fell is closed at that write.
	fell chan struct{}

	mu   sync.Mutex
	left int
	dead bool
}

// RoundTrip implements http.RoundTripper.
func (b *blade) RoundTrip(r *http.Request) (*http.Response, error) {
	b.mu.Lock()
	if b.dead {
		b.mu.Unlock()
		return nil, errDead
	}
	if r.Method != http.MethodGet && (strings.Contains(r.URL.Path, "/configmaps/") || strings.Contains(r.URL.Path, "/probes/")) {
		b.left--
		b.dead = b.left == 0
	}
	falls := b.dead
	b.mu.Unlock()
	response, err := b.next.RoundTrip(r)
	if falls {
		if err == nil {
			_ = response.Body.Close()
		}
		close(b.fell)
		return nil, errDead
	}
	return response, err
}

// ahead is how many writes there would be until the kill.
func (b *blade) ahead() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return max(b.left, 0)
}

// raise starts another process.
func (b *blade) raise() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.dead = false
}

// crash is the life of an owner with all kinds of children, whose operator is killed once.
type crash struct {
	*world

	other string
	owner *probe.Probe
}

func (c *crash) set() *children.Set[*probe.Probe] {
	far := children.Named("far", func(p *probe.Probe) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: c.other}, Data: map[string]string{"size": fmt.Sprint(p.Spec.Size)}}
	}).Elsewhere()
	return children.Of(config1(), children.Named("precious", configOf("precious")).Protected(), far, children.Named("large", configOf("large")).When(large).Protected())
}

// live plays the life, and returns what is not as it should be after some step.
func (c *crash) live(ctx context.Context) error {
	resize := func(size int) error {
		return c.admin.Patch(ctx, c.owner, client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"size":%d}}`, size)))
	}
	const usual = "a a-precious far:a"
	for _, step := range []struct {
		name string
		do   func() error
		want string
	}{
		{"create", func() error { return c.admin.Create(ctx, c.owner) }, usual + " | 1"},
		{"grow", func() error { return resize(2) }, "a a-large a-precious far:a | 2"},
		{"shrink", func() error { return resize(1) }, usual + " | 3"},
		{"delete", func() error { return c.admin.Delete(ctx, c.owner) }, " | gone"},
	} {
		if err := step.do(); err != nil {
			return fmt.Errorf("%s: %w", step.name, err)
		}
		got := ""
		for deadline := time.Now().Add(poll.Patience); got != step.want; {
			if time.Now().After(deadline) {
				return fmt.Errorf("%s: there is %q, want %q", step.name, got, step.want)
			}
			<-time.After(20 * time.Millisecond)
			var err error
			if got, err = c.state(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// state returns the children that exist, and of which generation the owner is Ready.
func (c *crash) state(ctx context.Context) (string, error) {
	var names []string
	for prefix, namespace := range map[string]string{"": c.namespace, "far:": c.other} {
		list := &corev1.ConfigMapList{}
		if err := c.admin.List(ctx, list, client.InNamespace(namespace), client.HasLabels{ownerKey}); err != nil {
			return "", err
		}
		for _, m := range list.Items {
			names = append(names, prefix+m.Name)
		}
	}
	slices.Sort(names)
	p := &probe.Probe{}
	err := c.admin.Get(ctx, client.ObjectKeyFromObject(c.owner), p)
	owner := fmt.Sprint(p.Status.AppliedGeneration)
	if apierrors.IsNotFound(err) {
		owner, err = "gone", nil
	}
	return strings.Join(names, " ") + " | " + owner, err
}

// TestKills: the operator is killed at each of its writes, and the next process finishes the work: no child is left,
// missing or there twice.
func TestKills(t *testing.T) {
	t.Parallel()
	const writes = 20 // in a life without a crash there are fewer, which the last run shows
	var once sync.Mutex
	most := 0
	t.Run("at", func(t *testing.T) {
		for n := range writes {
			t.Run(fmt.Sprint(n+1), func(t *testing.T) {
				t.Parallel()
				b := &blade{fell: make(chan struct{}), left: n + 1}
				w := newWorld(t, func(next http.RoundTripper) http.RoundTripper {
					b.next = next
					return b
				})
				c := &crash{world: w, other: testenv.Namespace(t, w.cfg)}
				c.owner = &probe.Probe{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "a"}, Spec: probe.ProbeSpec{Size: 1}}
				w.others = []string{c.other}
				w.start(c.set(), options{})
				lived := make(chan error, 1)
				go func() { lived <- c.live(t.Context()) }()
				select {
				case <-b.fell:
					w.stop()
					b.raise()
					w.start(c.set(), options{})
					w.do(<-lived)
				case err := <-lived:
					w.do(err)
				}
				once.Lock()
				defer once.Unlock()
				most = max(most, n+1-b.ahead())
			})
		}
	})
	if most == writes {
		t.Errorf("there was a kill at write %d; play more of them", most)
	}
	t.Logf("killed at each of %d writes", most)
}
