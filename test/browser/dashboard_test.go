package browser

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/internal/poll"
	"github.com/trimtab-dev/trimtab/testenv"
)

// tab is a page of the browser.
type tab struct {
	t   *testing.T
	ctx context.Context
}

// do does one thing.
func do[T any](b tab, what string, action chromedp.Action[T]) T {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, poll.Patience)
	defer cancel()
	value, err := chromedp.Run(ctx, action)
	if err != nil {
		text, _ := chromedp.Run(b.ctx, chromedp.Evaluate[string](`document.body.innerText`))
		b.t.Fatalf("%s: %v; the page says:\n%s", what, err, text)
	}
	return value
}

func (b tab) run(actions ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	for n, action := range actions {
		do(b, fmt.Sprintf("action %d", n+1), action)
	}
}

// until waits until an expression is true. While a page is not there, it throws, as it looks for parts of it.
func (b tab) until(what, expression string) {
	b.t.Helper()
	quiet := "(() => { try { return " + expression + " } catch { return false } })()"
	do(b, "wait for "+what, chromedp.Poll[chromedp.Void](quiet, chromedp.WithPollingTimeout(0)))
}

// eval returns what an expression is.
func eval[T any](b tab, expression string) T {
	b.t.Helper()
	return do(b, expression, chromedp.Evaluate[T](expression))
}

// script runs an expression.
func script(expression string) chromedp.Action[chromedp.Void] {
	return chromedp.Evaluate[chromedp.Void](expression)
}

// key is a key that types a sign, unless the page takes it for something else: chromedp.KeyEvent types it in any case.
func key(sign string) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, input.DispatchKeyEvent, input.DispatchKeyEventParams{Type: input.DispatchKeyEventTypeKeyDown, Key: sign, Text: sign})
		return err
	})
}

// scheme has the page think that its reader prefers light or dark.
func scheme(name string) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: name}},
		})
		return err
	})
}

// text is an expression for the texts of all elements that a selector matches.
func text(selector string) string {
	return fmt.Sprintf(`[...document.querySelectorAll(%q)].map(e => e.innerText.replace(/\s+/g, " ").trim())`, selector)
}

// TestDashboard goes through the dashboard as a person does.
func TestDashboard(t *testing.T) {
	ctx := browse(t)
	w := newWorld(t)
	b := tab{t, ctx}
	address := w.serve(w.cfg)
	b.run(scheme("light"),
		chromedp.EmulateViewport(1280, 800), chromedp.Navigate(address))

	for _, step := range []struct {
		name string
		do   func(tab, *world)
	}{{"attention", attention}, {"keys", keys}, {"states", states}, {"axis", onAxis}, {"countdown", countdown}, {"waves", waves}, {"why", why}, {"live", live}, {"act", act}, {"read-only", readOnly}, {"looks", looks}} {
		if !t.Run(step.name, func(t *testing.T) { step.do(tab{t, ctx}, w) }) {
			return // each goes on where the one before it has ended
		}
	}
}

// attention: what is not ready is listed, worst first, and the rest is counted.
func attention(b tab, w *world) {
	b.until("the list", `document.querySelectorAll(".rows a").length === 3`)
	want := []string{"CreateFailed 1", "Waiting 1", "Updating 1"}
	if diff := cmp.Diff(want, eval[[]string](b, text("h2:not(#help-title)"))); diff != "" {
		b.t.Errorf("groups, worst first (-want +got):\n%s", diff)
	}
	if got := eval[[]string](b, text(".counts li")); strings.Join(got, "; ") != "3 not ready; ✔ 1 Instance ready" {
		b.t.Errorf("counts %q", got)
	}
	if row := eval[[]string](b, text(".rows a"))[0]; !strings.HasPrefix(row, "Instance orders ✗ CreateFailed ") || !strings.HasSuffix(row, "quota exceeded (10/10 instances); attempt 4") {
		b.t.Errorf("the first row is %q", row)
	}
	if strings.Contains(eval[string](b, "location.href"), "key") {
		b.t.Error("the key stays in the address")
	}
	if eval[bool](b, `document.cookie !== ""`) {
		b.t.Error("there is a cookie, which servers on other ports get, too")
	}
	b.run(chromedp.Reload())
	b.until("the list, after it was loaded again", `document.querySelectorAll(".rows a").length === 3`)
}

