package testenv

import (
	"context"
	"regexp"
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Client answers a client that reads from the server, not from a cache. It knows
// Kubernetes' own kinds, CRDs, and what add adds, for example the AddToScheme functions of
// an operator's API packages.
func Client(t testing.TB, cfg *rest.Config, add ...func(*runtime.Scheme) error) client.WithWatch {
	t.Helper()
	scheme := runtime.NewScheme()
	known := []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme}
	for _, add := range append(known, add...) {
		if err := add(scheme); err != nil {
			t.Fatalf("add kinds to the test's scheme: %v", err)
		}
	}
	// Without a log of its own it would take the process's, which complains with a stack of
	// calls if nobody has set one after 30 seconds.
	quiet := funcr.New(func(string, string) {}, funcr.Options{})
	c, err := client.NewWithWatch(cfg, client.Options{Scheme: scheme, Log: quiet})
	if err != nil {
		t.Fatalf("make a client for %s: %v", cfg.Host, err)
	}
	return c
}

// Namespace makes a namespace for this test alone and answers its name. It is deleted when
// the test ends, which nobody waits for.
func Namespace(t testing.TB, cfg *rest.Config) string {
	t.Helper()
	c := Client(t, cfg)
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: namespacePrefix(t.Name())}}
	if err := c.Create(t.Context(), ns); err != nil {
		t.Fatalf("create a namespace: %v", err)
	}
	deleteAtEnd(t, c, ns)
	return ns.Name
}

var notInNames = regexp.MustCompile(`[^a-z0-9]+`)

// longestPrefix leaves room for the suffix that the server adds to names.
const longestPrefix = 50

// namespacePrefix makes a test's name fit for a namespace, so that people who look into
// the cluster see whose it is.
func namespacePrefix(test string) string {
	s := strings.Trim(notInNames.ReplaceAllString(strings.ToLower(test), "-"), "-")
	s = strings.Trim(s[:min(len(s), longestPrefix)], "-")
	if s == "" {
		return "test-"
	}
	return s + "-"
}

// deleteAtEnd deletes objects when the test is over. That it may fail then is no fault of
// what was tested, so it is only logged.
func deleteAtEnd(t testing.TB, c client.Client, objs ...client.Object) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context()) // the test's own has ended by then
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		for _, obj := range objs {
			if err := client.IgnoreNotFound(c.Delete(ctx, obj)); err != nil {
				t.Logf("delete %T %q after the test: %v", obj, obj.GetName(), err)
			}
		}
	})
}
