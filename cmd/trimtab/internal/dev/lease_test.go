package dev

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/trimtab-dev/trimtab/cmd/trimtab/internal/kubectl"
	"github.com/trimtab-dev/trimtab/cmd/trimtab/internal/steps"
)

// TestReady: an operator is ready when it leads or is known to stand by, and not as long as neither is known.
func TestReady(t *testing.T) {
	t.Parallel()
	const waiting = "ok\nwaiting for the lease shop/widgets\n"
	tests := map[string]struct {
		why   string
		says  []string
		lease string
	}{
		"leads":       {"nothing else is said", []string{"ok\n"}, ""},
		"leads later": {"the lease takes a moment", []string{waiting, waiting, "ok\n"}, ""},
		"stands by":   {"another one leads", []string{waiting, "ok\nstanding by: another replica holds the lease shop/widgets\n"}, "shop/widgets"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var asked atomic.Int32
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				_, _ = io.WriteString(w, tt.says[min(int(asked.Add(1)), len(tt.says))-1])
			}))
			t.Cleanup(server.Close)
			p := &process{log: &operatorLog{out: io.Discard}, ended: make(chan struct{})}
			if _, err := fmt.Fprintf(p.log, "INFO starting health-address=%s\n", strings.TrimPrefix(server.URL, "http://")); err != nil {
				t.Fatal(err)
			}
			lease, err := p.ready(t.Context())
			if err != nil || lease != tt.lease || int(asked.Load()) != len(tt.says) {
				t.Errorf("lease %q after %d answers, %v; want %q after %d: %s", lease, asked.Load(), err, tt.lease, len(tt.says), tt.why)
			}
		})
	}
}

// TestBehind: it says who leads and how to end that, and does not look like success.
func TestBehind(t *testing.T) {
	t.Parallel()
	lease := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "widgets"},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: new("widgets-7d9f_1f0c2d6e"), RenewTime: &metav1.MicroTime{Time: time.Now().Add(-time.Hour)}},
	}
	s := &session{admin: fake.NewClientBuilder().WithObjects(lease).Build(), options: Options{Kubectl: kubectl.Commands{Flags: []string{"--kubeconfig=/k"}}}}
	text := s.behind(t.Context(), "shop/widgets")
	for _, want := range []string{
		"widgets-7d9f (which renewed it 1h0m", "holds the lease shop/widgets", "kubectl scale deployment widgets --replicas=0 -n shop --kubeconfig=/k",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("it says %q, which lacks %q", text, want)
		}
	}
	if got := s.behind(t.Context(), "shop/gone"); !strings.Contains(got, ": another one holds the lease shop/gone") {
		t.Errorf("a lease that cannot be read: %q", got)
	}
	var out bytes.Buffer
	if err := steps.New(&out).Run("operator", func(st *steps.Step) error { st.Waits(); return nil }); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(out.String(), "  … operator ") {
		t.Errorf("printed %q", out.String())
	}
}
