package componenttest

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/yaml"

	"github.com/trimtab-dev/trimtab/component"
)

// UpdateGolden is the environment variable that makes [Golden] write its files instead of comparing them. Any
// value but the empty one does.
const UpdateGolden = "UPDATE_GOLDEN"

// Golden compares the objects that a renderer returns for a component with a YAML file, in the order in which
// it returns them. Typed objects are of the kinds of Kubernetes and of those that add registers. Waves, policies
// and what else is set on a dependent are annotations with the prefix OPERATOR. Functions of charts that return something
// else each time, such as randAlphaNum and genCA, return fixed texts.
//
// If the file does not exist, or the environment variable UPDATE_GOLDEN is set, it is written; a test that
// wrote a new file fails, so that nobody forgets to read it.
func Golden[T component.Object](t testing.TB, r component.Renderer[T], c T, file string, add ...func(*runtime.Scheme) error) {
	t.Helper()
	set, err := Fixed(r).Render(t.Context(), component.RenderRequest[T]{Component: c, NamespacedName: client.ObjectKeyFromObject(c)})
	if err != nil {
		t.Fatalf("render: %v", err)
	}
	scheme := runtime.NewScheme()
	for _, add := range append(add, clientgoscheme.AddToScheme) {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	objects, err := set.Annotated("OPERATOR", scheme)
	if err != nil {
		t.Fatal(err)
	}
	got := documents(t, objects, scheme)
	want, err := os.ReadFile(file)
	missing := errors.Is(err, fs.ErrNotExist)
	switch {
	case missing || err == nil && os.Getenv(UpdateGolden) != "":
		write(t, file, got)
		if missing {
			t.Errorf("%s was written; read it, and run the test again", file)
		}
	case err != nil:
		t.Fatal(err)
	default:
		if diff := cmp.Diff(string(want), string(got)); diff != "" {
			t.Errorf("rendered objects differ from %s; set %s=1 to accept them (-want +got):\n%s", file, UpdateGolden, diff)
		}
	}
}

func write(t testing.TB, file string, data []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// documents returns objects as YAML.
func documents(t testing.TB, objects []client.Object, scheme *runtime.Scheme) []byte {
	t.Helper()
	var out bytes.Buffer
	for i, obj := range objects {
		kind, err := apiutil.GVKForObject(obj, scheme)
		if err != nil {
			t.Fatalf("object %d: %v", i+1, err)
		}
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
		if err != nil {
			t.Fatalf("object %d: %v", i+1, err)
		}
		content["apiVersion"], content["kind"] = kind.GroupVersion().String(), kind.Kind
		delete(content, "status")
		if metadata, ok := content["metadata"].(map[string]any); ok && metadata["creationTimestamp"] == nil {
			delete(metadata, "creationTimestamp")
		}
		data, err := yaml.Marshal(content)
		if err != nil {
			t.Fatalf("object %d: %v", i+1, err)
		}
		out.WriteString("---\n")
		out.Write(data)
	}
	return out.Bytes()
}
