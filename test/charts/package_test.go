package charts_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/trimtab-dev/trimtab/testenv"
	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/kube"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// operatorName is that of the operator, of its chart and of the release.
const operatorName = "widgets"

// shipped is an operator that was made by trimtab new and packaged by trimtab package, on a control plane.
type shipped struct {
	t         *testing.T
	cfg       *rest.Config
	admin     client.WithWatch
	namespace string
	folder    string // of the test
	binary    string // out of the image
	stop      func() // the operator
}

// TestPackage takes an operator from trimtab new to its uninstallation: packaged, installed from its chart by Helm, upgraded,
// and uninstalled. Pods are simulated; where it matters what a container does, the program out of the image runs with its
// arguments and under its service account.
func TestPackage(t *testing.T) {
	t.Parallel()
	s := &shipped{t: t, folder: t.TempDir(), cfg: testenv.Start(t)}
	s.admin, s.namespace = testenv.Client(t, s.cfg), testenv.Namespace(t, s.cfg)
	s.pack()
	t.Cleanup(s.forget)

	if err := s.install(map[string]any{"podDisruptionBudget": map[string]any{"enabled": true}}); err != nil {
		t.Fatal("helm install:", err)
	}
	s.operate()
	first := s.widget()
	if err := s.admin.Create(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	testenv.Wait(t, s.admin, first, "the object to be Ready", ready)

	nowhere := map[string]any{"replicas": 2, "nodeSelector": map[string]any{"test": "nowhere"}}
	if err := s.upgrade(nowhere); err != nil {
		t.Fatal("helm upgrade:", err)
	}
	testenv.Wait(t, s.admin, s.deployment(), "two replicas", func(d *appsv1.Deployment) bool { return *d.Spec.Replicas == 2 })

	said, err := s.uninstall()
	if err == nil || !strings.Contains(said, "1 object exists: Widget "+s.namespace+"/first; nothing would delete what they stand for") {
		t.Fatalf("helm uninstall while an object exists: error %v, and the hook said:\n%s", err, said)
	}
	testenv.Wait(t, s.admin, s.deployment(), "the operator", func(d *appsv1.Deployment) bool { return d.DeletionTimestamp == nil })

	// A release whose uninstallation was refused can be upgraded after a rollback to itself.
	if err := s.rollback(2); err != nil {
		t.Fatal("helm rollback:", err)
	}
	nowhere["uninstall"] = map[string]any{"policy": "orphan"}
	if err := s.upgrade(nowhere); err != nil {
		t.Fatal("helm upgrade:", err)
	}
	s.stop() // as a node does when the hook scales the Deployment to zero
	if said, err := s.uninstall(); err != nil || said != "widgets: left Widget "+s.namespace+"/first\n" {
		t.Fatalf("helm uninstall that leaves objects: error %v, and the hook said:\n%s", err, said)
	}
	testenv.Gone(t, s.admin, s.deployment(), "the operator to be uninstalled")
	testenv.Wait(t, s.admin, first, "the object, without finalizer", func(u *unstructured.Unstructured) bool {
		return u.GetDeletionTimestamp() == nil && len(u.GetFinalizers()) == 0
	})
	if err := s.admin.Get(t.Context(), client.ObjectKey{Name: "widgets.widgets.example.org"}, s.definition()); err != nil {
		t.Error("the CRD did not survive:", err)
	}
	if err := s.install(map[string]any{}); err != nil {
		t.Error("helm install, with the CRD and the object that survived:", err)
	}
}

// pack makes the operator and its package, and takes the program out of the image.
func (s *shipped) pack() {
	s.t.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		s.t.Fatal(err)
	}
	trimtab := filepath.Join(s.folder, "trimtab")
	s.run(root, "go", "build", "-o", trimtab, "./cmd/trimtab")
	s.run(s.folder, trimtab, "new", operatorName, "--kind", "Widget", "--external", "--group", "widgets.example.org", "--replace", root)
	s.run(s.folder, trimtab, "package", operatorName, "--image", "registry.example.org/widgets:v1.0.0", "--platform", "linux/"+runtime.GOARCH)
	built := filepath.Join(s.folder, "built")
	build := exec.CommandContext(s.t.Context(), "go", "build", "-trimpath", "-ldflags=-s -w", "-o", built, ".")
	build.Dir, build.Env = filepath.Join(s.folder, operatorName), append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux")
	if out, err := build.CombinedOutput(); err != nil {
		s.t.Fatalf("go build: %v\n%s", err, out)
	}
	want, err := os.ReadFile(built)
	if err != nil {
		s.t.Fatal(err)
	}
	got := s.program(filepath.Join(s.folder, "dist", "widgets.oci.tar"))
	if !bytes.Equal(got, want) {
		s.t.Error("the program in the image is not the one that the same sources make again")
	}
	s.binary = filepath.Join(s.folder, "program")
	if err := os.WriteFile(s.binary, got, 0o700); err != nil {
		s.t.Fatal(err)
	}
}

