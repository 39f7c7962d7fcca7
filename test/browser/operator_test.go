package browser

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	rbacv1 "k8s.io/api/rbac/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/operator/operatortest"
	"github.com/trimtab-dev/trimtab/testenv"
)

// operatorWorld is a namespace in which the operator of samples/folder runs, in a process of its own and under its own roles.
type operatorWorld struct {
	world
	operator *operatortest.Process
	debug    string // its debug address
}

func newOperatorWorld(t *testing.T) *operatorWorld {
	t.Helper()
	cfg := testenv.Start(t)
	testenv.InstallFS(t, cfg, os.DirFS("../../samples/folder/crds"))
	w := &operatorWorld{world: world{t: t, cfg: cfg, client: testenv.Client(t, cfg, clientgoscheme.AddToScheme), namespace: testenv.Namespace(t, cfg)}}
	binary := operatortest.Build(t, "github.com/trimtab-dev/trimtab/samples/folder")
	flags := []string{"--watch-namespaces=" + w.namespace, "--installation=" + w.namespace}
	account := binary.Install(t, cfg, w.namespace, flags...)
	w.operator = binary.Start(t, account, append(flags, "--root="+t.TempDir(), "--debug-address=127.0.0.1:0")...)
	w.operator.Ready()
	for text := range strings.Lines(w.operator.Log()) {
		var line map[string]any
		if json.Unmarshal([]byte(text), &line) == nil && line["msg"] == "starting" {
			w.debug, _ = line["debug-address"].(string)
		}
	}
	w.folder("orders")
	return w
}

// folder creates one.
func (w *operatorWorld) folder(name string) {
	w.t.Helper()
	if err := w.client.Create(w.t.Context(), w.object("folders.trimtab.dev/v1", "Folder", name)); err != nil {
		w.t.Fatal(err)
	}
}

// permit gives the operator a permission for the status of folders, or takes it.
func (w *operatorWorld) permit(verbs ...string) {
	w.t.Helper()
	role := &rbacv1.ClusterRole{}
	if err := w.client.Get(w.t.Context(), client.ObjectKey{Name: w.namespace}, role); err != nil {
		w.t.Fatal(err)
	}
	at := slices.IndexFunc(role.Rules, func(r rbacv1.PolicyRule) bool { return slices.Contains(r.Resources, "folders/status") })
	role.Rules[at].Verbs = verbs
	if err := w.client.Update(w.t.Context(), role); err != nil {
		w.t.Fatal(err)
	}
}

// verdict is an expression for the first sentence of the page.
const verdict = `document.getElementById("verdict").innerText`

// TestOperator looks at an operator as somebody does who looks after it: from outside, while it is well, while it is not, and when it
// has gone.
func TestOperator(t *testing.T) {
	t.Parallel()
	ctx := browse(t)
	w := newOperatorWorld(t)
	b := tab{t, ctx}
	b.run(scheme("light"), chromedp.EmulateViewport(1280, 1600))
	for _, step := range []struct {
		name string
		do   func(tab, *operatorWorld)
	}{{"outside", outside}, {"well", well}, {"denied", denied}, {"text", hostile}, {"away", away}} {
		if !t.Run(step.name, func(t *testing.T) { step.do(tab{t, ctx}, w) }) {
			return // each goes on where the one before it has ended
		}
	}
}

