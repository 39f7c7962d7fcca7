// Command webpage is the operator of the Java Operator SDK's documentation: each WebPage object stands for a page, a
// server that serves it, and the way to it.
package main

import (
	"context"
	"embed"
	"errors"
	"strings"

	"github.com/trimtab-dev/trimtab/children"
	"github.com/trimtab-dev/trimtab/loop"
	"github.com/trimtab-dev/trimtab/operator"
	v1 "github.com/trimtab-dev/trimtab/samples/webpage/api/v1"
)

// region: operator

// pages reconciles WebPages.
type pages struct{ children *children.Set[*v1.WebPage] }

func (p pages) Reconcile(ctx context.Context, r *loop.Run[*v1.WebPage]) loop.Outcome {
	if !strings.Contains(r.Obj.Spec.HTML, "<html>") {
		return loop.Terminal("InvalidHTML", errors.New("spec.html is no HTML document: it has no <html>"))
	}
	if o, pending := p.children.Apply(ctx, r).Pending(); pending {
		return o
	}
	r.Obj.Status.HTMLConfigMap = r.Obj.Name
	return loop.Done()
}

func controllers() ([]operator.Controller, error) {
	kids := children.Of(
		children.Named("html", configMap),
		children.Named("deployment", deployment),
		children.Named("service", service),
		children.Named("ingress", ingress).When(func(p *v1.WebPage) bool { return p.Spec.Exposed }),
	)
	return []operator.Controller{children.New(kids, children.Options[*v1.WebPage]{Reconciler: pages{kids}})}, nil
}

//go:embed crds
var crds embed.FS

func main() {
	operator.Main(operator.Options{Name: "webpage", AddToScheme: v1.AddToScheme, CRDs: crds, Controllers: controllers})
}

// endregion: operator