func (s *shipped) run(folder string, command ...string) {
	s.t.Helper()
	cmd := exec.CommandContext(s.t.Context(), command[0], command[1:]...)
	cmd.Dir = folder
	if out, err := cmd.CombinedOutput(); err != nil {
		s.t.Fatalf("%q: %v\n%s", command, err, out)
	}
}

// program returns the program in an archive with one image.
func (s *shipped) program(archive string) []byte {
	s.t.Helper()
	f, err := os.Open(archive)
	if err != nil {
		s.t.Fatal(err)
	}
	defer f.Close()
	for _, blob := range s.unpack(f) {
		if z, err := gzip.NewReader(bytes.NewReader(blob)); err == nil { // the layer; all others are JSON
			if program := s.unpack(z)[operatorName]; program != nil {
				return program
			}
		}
	}
	s.t.Fatal("no layer of the image contains the program")
	return nil
}

func (s *shipped) unpack(archive io.Reader) map[string][]byte {
	s.t.Helper()
	out := map[string][]byte{}
	r := tar.NewReader(archive)
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			s.t.Fatal(err)
		}
		if out[h.Name], err = io.ReadAll(r); err != nil {
			s.t.Fatal(err)
		}
	}
}

// helm returns the configuration of Helm's actions.
func (s *shipped) helm() *action.Configuration {
	s.t.Helper()
	flags := genericclioptions.NewConfigFlags(false)
	flags.APIServer, flags.Namespace = &s.cfg.Host, &s.namespace
	flags.WrapConfigFn = func(*rest.Config) *rest.Config { return rest.CopyConfig(s.cfg) }
	cfg := action.NewConfiguration(action.ConfigurationSetLogger(slog.DiscardHandler))
	if err := cfg.Init(flags, s.namespace, "secret"); err != nil {
		s.t.Fatal(err)
	}
	return cfg
}

// install is helm install --wait.
func (s *shipped) install(values map[string]any) error {
	s.t.Helper()
	i := action.NewInstall(s.helm())
	i.ReleaseName, i.Namespace, i.WaitStrategy, i.Timeout = operatorName, s.namespace, kube.StatusWatcherStrategy, patience
	c, err := loader.LoadDir(filepath.Join(s.folder, "dist", "chart", operatorName))
	if err != nil {
		s.t.Fatal(err)
	}
	_, err = i.RunWithContext(s.t.Context(), c, values)
	return err
}

// upgrade is helm upgrade, which does not wait: no node may have room.
func (s *shipped) upgrade(values map[string]any) error {
	s.t.Helper()
	u := action.NewUpgrade(s.helm())
	u.Namespace, u.WaitStrategy, u.Timeout = s.namespace, kube.HookOnlyStrategy, patience
	c, err := loader.LoadDir(filepath.Join(s.folder, "dist", "chart", operatorName))
	if err != nil {
		s.t.Fatal(err)
	}
	_, err = u.RunWithContext(s.t.Context(), operatorName, c, values)
	return err
}

// rollback is helm rollback.
func (s *shipped) rollback(revision int) error {
	s.t.Helper()
	r := action.NewRollback(s.helm())
	r.Version, r.WaitStrategy, r.Timeout = revision, kube.HookOnlyStrategy, patience
	return r.Run(operatorName)
}

// uninstall is helm uninstall. No simulated node takes the pod of the hook; the test runs it, and returns what it said.
func (s *shipped) uninstall() (string, error) {
	s.t.Helper()
	u := action.NewUninstall(s.helm())
	u.WaitStrategy, u.Timeout = kube.HookOnlyStrategy, patience
	done := make(chan error, 1)
	go func() {
		_, err := u.Run(operatorName)
		done <- err
	}()
	pods, err := s.admin.Watch(s.t.Context(), &corev1.PodList{}, client.InNamespace(s.namespace), client.MatchingLabels{"app.kubernetes.io/name": "widgets-uninstall"})
	if err != nil {
		s.t.Fatal(err)
	}
	defer pods.Stop()
	said := ""
	for {
		select {
		case err := <-done:
			return said, err
		case e := <-pods.ResultChan():
			if pod, is := e.Object.(*corev1.Pod); is && pod.Status.Phase == corev1.PodPending && pod.DeletionTimestamp == nil && said == "" {
				said = s.container(pod)
			}
		}
	}
}

