package patch_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/trimtab-dev/trimtab/internal/probe"
	"github.com/trimtab-dev/trimtab/patch"
)

// TestSlow: a write is not given up because the API server is slow, but soon after its context has ended.
func TestSlow(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		why      string
		end      time.Duration // of the context
		took     time.Duration
		succeeds bool
	}{
		"the context lives": {"what was sent has reached the server, and would be sent again", time.Hour, 20 * time.Second, true},
		"it ends":           {"the process shuts down", 10 * time.Second, 15 * time.Second, false},
		"it has ended":      {"a deadline was exceeded, and that is reported", 0, 5 * time.Second, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				scheme := runtime.NewScheme()
				if err := probe.AddToScheme(scheme); err != nil {
					t.Fatal(err)
				}
				obj := &probe.Probe{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "a"}}
				c := interceptor.NewClient(fake.NewClientBuilder().WithScheme(scheme).WithObjects(obj).Build(), interceptor.Funcs{
					Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, p client.Patch, opts ...client.PatchOption) error {
						select {
						case <-time.After(20 * time.Second):
							return c.Patch(ctx, obj, p, opts...)
						case <-ctx.Done():
							return ctx.Err()
						}
					},
				})
				if err := c.Get(t.Context(), client.ObjectKeyFromObject(obj), obj); err != nil {
					t.Fatal(err)
				}
				s := patch.From(obj)
				obj.Labels = map[string]string{"a": "b"}
				ctx, cancel := context.WithTimeout(t.Context(), tt.end)
				defer cancel()
				began := time.Now()
				err := s.Write(ctx, c, obj)
				if took := time.Since(began); took != tt.took || (err == nil) != tt.succeeds {
					t.Errorf("the write took %s and ended with %v; want %s, and that it succeeds: %t; %s", took, err, tt.took, tt.succeeds, tt.why)
				}
			})
		})
	}
}