// outside: of an operator that is not asked, its lease is known, and what to do to ask it.
func outside(b tab, w *operatorWorld) {
	b.run(chromedp.Navigate(w.serve(w.cfg)))
	b.until("the first page", `document.querySelector("h1").innerText === "Nothing needs attention"`)
	b.run(chromedp.Click(chromedp.CSS(`header a[href="#/operator"]`)))
	b.until("the leader", `document.querySelectorAll("#leaders tbody tr").length === 1`)
	if got, want := eval[string](b, verdict), "! Operator "+w.namespace+"/"+w.namespace+" leads. What it does inside, "; !strings.HasPrefix(got, want) {
		b.t.Errorf("it says %q, want %q", got, want)
	}
	row := eval[[]string](b, text("#leaders tbody td"))
	host, err := os.Hostname()
	if err != nil {
		b.t.Fatal(err)
	}
	if !strings.HasPrefix(row[1], "✔ "+host+"_") || row[3] != "Folder" || !strings.Contains(row[4], "is no Pod of namespace "+w.namespace+"; use the debug-address that it logs") {
		b.t.Errorf("the leader is %q", row)
	}
	if got := eval[[]string](b, text("#queue, #denied")); len(got) > 0 {
		b.t.Errorf("of an operator that is not asked, it says %q", got)
	}
	inspectLooks(b)
}

// well: an operator that is well says so in the first sentence, and what it does.
func well(b tab, w *operatorWorld) {
	b.run(chromedp.Navigate(w.serve(w.cfg, "--operator", "http://"+w.debug)))
	b.until("the first page", `!!document.querySelector(".counts")`)
	b.run(chromedp.KeyEvent("?"))
	b.until("the keys", `document.getElementById("help").innerText.includes("the operator")`)
	b.run(script(`document.getElementById("help").close()`), chromedp.KeyEvent("o"))
	b.until("the verdict", `/^✔ Operator folder is well: it leads, all \d+ health checks pass, and no pass of the last .* failed\.$/.test(`+verdict+`)`)
	queue := eval[[]string](b, text("#queue tbody td"))
	if len(queue) != 8 || queue[0] != "folder" || queue[1] != "0" || !strings.HasPrefix(queue[2], "0 of ") || queue[3] == "0" || queue[4] != "0 (0%)" {
		b.t.Errorf("the queue is %q", queue)
	}
	if got := eval[[]string](b, text("#causes tbody tr")); len(got) == 0 || !strings.Contains(strings.Join(got, "\n"), "folder event an object or a source changed") {
		b.t.Errorf("causes %q", got)
	}
	if got := eval[[]string](b, text("#busiest .rows a")); len(got) != 1 || !strings.HasPrefix(got[0], "Folder orders ") || !strings.Contains(got[0], "last: ") {
		b.t.Errorf("the busiest objects are %q", got)
	}
	requests := strings.Join(eval[[]string](b, text("#requests tr")), "\n")
	for _, part := range []string{"patch folders.folders.trimtab.dev/status ", "watch folders.folders.trimtab.dev ", "update leases.coordination.k8s.io "} {
		if !strings.Contains(requests, part) {
			b.t.Errorf("the requests lack %s:\n%s", part, requests)
		}
	}
	if got := eval[[]string](b, text("#requests strong")); len(got) != 1 || got[0] == "0" {
		b.t.Errorf("requests for a pass: %q", got)
	}
	if got := eval[[]string](b, text("#denied p")); len(got) != 1 || got[0] != "✔ None since the start of the process." {
		b.t.Errorf("permissions denied: %q", got)
	}
	if got := eval[[]string](b, text("#findings")); len(got) > 0 {
		b.t.Errorf("it is well, and there is %q", got)
	}
	picture(b, "operator")
	inspectLooks(b)
	b.run(chromedp.KeyEvent("j"), chromedp.KeyEvent("\r"))
	b.until("the object", `document.querySelector("h1").innerText.startsWith("Folder orders")`)
	b.run(chromedp.KeyEvent("o"))
	b.until("the operator again", `!!document.getElementById("queue")`)
}

