package devcluster_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	toolswatch "k8s.io/client-go/tools/watch"

	"github.com/trimtab-dev/trimtab/internal/controlplane"
	"github.com/trimtab-dev/trimtab/internal/poll"
)

// patience is how long anything may take on a busy machine before a test fails.
const patience = poll.Patience

// cluster is a devcluster process and the administrator's access to it.
type cluster struct {
	// What the ready line says.
	Ready      bool
	URL        string
	Kubeconfig string
	Version    string
	PID        int
	Seconds    float64
	Data       string

	// took is how long the ready line took from outside.
	took   time.Duration
	config *rest.Config
	kube   kubernetes.Interface
	dyn    dynamic.Interface

	cmd    *exec.Cmd
	stdin  io.Closer
	stderr *bytes.Buffer
	// gone is closed after the process has ended and left in err.
	gone chan struct{}
	err  error
}

// launch starts a process and waits for its ready line. It stops when its
// standard input is closed, so it goes with the test binary.
func launch(ctx context.Context, env []string, args ...string) (*cluster, error) {
	devcluster, err := controlplane.Binary(ctx, controlplane.Print(os.Stderr))
	if err != nil {
		return nil, err
	}
	c := &cluster{stderr: &bytes.Buffer{}, gone: make(chan struct{})}
	// The end of ctx is told by standard input, as the end of a parent is.
	c.cmd = exec.CommandContext(context.WithoutCancel(ctx), devcluster, append(args, "--with-parent")...)
	c.cmd.Env = append(os.Environ(), env...)
	c.cmd.Stderr = c.stderr
	stdout, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if c.stdin, err = c.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	began := time.Now()
	if err := c.cmd.Start(); err != nil {
		return nil, err
	}
	defer context.AfterFunc(ctx, func() { _ = c.stdin.Close() })()
	out := bufio.NewReader(stdout)
	line, readErr := out.ReadBytes('\n')
	c.took = time.Since(began)
	rest := &bytes.Buffer{}
	go func() {
		defer close(c.gone)
		_, _ = io.Copy(rest, out)
		c.err = c.cmd.Wait()
		if rest.Len() > 0 {
			c.err = errors.Join(c.err, fmt.Errorf("more than one line on standard output: %q", rest))
		}
	}()
	if readErr != nil {
		<-c.gone
		return nil, &startError{exit: c.cmd.ProcessState.ExitCode(), stderr: c.stderr.String()}
	}
	if err := json.Unmarshal(line, c); err != nil {
		return nil, errors.Join(fmt.Errorf("ready line %q: %w", line, err), c.terminate())
	}
	if err := c.connect(); err != nil {
		return nil, errors.Join(err, c.terminate())
	}
	return c, nil
}

// startError is how a process ended that never was ready.
type startError struct {
	exit   int
	stderr string
}

func (e *startError) Error() string { return fmt.Sprintf("exit code %d: %s", e.exit, e.stderr) }

func (c *cluster) connect() error {
	var err error
	if c.config, err = clientcmd.BuildConfigFromFlags("", c.Kubeconfig); err != nil {
		return err
	}
	c.config.QPS = -1
	if c.kube, err = kubernetes.NewForConfig(c.config); err != nil {
		return err
	}
	c.dyn, err = dynamic.NewForConfig(c.config)
	return err
}

// terminate sends SIGTERM and waits for an orderly end.
func (c *cluster) terminate() error {
	if err := c.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	return c.wait()
}

func (c *cluster) wait() error {
	select {
	case <-c.gone:
	case <-time.After(patience):
		return errors.Join(fmt.Errorf("the process is still there after %s", patience), c.cmd.Process.Kill())
	}
	if c.err != nil {
		return fmt.Errorf("%w; on standard error: %s", c.err, c.stderr)
	}
	return nil
}

// start is launch for a test that needs a cluster of its own.
func start(tb testing.TB, env []string, args ...string) *cluster {
	tb.Helper()
	c, err := launch(tb.Context(), env, args...)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := c.terminate(); err != nil {
			tb.Error(err)
		}
	})
	return c
}

// namespace makes a namespace for one test. It is not waited for in the end:
// the cluster goes as a whole.
func (c *cluster) namespace(t *testing.T) string {
	t.Helper()
	ns, err := c.kube.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return ns.Name
}

func (c *cluster) configMap(t *testing.T, ns, name string, owners ...metav1.OwnerReference) *corev1.ConfigMap {
	t.Helper()
	cm, err := c.kube.CoreV1().ConfigMaps(ns).Create(t.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: name, OwnerReferences: owners},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return cm
}

var (
	configMaps  = corev1.SchemeGroupVersion.WithResource("configmaps")
	namespaces  = corev1.SchemeGroupVersion.WithResource("namespaces")
	deployments = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	jobs        = schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "jobs"}
	crds        = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	apiServices = schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"}
)

// await watches one object until done says so. An object that is not there is
// nil.
func (c *cluster) await(t *testing.T, what string, r schema.GroupVersionResource, ns, name string, done func(*unstructured.Unstructured) bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	byName := fields.OneTermEqualSelector("metadata.name", name).String()
	lw := cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			o.FieldSelector = byName
			return c.dyn.Resource(r).Namespace(ns).List(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.FieldSelector = byName
			return c.dyn.Resource(r).Namespace(ns).Watch(ctx, o)
		},
	}, c.dyn)
	var last *unstructured.Unstructured
	atFirst := func(store cache.Store) (bool, error) {
		return len(store.List()) == 0 && done(nil), nil
	}
	_, err := toolswatch.UntilWithSync(ctx, lw, &unstructured.Unstructured{}, atFirst, func(e watch.Event) (bool, error) {
		last, _ = e.Object.(*unstructured.Unstructured)
		if e.Type == watch.Deleted {
			last = nil
		}
		return done(last), nil
	})
	if err != nil {
		t.Fatalf("%s: %v; last seen: %v", what, err, last)
	}
}

func absent(o *unstructured.Unstructured) bool { return o == nil }

// condition tells whether a condition is True.
func condition(kind string) func(*unstructured.Unstructured) bool {
	return func(o *unstructured.Unstructured) bool {
		if o == nil {
			return false
		}
		conditions, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
		for _, c := range conditions {
			if m, ok := c.(map[string]any); ok && m["type"] == kind && m["status"] == "True" {
				return true
			}
		}
		return false
	}
}

// eventually asks again until the answer is nil. It is for what the server
// learns in the background without showing it in an object.
func eventually(t *testing.T, what string, ask func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		err := ask(ctx)
		if err == nil {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("%s: %v", what, err)
		}
	}
}

// wantReason fails unless the API server refused for this reason.
func wantReason(t *testing.T, err error, want metav1.StatusReason) {
	t.Helper()
	if got := apierrors.ReasonForError(err); err == nil || got != want {
		t.Errorf("error %v with reason %q, want reason %q", err, got, want)
	}
}