// keys: all can be reached without a mouse.
func keys(b tab, w *world) {
	b.run(key("/"), chromedp.KeyEvent("front"))
	b.until("the filter", `document.querySelectorAll(".rows a").length === 1`)
	b.run(chromedp.KeyEvent(kb.Escape), chromedp.KeyEvent("j"), chromedp.KeyEvent(kb.Enter))
	b.until("the page of the object", `document.querySelector("h1").innerText.startsWith("WebPage ")`)
	b.until("the rest of it", `!!document.querySelector("#why")`)
	b.run(chromedp.KeyEvent("?"))
	b.until("the keys", `document.getElementById("help").open`)
	b.run(chromedp.KeyEvent(kb.Escape), chromedp.KeyEvent("u"))
	b.until("the list", `document.querySelector("h1").innerText === "Needs attention"`)
	b.until("the filter, as it was", `document.getElementById("filter").value === "front"`)
	b.run(script(`(() => { const f = document.getElementById("filter"); f.value = ""; f.dispatchEvent(new Event("input")) })()`))
	b.until("all", `document.querySelectorAll(".rows a").length === 3`)
	picture(b, "attention")
}

// why: the page of an object leads to the root cause.
func why(b tab, w *world) {
	b.run(script(`[...document.querySelectorAll(".rows a")].find(a => a.innerText.includes("front")).click()`))
	b.until("the chain", `document.querySelectorAll(".chain li").length >= 3`)
	chain := eval[[]string](b, text(".chain li"))
	if !strings.HasPrefix(chain[0], "WebPage ") || !strings.HasPrefix(chain[1], "Deployment ") || !strings.HasPrefix(chain[len(chain)-1], "Pod ") {
		b.t.Errorf("the chain is %q", chain)
	}
	if got := eval[[]string](b, text(".cause code")); len(got) != 1 || got[0] != "Unschedulable" {
		b.t.Errorf("the cause is %q", got)
	}
	if got := eval[[]string](b, text("#remedy")); len(got) != 1 || !strings.HasPrefix(got[0], "What to do: ") {
		b.t.Errorf("the remedy is %q", got)
	}
	tree := strings.Join(eval[[]string](b, text(".tree > li")), "\n")
	for _, part := range []string{"WebPage ", "Deployment ", "ReplicaSet ", "Pod ", "ConfigMap "} {
		if !strings.Contains(tree, part) {
			b.t.Errorf("the tree lacks %s:\n%s", part, tree)
		}
	}
	if got := eval[[]string](b, text("#timeline tbody tr")); len(got) < 2 || !strings.Contains(strings.Join(got, "\n"), "created") {
		b.t.Errorf("history %q", got)
	}
	if got := eval[[]string](b, text("#conditions tbody tr")); len(got) != 1 || !strings.HasPrefix(got[0], "Ready Unknown Waiting ") {
		b.t.Errorf("conditions %q", got)
	}
	picture(b, "object")
}

// live: what is shown follows the cluster, in place.
func live(b tab, w *world) {
	ready := map[string]any{"state": "Ready", "message": "", "conditions": []any{map[string]any{"type": "Ready", "status": "True", "reason": "Succeeded", "message": "", "lastTransitionTime": "2026-03-02T03:04:05Z"}}}
	w.status(w.object("webpages.trimtab.dev/v1", "WebPage", "front"), ready)
	b.until("the page to follow the object", `document.getElementById("state").innerText === "✔ Ready" && !document.getElementById("why")`)
	b.run(chromedp.KeyEvent("u"))
	b.until("the list", `document.querySelectorAll(".rows a").length === 2`)
	const hostile = `<img src=x onerror="window.hacked=1"><script>window.hacked=1</script>`
	w.status(w.object("cloud.trimtab.dev/v1", "Instance", "search"), map[string]any{"message": hostile})
	b.until("the message", `[...document.querySelectorAll(".message")].some(e => e.innerText.includes("onerror"))`)
	if eval[bool](b, `"hacked" in window || !!document.querySelector("main img, main script")`) {
		b.t.Error("what an object says is taken for markup")
	}
	b.run(script(`window.sameDocument = true; document.querySelector(".rows a").focus()`))
	w.status(w.object("cloud.trimtab.dev/v1", "Instance", "search"), ready)
	b.until("the list to follow", `document.querySelectorAll(".rows a").length === 1 && document.querySelector(".counts").innerText.includes("2 Instance ready")`)
	if !eval[bool](b, `window.sameDocument && document.activeElement.innerText.includes("orders")`) {
		b.t.Error("the focus was lost, or the page was reloaded")
	}
}

