package operator_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/spf13/pflag"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/internal/poll"
	"github.com/trimtab-dev/trimtab/internal/probe"
	"github.com/trimtab-dev/trimtab/loop"
	"github.com/trimtab-dev/trimtab/operator"
	"github.com/trimtab-dev/trimtab/trigger"
)

const (
	// asOperator makes the test binary an operator of that name.
	asOperator = "TRIMTAB_TEST_AS_OPERATOR"
	// notInstalled is an operator whose CRD no test installs.
	notInstalled = "not-installed"
)

// host greets as its flags say.
type host struct {
	word       string
	until      string
	hang       bool
	fromSecret bool
}

func (h *host) Reconcile(ctx context.Context, r *loop.Run[*probe.Probe]) loop.Outcome {
	if h.hang {
		select {} // on purpose against all rules
	}
	word := h.word
	if h.fromSecret {
		secret := &corev1.Secret{}
		if err := r.Client().Get(ctx, client.ObjectKeyFromObject(r.Obj), secret); err != nil {
			return loop.Fail(err)
		}
		word = string(secret.Data["word"])
	}
	if err := exists(ctx, h.until); err != nil {
		return loop.Fail(err)
	}
	r.Obj.Status.Note = word + ", " + r.Obj.Name
	r.Conditions().True("Ready", "Greeted", "")
	r.SetState("Greeted", "", "")
	return loop.Done()
}

// exists waits for a file, unless its name is empty.
func exists(ctx context.Context, file string) error {
	for file != "" {
		if _, err := os.Stat(file); err == nil {
			return nil
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// withSource is the name of an operator whose controller also watches another kind.
const withSource = "missing-source"

// testOperator is what the processes of these tests run.
func testOperator(name string) operator.Options {
	h := &host{}
	o := operator.Options{
		Name:        name,
		AddToScheme: probe.AddToScheme,
		CRDs:        probe.CRDs,
		Flags: func(f *pflag.FlagSet) {
			f.StringVar(&h.word, "greeting", "hello", "what to say")
			f.StringVar(&h.until, "until", "", "the file whose creation ends each pass")
			f.BoolVar(&h.hang, "hang", false, "never end a pass")
			f.BoolVar(&h.fromSecret, "from-secret", false, "say what the Secret of the object's name holds")
		},
		Controllers: func() ([]operator.Controller, error) {
			secrets := loop.Need{GroupVersionKind: corev1.SchemeGroupVersion.WithKind("Secret"), Verbs: []string{"get"}}
			// A source that follows names makes the manager wait for the cache before it starts.
			named := trigger.Reference[*probe.Probe]{To: &probe.Probe{}, Names: func(p *probe.Probe) []types.NamespacedName {
				return []types.NamespacedName{{Namespace: p.Namespace, Name: p.Spec.Needs}}
			}}
			sources := []trigger.Source[*probe.Probe]{named}
			if name == withSource {
				sources = append(sources, trigger.Owned[*probe.Probe]{Of: &corev1.ConfigMap{}})
			}
			return []operator.Controller{loop.New(h, loop.Options[*probe.Probe]{Needs: []loop.Need{secrets}, Sources: sources})}, nil
		},
	}
	if name == besides {
		o.Setup, o.Needs = copyNotes, []loop.Need{{GroupVersionKind: corev1.SchemeGroupVersion.WithKind("ConfigMap"), Verbs: []string{"create"}}}
	}
	if name == notInstalled {
		o.AddToScheme, o.CRDs = elsewhere, changedCRDs("probe.trimtab.dev", "elsewhere.trimtab.dev")
	}
	return o
}

// elsewhere registers Probe in a group that no server of the tests knows.
func elsewhere(s *runtime.Scheme) error {
	gv := schema.GroupVersion{Group: "elsewhere.trimtab.dev", Version: "v1"}
	s.AddKnownTypes(gv, &probe.Probe{}, &probe.ProbeList{})
	metav1.AddToGroupVersion(s, gv)
	return nil
}

// changedCRDs is the definition of Probe with one text in place of another.
func changedCRDs(before, after string) fs.FS {
	names, err := fs.Glob(probe.CRDs, "crds/*.yaml")
	if err != nil {
		panic(err)
	}
	data, err := fs.ReadFile(probe.CRDs, names[0])
	if err != nil {
		panic(err)
	}
	return fstest.MapFS{"x.yaml": {Data: bytes.ReplaceAll(data, []byte(before), []byte(after))}}
}

func token(t *testing.T, in installed) string {
	t.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: in.namespace, Name: in.name}}
	request := &authenticationv1.TokenRequest{}
	if err := in.client.SubResource("token").Create(t.Context(), account, request); err != nil {
		t.Fatal(err)
	}
	return request.Status.Token
}

func writeKubeconfig(t *testing.T, cfg *rest.Config, token, namespace string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	err := clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"c": {Server: cfg.Host, CertificateAuthorityData: cfg.CAData, CertificateAuthority: cfg.CAFile}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"u": {Token: token}},
		Contexts:       map[string]*clientcmdapi.Context{"x": {Cluster: "c", AuthInfo: "u", Namespace: namespace}},
		CurrentContext: "x",
	}, file)
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// running is an operator in a process of its own.
type running struct {
	namespace string
	cmd       *exec.Cmd
	ended     chan struct{}

	mu     sync.Mutex
	stdout bytes.Buffer
	stderr bytes.Buffer
}