// denied: a permission that was taken from the operator is what the first sentence is about, with the command that gives it back.
func denied(b tab, w *operatorWorld) {
	w.permit("get")
	w.folder("billing")
	permission := "patch folders.folders.trimtab.dev/status in namespace " + w.namespace
	b.until("the verdict", verdict+`.startsWith("✗ Operator folder is not well: the operator lacks the permission to `+permission+`")`)
	if got := eval[[]string](b, text("#findings .panel"))[0]; !strings.Contains(got, permission+" was refused, ") || !strings.Contains(got, "What to do: apply the roles that the operator prints") {
		b.t.Errorf("the finding is %q", got)
	}
	if got := eval[[]string](b, text("#findings code")); len(got) != 1 || !strings.HasPrefix(got[0], "folder manifests rbac --namespace "+w.namespace) {
		b.t.Errorf("the command is %q", got)
	}
	row := eval[[]string](b, text("#denied tbody td"))
	if len(row) != 4 || row[0] != permission+", for billing" || row[1] == "0" || row[3] != "✗ it does not have the permission" {
		b.t.Errorf("permissions denied: %q", row)
	}
	b.until("the failed passes", `document.querySelector("#busiest .message .bad").innerText.includes("failed")`)
	inspectLooks(b)
	w.permit("patch")
	b.until("the verdict", verdict+`.startsWith("✔ Operator folder is well") && document.querySelectorAll("#denied tbody td")[3].innerText.startsWith("! it has the permission")`)
}

// hostile: what an operator says is text.
func hostile(b tab, w *operatorWorld) {
	const markup = `<img src=x onerror="window.hacked=1"><script>window.hacked=1</script>`
	said, err := json.Marshal(map[string]any{"name": markup, "version": markup, "failing": []any{map[string]any{"endpoint": "readyz", "name": markup, "problem": markup}}, "missing": []string{markup}, "grant": markup})
	if err != nil {
		b.t.Fatal(err)
	}
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/debug/operator" {
			_, _ = rw.Write(said)
		}
	}))
	b.t.Cleanup(server.Close)
	b.run(chromedp.Navigate(w.serve(w.cfg, "--operator", server.URL)))
	b.until("the first page", `!!document.querySelector(".counts")`)
	b.run(chromedp.KeyEvent("o"))
	b.until("the text", `document.querySelectorAll("#findings .panel").length === 2 && document.getElementById("findings").innerText.includes("onerror")`)
	if eval[bool](b, `"hacked" in window || !!document.querySelector("main img, main script")`) {
		b.t.Error("what an operator says is taken for markup")
	}
}

// away: an operator that has ended does not answer, and the page says so.
func away(b tab, w *operatorWorld) {
	b.run(chromedp.Navigate(w.serve(w.cfg, "--operator", "http://"+w.debug)))
	b.until("the first page", `!!document.querySelector(".counts")`)
	b.run(chromedp.KeyEvent("o"))
	b.until("the operator", verdict+`.startsWith("✔ ")`)
	w.operator.Kill()
	b.until("the verdict", verdict+`.startsWith("✗ The operator does not answer: ")`)
	if !strings.Contains(eval[string](b, verdict), w.debug) {
		b.t.Errorf("it does not say where it was asked: %q", eval[string](b, verdict))
	}
	inspectLooks(b)
}

// inspectLooks: in light and dark, from the narrowest to the widest screen, everything can be read, and no cell of a table is without
// the words that say what it is.
func inspectLooks(b tab) {
	b.t.Helper()
	for _, preferred := range []string{"dark", "light"} {
		b.run(scheme(preferred))
		if low := eval[[]string](b, contrasts); len(low) > 0 {
			b.t.Errorf("%s: too little contrast of %q", preferred, low)
		}
		for _, width := range []int64{320, 768, 3840, 1280} {
			b.run(chromedp.EmulateViewport(width, 1600))
			if wide := eval[int64](b, `document.documentElement.scrollWidth`); wide > width {
				b.t.Errorf("%s at %d pixels: the page is %d wide", preferred, width, wide)
			}
			if width == 320 && !eval[bool](b, `[...document.querySelectorAll("td")].every(e => getComputedStyle(e, "::before").content.length > 4)`) {
				b.t.Error("on a narrow screen, cells of tables are without their heads")
			}
		}
	}
}
