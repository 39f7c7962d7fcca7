package main

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/loop/looptest"
	v1 "github.com/trimtab-dev/trimtab/samples/webpage/api/v1"
)

// region: tables

func page(html string) *v1.WebPage {
	return &v1.WebPage{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "hello"}, Spec: v1.WebPageSpec{HTML: html}}
}

func controller() looptest.Controller {
	all, err := controllers()
	if err != nil {
		panic(err)
	}
	return all[0]
}

// TestPasses runs single passes, in milliseconds and without an API server.
func TestPasses(t *testing.T) {
	t.Parallel()
	looptest.Run(t, looptest.Suite{New: controller, Cluster: looptest.Cluster{AddToScheme: v1.AddToScheme}}, map[string]looptest.Case{
		"a new page": {
			Why: "its children are created, and it is not ready before they are", Object: page(hello),
			Want: looptest.Want{
				Writes: []string{
					"apply configmaps shop/hello", "apply deployments shop/hello", "apply services shop/hello", "apply webpages/status shop/hello",
				},
				Conditions: []string{"Ready False"}, Events: []string{"Normal"},
			},
			Then: func(t *testing.T, env *looptest.Env) {
				env.Settle()
				if again := env.Pass(page(hello)); len(again.Writes) > 0 {
					t.Errorf("another pass wrote %q", again.Writes)
				}
			},
		},
		"no HTML": {
			Why: "it has no children, and says what is wrong", Object: page("no page"),
			Want: looptest.Want{
				Outcome: "Terminal", Conditions: []string{"Ready False InvalidHTML", "Stalled True InvalidHTML"},
				Writes: []string{"apply webpages/status shop/hello"}, Events: []string{"Warning InvalidHTML"},
			},
		},
	})
}

// TestCrashes kills the operator before and after each of its writes.
func TestCrashes(t *testing.T) {
	t.Parallel()
	looptest.CrashSweep(t, looptest.Sweep{
		New:      func() looptest.Subject { return looptest.Subject{Process: controller} },
		Cluster:  looptest.Cluster{AddToScheme: v1.AddToScheme},
		Versions: []client.Object{page(hello), page(bye)},
	})
}

// endregion: tables