// part of the process's output, guarded.
type output struct {
	r   *running
	buf *bytes.Buffer
}

func (o output) Write(b []byte) (int, error) {
	o.r.mu.Lock()
	defer o.r.mu.Unlock()
	return o.buf.Write(b)
}

func (o *running) log() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.stderr.String()
}

func (o *running) out() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.stdout.String()
}

// command is the operator with free ports and a trace on its standard output.
func command(t *testing.T, in installed, args ...string) *running {
	t.Helper()
	o := &running{namespace: in.namespace, ended: make(chan struct{})}
	args = append([]string{"manager", "--metrics-address=127.0.0.1:0", "--health-address=127.0.0.1:0", "--debug-address=127.0.0.1:0", "--trace=-"}, args...)
	o.cmd = exec.CommandContext(t.Context(), os.Args[0], args...)
	o.cmd.Env = append(os.Environ(), asOperator+"="+in.name, "KUBECONFIG="+in.kubeconfig, "HOME="+t.TempDir())
	o.cmd.Stdout, o.cmd.Stderr = output{o, &o.stdout}, output{o, &o.stderr}
	return o
}

func startOperator(t *testing.T, in installed, args ...string) *running {
	t.Helper()
	o := command(t, in, args...)
	if err := o.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(o.ended)
		_ = o.cmd.Wait()
	}()
	t.Cleanup(func() {
		_ = o.cmd.Process.Kill()
		<-o.ended
	})
	return o
}

// runOperator is for operators that end by themselves.
func runOperator(t *testing.T, in installed, args ...string) ran {
	t.Helper()
	o := startOperator(t, in, args...)
	select {
	case <-o.ended:
	case <-time.After(poll.Patience):
		t.Fatalf("the operator did not give up; log:\n%s", o.log())
	}
	return ran{o.cmd.ProcessState.ExitCode(), o.out(), o.log()}
}

// address is where the operator says it listens.
func (o *running) address(t *testing.T, flag string) string {
	t.Helper()
	var line map[string]any
	o.poll(t, "the operator to say where it listens", func() bool {
		for text := range strings.Lines(o.log()) {
			if err := json.Unmarshal([]byte(text), &line); err == nil && line["msg"] == "starting" {
				return true
			}
		}
		return false
	})
	return fmt.Sprint(line[flag])
}

// get returns what the operator answers, whatever the code.
func (o *running) get(t *testing.T, flag, path string) string {
	t.Helper()
	body, _ := o.request(t, flag, path)
	return body
}

func (o *running) request(t *testing.T, flag, path string) (string, int) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+o.address(t, flag)+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatalf("%v; log:\n%s", err, o.log())
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body), resp.StatusCode
}

// await asks for a path of the health server until the answer has code and contains want.
func (o *running) await(t *testing.T, path, want string, code int) {
	t.Helper()
	body, got := "", 0
	defer func() {
		if t.Failed() {
			t.Logf("last answer to %s: %d %s", path, got, body)
		}
	}()
	o.poll(t, fmt.Sprintf("%s to answer %d %q", path, code, want), func() bool {
		body, got = o.request(t, "health-address", path)
		return got == code && strings.Contains(body, want)
	})
}

func (o *running) awaitReady(t *testing.T) {
	t.Helper()
	o.await(t, "/readyz", "ok", http.StatusOK)
}

// awaitPass waits for the beginning of a pass over an object in the operator's namespace.
func (o *running) awaitPass(t *testing.T) {
	t.Helper()
	o.poll(t, "a pass to begin", func() bool { return len(o.passes(t, "start")) > 0 })
}

// poll looks again and again until ok, because HTTP has no watch.
func (o *running) poll(t *testing.T, what string, ok func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), poll.Patience)
	defer cancel()
	for !ok() {
		select {
		case <-ctx.Done():
			t.Fatalf("waited for %s; log:\n%s", what, o.log())
		case <-o.ended:
			if !ok() {
				t.Fatalf("the operator ended before %s; log:\n%s", what, o.log())
			}
		case <-time.After(20 * time.Millisecond):
		}
	}
}
