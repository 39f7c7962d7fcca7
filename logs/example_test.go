package logs_test

import (
	"context"
	"log/slog"
	"os"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trimtab-dev/trimtab/logs"
)

// PlacementAPIReconciler is a reconciler of controller-runtime.
type PlacementAPIReconciler struct{}

// region: getlogger

// GetLogger returns the logger of one reconciliation.
func (r *PlacementAPIReconciler) GetLogger(ctx context.Context) logr.Logger { return logs.For(ctx, r) }

// endregion: getlogger

// The logger of a reconciler is named after its type. controller-runtime puts values into the context, of
// which there is one here.
func ExampleFor() {
	log := (&PlacementAPIReconciler{}).GetLogger(pass())
	log.Info("the database is ready")
	// Output:
	// level=INFO msg="the database is ready" controller=placementapi logger=Controllers.PlacementAPIReconciler
}

// Lines about a Node, which is cluster-scoped, say so.
func ExampleAbout() {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "u", ResourceVersion: "7", Generation: 2}}
	log := logs.About(logr.FromContextOrDiscard(pass()), corev1.SchemeGroupVersion.WithKind("Node"), node)
	log.Info("it is full")
	// Output:
	// level=INFO msg="it is full" controller=placementapi resource.apiVersion=v1 resource.kind=Node resource.name=a resource.namespace="no namespace" resource.resourceVersion=7 resource.generation=2 resource.uid=u
}

// pass returns a context like that of a reconciliation, with a logger that prints no time.
func pass() context.Context {
	handler := slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}})
	return logr.NewContext(context.Background(), logr.FromSlogHandler(handler).WithValues("controller", "placementapi"))
}
