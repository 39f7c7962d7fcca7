package browser

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/chromedp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/trimtab-dev/trimtab/internal/poll"
	"github.com/trimtab-dev/trimtab/testenv"
)

// shop is what a cluster has in which some things are not ready. Nobody works on its objects: each has the status that it is
// given.
const shop = `
apiVersion: cloud.trimtab.dev/v1
kind: Instance
metadata: {name: orders}
spec: {size: small, login: {name: login}, connection: {name: connection}}
status:
  observedGeneration: 1
  state: Failed
  message: 'cannot create instance "orders": quota exceeded (10/10 instances); attempt 4'
  conditions:
  - {type: Ready, status: "False", reason: CreateFailed, message: 'cannot create instance "orders": quota exceeded (10/10 instances); attempt 4', lastTransitionTime: "2026-01-02T03:04:05Z"}
  - {type: Failed, status: "True", reason: CreateFailed, message: attempt 4, lastTransitionTime: "2026-01-02T03:04:05Z"}
---
apiVersion: cloud.trimtab.dev/v1
kind: Instance
metadata: {name: billing}
spec: {size: small, login: {name: login}, connection: {name: connection}}
status:
  observedGeneration: 1
  state: Succeeded
  external: {id: i-7, status: running}
  conditions: [{type: Ready, status: "True", reason: Succeeded, message: "", lastTransitionTime: "2026-01-02T03:04:05Z"}]
---
apiVersion: cloud.trimtab.dev/v1
kind: Instance
metadata: {name: search}
spec: {size: small, login: {name: login}, connection: {name: connection}}
status:
  observedGeneration: 1
  state: Updating
  message: 'the update of instance "search" is under way: size from small to large'
  conditions: [{type: Ready, status: Unknown, reason: Updating, message: "", lastTransitionTime: "2026-02-02T03:04:05Z"}]
---
apiVersion: webpages.trimtab.dev/v1
kind: WebPage
metadata: {name: front}
spec: {html: "<html></html>"}
status:
  observedGeneration: 1
  state: Waiting
  message: Deployment "front" is not ready
  conditions: [{type: Ready, status: Unknown, reason: Waiting, message: Deployment "front" is not ready, lastTransitionTime: "2026-01-05T03:04:05Z"}]
---
apiVersion: v1
kind: ConfigMap
metadata: {name: front, annotations: {owner: WebPage/front}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: front, annotations: {owner: WebPage/front}}
spec:
  selector: {matchLabels: {app: front}}
  template: {metadata: {labels: {app: front}}, spec: {nodeSelector: {disk: fast}, containers: [{name: c, image: nginx}]}}
`

// folder has what is built once for all tests. It is empty if nothing is.
var folder string

// program builds trimtab when it is used first.
var program = sync.OnceValues(func() (string, error) {
	var err error
	if folder, err = os.MkdirTemp("", "trimtab-browser-"); err != nil {
		return "", err
	}
	file := filepath.Join(folder, "trimtab")
	if out, err := exec.Command("go", "build", "-o", file, "github.com/trimtab-dev/trimtab/cmd/trimtab").CombinedOutput(); err != nil {
		return "", fmt.Errorf("build trimtab: %w\n%s", err, out)
	}
	return file, nil
})

func TestMain(m *testing.M) {
	code := m.Run()
	if folder != "" {
		_ = os.RemoveAll(folder)
	}
	os.Exit(code)
}

// world is a namespace with the shop, and a browser that shows the dashboard of it.
type world struct {
	t         *testing.T
	cfg       *rest.Config
	client    client.WithWatch
	namespace string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	cfg := testenv.Start(t)
	testenv.InstallFS(t, cfg, os.DirFS("../../samples/cloud/crds"))
	testenv.InstallFS(t, cfg, os.DirFS("../../samples/webpage/crds"))
	testenv.InstallFS(t, cfg, os.DirFS("../../samples/guestbook/crds"))
	w := &world{t: t, cfg: cfg, client: testenv.Client(t, cfg, clientgoscheme.AddToScheme), namespace: testenv.Namespace(t, cfg)}
	owners := map[string]*unstructured.Unstructured{}
	for text := range strings.SplitSeq(shop, "\n---\n") {
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
			t.Fatal(err)
		}
		u.SetNamespace(w.namespace)
		if owner := owners[u.GetAnnotations()["owner"]]; owner != nil {
			u.SetAnnotations(nil)
			ref := map[string]any{"apiVersion": owner.GetAPIVersion(), "kind": owner.GetKind(), "name": owner.GetName(), "uid": string(owner.GetUID()), "controller": true}
			if err := unstructured.SetNestedSlice(u.Object, []any{ref}, "metadata", "ownerReferences"); err != nil {
				t.Fatal(err)
			}
		}
		status, has := u.Object["status"]
		if err := w.client.Create(t.Context(), u); err != nil {
			t.Fatal(err)
		}
		if has {
			w.status(u, status)
		}
		owners[u.GetKind()+"/"+u.GetName()] = u
	}
	return w
}

// status gives an object a status.
func (w *world) status(u *unstructured.Unstructured, status any) {
	w.t.Helper()
	body, err := json.Marshal(map[string]any{"status": status})
	if err == nil {
		err = w.client.Status().Patch(w.t.Context(), u, client.RawPatch(types.MergePatchType, body))
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

// object names one of the shop's objects.
func (w *world) object(apiVersion, kind, name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetAPIVersion(apiVersion)
	u.SetKind(kind)
	u.SetNamespace(w.namespace)
	u.SetName(name)
	return u
}

// serve starts trimtab ui with a configuration and flags, and returns the address that it prints. It ends with the test.
func (w *world) serve(cfg *rest.Config, flags ...string) string {
	w.t.Helper()
	program, err := program()
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(w.t.Context()))
	cmd := exec.CommandContext(ctx, program, append([]string{"ui", "--address", "127.0.0.1:0", "-n", w.namespace}, flags...)...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+testenv.Kubeconfig(w.t, cfg), "HOME="+w.t.TempDir())
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		w.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		stop()
		_ = cmd.Wait()
		if code := cmd.ProcessState.ExitCode(); code != 0 {
			w.t.Errorf("trimtab ui ended with exit code %d", code)
		}
	})
	address, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		w.t.Fatal(err)
	}
	return strings.TrimSpace(address)
}

// browse starts a browser of its own and returns its context.
func browse(t *testing.T) context.Context {
	t.Helper()
	program, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("install Debian's package chromium to test the dashboard")
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(program), chromedp.NoSandbox, chromedp.DisableGPU, chromedp.UserDataDir(t.TempDir()),
		chromedp.WSURLReadTimeout(poll.Patience),
		// It is to ask nobody but the dashboard.
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-background-networking", true),
		chromedp.Flag("disable-component-update", true), chromedp.Flag("disable-sync", true),
	)
	allocated, stop := chromedp.NewExecAllocator(context.WithoutCancel(t.Context()), options...)
	t.Cleanup(stop)
	ctx, end := chromedp.NewContext(allocated)
	t.Cleanup(end)
	if err := chromedp.Do(ctx); err != nil { // starts it, for as long as ctx lasts
		t.Fatal(err)
	}
	return ctx
}
