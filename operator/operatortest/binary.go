package operatortest

import (
	"bytes"
	"os"
	"path"
	"path/filepath"
	"slices"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/trimtab-dev/trimtab/internal/gobuild"
	"github.com/trimtab-dev/trimtab/internal/manifest"
	"github.com/trimtab-dev/trimtab/testenv"
)

// Binary is the program of an operator.
type Binary struct {
	// Path is the path of the executable.
	Path string
	// Env is added to the environment of the test, as "NAME=value".
	Env []string
}

// Build compiles the operator in package pkg. It tells go test which files of the test's module the operator is made of, so that go test
// runs the test again when one of them changes.
func Build(t testing.TB, pkg string) Binary {
	t.Helper()
	file := filepath.Join(t.TempDir(), path.Base(pkg))
	if out, err := gobuild.Output(t, pkg, "-o", file); err != nil {
		t.Fatalf("build %s: %v\n%s", pkg, err, out)
	}
	return Binary{Path: file}
}

// Self returns the running test binary as a Binary that sets the environment variable. TestMain
// must check the variable and run the operator if it is set.
func Self(variable string) Binary {
	return Binary{Path: os.Args[0], Env: []string{variable + "=1"}}
}

// Account is the service account of an operator.
type Account struct {
	// User is the name of the account in audit logs and role bindings.
	User string
	// Kubeconfig is the path of a kubeconfig with the credentials of the account.
	Kubeconfig string
}

// Install applies the manifests that the operator prints for a namespace and the flags of its
// manager, except the Deployment, and returns the operator's account. The namespace must exist.
func (b Binary) Install(t testing.TB, cfg *rest.Config, namespace string, flags ...string) Account {
	t.Helper()
	cmd := b.command(t, append([]string{"manifests", "--namespace", namespace, "--"}, flags...))
	var complaints bytes.Buffer
	cmd.Stderr = &complaints
	printed, err := cmd.Output()
	if err != nil {
		t.Fatalf("print the manifests: %v\n%s", err, complaints.String())
	}
	var objects []client.Object
	err = manifest.Split(printed, func(document []byte) error {
		u := &unstructured.Unstructured{}
		objects = append(objects, u)
		return yaml.Unmarshal(document, u)
	})
	if err != nil {
		t.Fatalf("read the manifests: %v\n%s", err, printed)
	}
	return install(t, cfg, namespace, objects)
}

// install applies an operator's manifests, except the Deployment and the namespace.
func install(t testing.TB, cfg *rest.Config, namespace string, objects []client.Object) Account {
	t.Helper()
	name := ""
	for _, o := range objects {
		if o.GetObjectKind().GroupVersionKind().Kind == "ServiceAccount" {
			name = o.GetName()
		}
	}
	testenv.Install(t, cfg, slices.DeleteFunc(objects, func(o client.Object) bool {
		kind := o.GetObjectKind().GroupVersionKind().Kind
		return kind == "Deployment" || kind == "Namespace"
	})...)
	as := rest.AnonymousClientConfig(cfg)
	as.BearerToken = token(t, cfg, namespace, name)
	return Account{
		User:       "system:serviceaccount:" + namespace + ":" + name,
		Kubeconfig: Kubeconfig(t, as, namespace),
	}
}

func token(t testing.TB, cfg *rest.Config, namespace, name string) string {
	t.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	request := &authenticationv1.TokenRequest{}
	if err := testenv.Client(t, cfg).SubResource("token").Create(t.Context(), account, request); err != nil {
		t.Fatal(err)
	}
	return request.Status.Token
}

// Kubeconfig is like [testenv.Kubeconfig], with a default namespace.
func Kubeconfig(t testing.TB, cfg *rest.Config, namespace string) string {
	t.Helper()
	file := testenv.Kubeconfig(t, cfg)
	c, err := clientcmd.LoadFromFile(file)
	if err == nil {
		c.Contexts[c.CurrentContext].Namespace = namespace
		err = clientcmd.WriteToFile(*c, file)
	}
	if err != nil {
		t.Fatal(err)
	}
	return file
}
