package testenv

import (
	"context"
	"regexp"
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Client returns a client that reads from the server, not from a cache. Its scheme contains the
// kinds of Kubernetes, CustomResourceDefinition, and whatever add adds, for example the AddToScheme
// functions of an operator's API packages.
func Client(t testing.TB, cfg *rest.Config, add ...func(*runtime.Scheme) error) client.WithWatch {
	t.Helper()
	return clientOf(t, cfg, nil, add...)
}

// definitions maps Namespace and CustomResourceDefinition, which every server has. So a client for these two asks for no discovery.
var definitions = func() meta.RESTMapper {
	m := meta.NewDefaultRESTMapper(nil)
	m.Add(corev1.SchemeGroupVersion.WithKind("Namespace"), meta.RESTScopeRoot)
	m.Add(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"), meta.RESTScopeRoot)
	return m
}()

// clientOf is Client with a mapper, or if that is nil with one that asks the server.
func clientOf(t testing.TB, cfg *rest.Config, mapper meta.RESTMapper, add ...func(*runtime.Scheme) error) client.WithWatch {
	t.Helper()
	scheme := runtime.NewScheme()
	known := []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme}
	for _, add := range append(known, add...) {
		if err := add(scheme); err != nil {
			t.Fatalf("add kinds to the scheme: %v", err)
		}
	}
	// Without a logger of its own it would use that of the process, which prints a warning with
	// a stack trace if none has been set after 30 seconds.
	quiet := funcr.New(func(string, string) {}, funcr.Options{})
	c, err := client.NewWithWatch(cfg, client.Options{Scheme: scheme, Mapper: mapper, Log: quiet})
	if err != nil {
		t.Fatalf("create a client for %s: %v", cfg.Host, err)
	}
	return c
}

// Namespace creates a namespace for this test and returns its name. The namespace is deleted when the
// test ends, without waiting for the deletion to finish. On a server that [Start] has started it stays, as on one that
// [EnvThrowaway] is about: that server ends with the tests, and to delete a namespace costs it more than most tests do.
func Namespace(t testing.TB, cfg *rest.Config) string {
	t.Helper()
	c := clientOf(t, cfg, definitions)
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: namespacePrefix(t.Name())}}
	if err := c.Create(t.Context(), ns); err != nil {
		t.Fatalf("create a namespace: %v", err)
	}
	if !throwaway(cfg) {
		deleteAtEnd(t, c, ns)
	}
	return ns.Name
}

var notInNames = regexp.MustCompile(`[^a-z0-9]+`)

// longestPrefix leaves room for the suffix that the server adds.
const longestPrefix = 50

// namespacePrefix turns a test's name into a valid prefix for a namespace, so that the namespace shows
// which test created it.
func namespacePrefix(test string) string {
	s := strings.Trim(notInNames.ReplaceAllString(strings.ToLower(test), "-"), "-")
	s = strings.Trim(s[:min(len(s), longestPrefix)], "-")
	if s == "" {
		return "test-"
	}
	return s + "-"
}

// deleteAtEnd deletes objects when the test ends. An error is only logged, because it says nothing
// about what was tested.
func deleteAtEnd(t testing.TB, c client.Client, objs ...client.Object) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context()) // the test's own context has ended by then
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
