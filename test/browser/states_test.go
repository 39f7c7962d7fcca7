package browser

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// states: where an object is among its states, and that follows it.
func states(b tab, w *world) {
	orders := w.object("cloud.trimtab.dev/v1", "Instance", "orders")
	b.run(script(`[...document.querySelectorAll(".rows a")].find(a => a.innerText.includes("orders")).click()`))
	b.until("the states", `document.querySelector("h1").innerText.startsWith("Instance orders") && document.querySelectorAll(".states li").length === 4`)
	want := []string{"Pending not seen", "Creating not seen", "Succeeded not seen", "✗ Failed now, failed CreateFailed"}
	if diff := cmp.Diff(want, eval[[]string](b, text(".states li"))); diff != "" {
		b.t.Errorf("states (-want +got):\n%s", diff)
	}
	edges := `[...document.querySelectorAll(".arrows path[data-edge]")].map(e => e.dataset.edge + " " + e.className.baseVal)`
	if diff := cmp.Diff([]string{"Pending Creating usual", "Creating Succeeded usual"}, eval[[]string](b, edges)); diff != "" {
		b.t.Errorf("transitions (-want +got):\n%s", diff)
	}
	w.status(orders, map[string]any{"state": "Creating"})
	b.until("the position to move", `[...document.querySelectorAll("[aria-current=step]")].map(e => e.innerText.replace(/\s+/g, " ")).join().startsWith("✗ Creating now")`)
	if diff := cmp.Diff([]string{"Failed Creating seen", "Pending Creating usual", "Creating Succeeded usual"}, eval[[]string](b, edges)); diff != "" {
		b.t.Errorf("transitions after one (-want +got):\n%s", diff)
	}
	if got := eval[[]string](b, text(".transitions li")); len(got) != 1 || !strings.HasPrefix(got[0], "Failed → Creating ") {
		b.t.Errorf("the transitions in words are %q", got)
	}
	b.run(script(`window.boxes = [...document.querySelectorAll(".states li")].map(e => e.getBoundingClientRect())`))
	if !eval[bool](b, `boxes[0].top === boxes[1].top && boxes[1].right < boxes[2].left && boxes[3].top > boxes[0].bottom`) {
		b.t.Error("the path is not in the first row, from left to right, and the failure below it")
	}
	w.status(orders, map[string]any{"state": "Failed"})
	b.until("the way back", `document.querySelectorAll(".transitions li").length === 2`)
	b.run(chromedp.KeyEvent("u"))
	b.until("the list", `document.querySelector("h1").innerText === "Needs attention"`)
}

// onAxis: what has happened is drawn on an axis of time, as wide as there is room.
func onAxis(b tab, w *world) {
	b.run(script(`[...document.querySelectorAll(".rows a")].find(a => a.innerText.includes("orders")).click()`))
	b.until("the axis", `document.querySelector("h1").innerText.startsWith("Instance orders") && !!document.querySelector("#axis .track")`)
	rows := eval[[]string](b, text("#axis .series"))
	for _, want := range []string{"state", "Ready", "spec", "conditions"} {
		if !strings.Contains(" "+strings.Join(rows, " ")+" ", " "+want+" ") {
			b.t.Errorf("rows %q, want one that is called %s", rows, want)
		}
	}
	row := func(name string) string {
		return `[...[...document.querySelectorAll(".rows-of-time > div")].find(e => e.innerText.startsWith("` + name + `")).querySelectorAll(".span")]`
	}
	if got := eval[[]string](b, row("state")+`.map(e => e.innerText)`); strings.Join(got, " ") != "Creating Failed" {
		b.t.Errorf("states on the axis %q, want those that were seen", got)
	}
	if !eval[bool](b, `(() => { const [a, z] = `+row("state")+`.map(e => e.getBoundingClientRect()), t = document.querySelector("#axis .track").getBoundingClientRect(); return a.left < z.left && Math.abs(a.right - z.left) < 12 && Math.abs(z.right - t.right) < 12 })()`) {
		b.t.Error("the states do not follow each other until now")
	}
	if got := eval[[]string](b, row("Ready")+`.map(e => e.innerText)`); strings.Join(got, "") != "◂ False (CreateFailed)" {
		b.t.Errorf("Ready on the axis %q, want since a time before what is shown", got)
	}
	b.run(script(`document.getElementById("window-all").focus()`), chromedp.KeyEvent(kb.Enter))
	b.until("all", `document.getElementById("window-all").ariaPressed === "true"`)
	if got := eval[[]string](b, row("Ready")+`.map(e => e.innerText)`); strings.Join(got, "") != "False (CreateFailed)" {
		b.t.Errorf("Ready on the whole axis %q", got)
	}
	if !eval[bool](b, `document.activeElement.id === "window-all" && !!document.querySelector(".rows-of-time[aria-hidden=true]")`) {
		b.t.Error("the focus was lost, or a screen reader is told what is drawn")
	}
	b.run(chromedp.EmulateViewport(400, 800))
	if !eval[bool](b, `document.getElementById("axis").offsetHeight === 0 && document.querySelector("#timeline table").offsetHeight > 0`) {
		b.t.Error("on a narrow screen, the list does not take the place of the axis")
	}
	b.run(chromedp.EmulateViewport(1280, 800))
	picture(b, "states")
	b.run(chromedp.KeyEvent("u"))
	b.until("the list", `document.querySelector("h1").innerText === "Needs attention"`)
}

// countdown: what comes next is counted down each second.
func countdown(b tab, w *world) {
	orders := w.object("cloud.trimtab.dev/v1", "Instance", "orders")
	until := time.Now().Add(2*time.Hour + 30*time.Minute + 30*time.Second).UTC().Format(time.RFC3339)
	w.annotate(orders, "trimtab.dev/paused", until)
	b.run(script(`[...document.querySelectorAll(".rows a")].find(a => a.innerText.includes("orders")).click()`))
	b.until("what comes next", `document.querySelectorAll("#next li").length === 1`)
	if got := eval[[]string](b, text("#next li"))[0]; !strings.HasPrefix(got, "in 2h 30m: the pause ends") {
		b.t.Errorf("what comes next is %q", got)
	}
	w.annotate(orders, "trimtab.dev/paused", time.Now().Add(time.Minute).UTC().Format(time.RFC3339))
	b.until("seconds", `/^in \d+s:$/.test(document.querySelector(".countdown").innerText)`)
	b.run(script(`window.counted = document.querySelector(".countdown").innerText`))
	b.until("another second", `/^(in \d+s|due now):$/.test(document.querySelector(".countdown").innerText) && parseInt(document.querySelector(".countdown").innerText.slice(3) || "0") < parseInt(counted.slice(3))`)
	if role := eval[string](b, `document.querySelector(".countdown").role`); role != "timer" {
		b.t.Errorf("the countdown is a %s", role)
	}
	w.annotate(orders, "trimtab.dev/paused", nil)
	b.until("nothing that is known", `!document.getElementById("next") && !!document.getElementById("states")`)
	b.run(chromedp.KeyEvent("u"))
	b.until("the list", `document.querySelector("h1").innerText === "Needs attention"`)
}

// annotate sets an annotation of an object, or removes it if the value is nil.
func (w *world) annotate(u *unstructured.Unstructured, name string, value any) {
	w.t.Helper()
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]any{name: value}}})
	if err == nil {
		err = w.client.Patch(w.t.Context(), u, client.RawPatch(types.MergePatchType, body))
	}
	if err != nil {
		w.t.Fatal(err)
	}
}