// act: an action is shown with its command, and does it.
func act(b tab, w *world) {
	b.run(script(`document.querySelector(".rows a").click()`))
	b.until("the actions", `document.querySelectorAll(".commands li").length === 2`)
	want := []string{"kubectl trimtab reconcile instance/orders -n " + w.namespace, "kubectl trimtab pause instance/orders -n " + w.namespace}
	if diff := cmp.Diff(want, eval[[]string](b, text(".commands code"))); diff != "" {
		b.t.Errorf("commands (-want +got):\n%s", diff)
	}
	if got := strings.Join(eval[[]string](b, text(".commands li")), "\n"); !strings.Contains(got, "the external resource is observed and reported, and not changed, until it is resumed; a deletion of the object goes on") {
		b.t.Errorf("what follows from a pause is not said:\n%s", got)
	}
	b.run(chromedp.Click(chromedp.CSS("#act-pause")))
	b.until("the pause", `document.getElementById("state").innerText === "‖ Paused" && !!document.getElementById("act-resume")`)
	u := w.object("cloud.trimtab.dev/v1", "Instance", "orders")
	if err := w.client.Get(b.t.Context(), client.ObjectKeyFromObject(u), u); err != nil || u.GetAnnotations()["trimtab.dev/paused"] != "true" {
		b.t.Errorf("annotations %v, %v", u.GetAnnotations(), err)
	}
}

// readOnly: whoever may only read is offered nothing else.
func readOnly(b tab, w *world) {
	user := testenv.User(w.t, w.cfg, rbacv1.PolicyRule{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"get", "list", "watch"}})
	address := w.serve(user)
	server, _, _ := strings.Cut(address, "#")
	b.run(chromedp.Navigate(server))
	b.until("a word about the key", `document.getElementById("problem").innerText.startsWith("open the address that was printed")`)
	b.run(chromedp.Navigate(address)) // the same page, so that nothing is loaded
	b.until("the list", `document.querySelectorAll(".rows a").length === 1`)
	b.run(script(`document.querySelector(".rows a").click()`))
	b.until("the page", `!!document.getElementById("why")`)
	if got := eval[[]string](b, text(".commands li")); len(got) > 0 {
		b.t.Errorf("somebody who may only read is offered %q", got)
	}
}

// contrasts returns the texts whose contrast with their background is below 4.5, the minimum of WCAG at level AA.
const contrasts = `(() => {
	const light = c => { const [r, g, b] = c.map(v => { v /= 255; return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; }); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
	const parse = s => s.match(/[\d.]+/g).map(Number);
	const behind = e => { for (; e; e = e.parentElement) { const c = parse(getComputedStyle(e).backgroundColor); if (c.length === 3 || c[3] > 0) return c.slice(0, 3); } return [255, 255, 255]; };
	const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT), low = [];
	let n = 0;
	for (let t; t = walk.nextNode();) {
		const e = t.parentElement;
		if (!t.data.trim() || e.closest("script, dialog:not([open])")) continue;
		const a = light(parse(getComputedStyle(e).color).slice(0, 3)), b = light(behind(e));
		const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
		n++;
		if (ratio < 4.5) low.push(t.data.trim() + ": " + ratio.toFixed(2));
	}
	return n < 10 ? ["only " + n + " texts were looked at"] : low;
})()`

// looks: in light and dark, and from the narrowest to the widest screen, everything can be read.
func looks(b tab, _ *world) {
	for _, preferred := range []string{"light", "dark"} {
		b.run(scheme(preferred))
		for _, page := range []string{`location.hash`, `"#/"`} {
			b.run(script(`location.hash = ` + page))
			b.until("the page", `document.querySelectorAll("#why, .rows a").length > 0`)
			if low := eval[[]string](b, contrasts); len(low) > 0 {
				b.t.Errorf("%s: too little contrast of %q", preferred, low)
			}
			for _, width := range []int64{320, 768, 1280, 3840} {
				b.run(chromedp.EmulateViewport(width, 800))
				if wide := eval[int64](b, `document.documentElement.scrollWidth`); wide > width {
					b.t.Errorf("%s at %d pixels: the page is %d wide", preferred, width, wide)
				}
			}
			b.run(script(`history.back()`))
		}
	}
}

// picture takes the picture of a page for the documentation if TRIMTAB_PICTURES is set.
func picture(b tab, name string) {
	b.t.Helper()
	if os.Getenv("TRIMTAB_PICTURES") == "" {
		return
	}
	png := do(b, "take a picture", chromedp.CaptureScreenshot())
	file := filepath.Join("..", "..", "docs", "pictures", name+".png")
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(file, png, 0o600); err != nil {
		b.t.Fatal(err)
	}
}