// container runs the container of a pod, sets the pod to how it ended, and returns what it said.
func (s *shipped) container(pod *corev1.Pod) string {
	s.t.Helper()
	cmd := s.as(pod.Spec.ServiceAccountName, pod.Spec.Containers[0].Args)
	out, err := cmd.CombinedOutput()
	before := pod.DeepCopy() // the scheduler writes to the pod, too
	pod.Status.Phase = corev1.PodSucceeded
	if err != nil {
		pod.Status.Phase = corev1.PodFailed
	}
	if err := s.admin.Status().Patch(s.t.Context(), pod, client.MergeFrom(before)); err != nil {
		s.t.Error(err)
	}
	return string(out)
}

// as returns the program with arguments, as a service account.
func (s *shipped) as(account string, args []string, more ...string) *exec.Cmd {
	s.t.Helper()
	request := &authenticationv1.TokenRequest{}
	of := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: account}}
	if err := s.admin.SubResource("token").Create(s.t.Context(), of, request); err != nil {
		s.t.Fatal(err)
	}
	user := rest.AnonymousClientConfig(s.cfg)
	user.BearerToken = request.Status.Token
	cmd := exec.CommandContext(s.t.Context(), s.binary, slices.Concat(args, more)...)
	// A pod knows its namespace from a file, and this process from its flags.
	cmd.Args = append(cmd.Args, "--namespace="+s.namespace)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+testenv.Kubeconfig(s.t, user))
	return cmd
}

// operate runs the operator with what the chart says, until [shipped.stop] is called or the test ends.
func (s *shipped) operate() {
	s.t.Helper()
	d := testenv.Wait(s.t, s.admin, s.deployment(), "the operator", func(*appsv1.Deployment) bool { return true })
	cmd := s.as(d.Spec.Template.Spec.ServiceAccountName, d.Spec.Template.Spec.Containers[0].Args, "--metrics-address=0", "--health-address=0", "--debug-address=0")
	var log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = cmd.Wait()
	}()
	s.stop = func() {
		_ = cmd.Process.Signal(os.Interrupt)
		<-ended
	}
	s.t.Cleanup(func() {
		s.stop()
		if s.t.Failed() {
			s.t.Logf("the operator:\n%s", &log)
		}
	})
}

func (s *shipped) deployment() *appsv1.Deployment {
	return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: operatorName}}
}

func (s *shipped) definition() *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetAPIVersion("apiextensions.k8s.io/v1")
	u.SetKind("CustomResourceDefinition")
	u.SetName("widgets.widgets.example.org")
	return u
}

func (s *shipped) widget() *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"size": "small"}}}
	u.SetAPIVersion("widgets.example.org/v1alpha1")
	u.SetKind("Widget")
	u.SetNamespace(s.namespace)
	u.SetName("first")
	return u
}

func ready(u *unstructured.Unstructured) bool {
	conditions, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	return slices.ContainsFunc(conditions, func(c any) bool {
		fields, _ := c.(map[string]any)
		return fields["type"] == "Ready" && fields["status"] == "True"
	})
}

// forget removes what belongs to no namespace.
func (s *shipped) forget() {
	ctx := context.WithoutCancel(s.t.Context())
	for _, kind := range []string{"ClusterRole", "ClusterRoleBinding"} {
		u := &unstructured.Unstructured{}
		u.SetAPIVersion("rbac.authorization.k8s.io/v1")
		u.SetKind(kind)
		u.SetName(operatorName)
		if err := s.admin.Delete(ctx, u); client.IgnoreNotFound(err) != nil {
			s.t.Error(err)
		}
	}
	for _, kind := range []string{"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"} {
		u := &unstructured.Unstructured{}
		u.SetAPIVersion("admissionregistration.k8s.io/v1")
		u.SetKind(kind)
		u.SetName(operatorName + "-records")
		if err := s.admin.Delete(ctx, u); client.IgnoreNotFound(err) != nil {
			s.t.Error(err)
		}
	}
	if err := s.admin.Delete(ctx, s.definition()); client.IgnoreNotFound(err) != nil {
		s.t.Error(err)
	}
}
