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
	"sigs.k8s.io/yaml"
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
	picture(b, "states")
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
		b.t.Error("the focus was lost, or a screen reader reads what is drawn")
	}
	b.run(chromedp.EmulateViewport(400, 800))
	if !eval[bool](b, `document.getElementById("axis").offsetHeight === 0 && document.querySelector("#timeline table").offsetHeight > 0`) {
		b.t.Error("on a narrow screen, the list does not take the place of the axis")
	}
	b.run(chromedp.EmulateViewport(1280, 800))
	b.run(chromedp.KeyEvent("u"))
	b.until("the list", `document.querySelector("h1").innerText === "Needs attention"`)
}

// countdown: what comes next is counted down each second.
func countdown(b tab, w *world) {
	orders := w.object("cloud.trimtab.dev/v1", "Instance", "orders")
	until := time.Now().Add(2*time.Hour + 30*time.Minute + 30*time.Second).UTC().Format(time.RFC3339)
	w.annotate(orders, "trimtab.dev/paused", until)
	b.run(script(`[...document.querySelectorAll(".rows a")].find(a => a.innerText.includes("orders")).click()`))
	b.until("what comes next", `document.querySelectorAll("#due li").length === 1`)
	if got := eval[[]string](b, text("#due li"))[0]; !strings.HasPrefix(got, "in 2h 30m: the pause ends") {
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
	b.until("nothing that is known", `!document.getElementById("due") && !!document.getElementById("states")`)
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

// inWaves is a component whose second wave is not ready, because of the Secret that a Pod of it needs.
const inWaves = `
apiVersion: guestbooks.trimtab.dev/v1
kind: Guestbook
metadata: {name: waves}
spec: {}
status:
  observedGeneration: 1
  state: Processing
  message: Instance waves is not ready
  inventory:
  - {version: v1, kind: ConfigMap, namespace: NS, name: w1}
  - {version: v1, kind: ConfigMap, namespace: NS, name: w2}
  - {version: v1, kind: ConfigMap, namespace: NS, name: w3}
  - {group: cloud.trimtab.dev, version: v1, kind: Instance, namespace: NS, name: waves, applyOrder: 1, phase: Creating, dependsOn: [/ConfigMap/NS/w1]}
  - {version: v1, kind: Secret, namespace: NS, name: later, applyOrder: 2, phase: ScheduledForApplication}
  conditions: [{type: Ready, status: Unknown, reason: Processing, message: Instance waves is not ready, lastTransitionTime: "2026-01-05T03:04:05Z"}]
---
apiVersion: cloud.trimtab.dev/v1
kind: Instance
metadata: {name: waves}
spec: {size: small, login: {name: login}, connection: {name: connection}}
status:
  observedGeneration: 1
  state: Pending
  message: 'waiting for Secret login: it does not exist'
  conditions: [{type: Ready, status: "False", reason: DependenciesNotReady, message: 'waiting for Secret login: it does not exist', lastTransitionTime: "2026-01-05T03:04:05Z"}]
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: w1}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: w2}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: w3}}
`

// waves: the tree shows what a component is made of in the order in which it is applied, and the path to what it waits for.
func waves(b tab, w *world) {
	created := w.put(strings.ReplaceAll(inWaves, "NS", w.namespace))
	b.until("the component", `[...document.querySelectorAll(".rows a")].some(a => a.innerText.includes("Guestbook waves"))`)
	b.run(script(`[...document.querySelectorAll(".rows a")].find(a => a.innerText.includes("Guestbook waves")).click()`))
	b.until("the tree", `document.querySelectorAll(".waves > li").length === 3`)
	want := []string{"Wave 0: ✔ ready ✔ 3 × ConfigMap", "Wave 1: ✗ not ready", "Wave 2: ○ waits ○ Secret later Held waits for wave 1"}
	for i, got := range eval[[]string](b, text(".waves > li")) {
		if !strings.HasPrefix(got, want[i]) {
			b.t.Errorf("wave %d is %q, want %q", i, got, want[i])
		}
	}
	path := []string{"Guestbook waves is blocked", "Instance waves blocks", "Secret login root cause"}
	got := eval[[]string](b, `[...document.querySelectorAll("#tree .on-path > div")].map(e => e.querySelector("a").innerText + " " + e.querySelector(".blocks").innerText)`)
	if diff := cmp.Diff(path, got); diff != "" {
		b.t.Errorf("the blocking path (-want +got):\n%s", diff)
	}
	if tops := eval[int](b, `new Set([...document.querySelectorAll(".waves > li")].map(e => e.getBoundingClientRect().top)).size`); tops != 1 {
		b.t.Error("where there is room, the waves are not side by side")
	}
	b.run(script(`document.querySelector("#tree summary").focus()`), chromedp.KeyEvent(kb.Enter))
	b.until("the three", `document.querySelectorAll("#tree details[open] li").length === 3`)
	w.status(created[1], map[string]any{"message": "waiting for Secret login: it does not exist yet"})
	b.until("another drawing", `document.querySelector("#tree").innerText.includes("exist yet")`)
	if !eval[bool](b, `document.querySelectorAll("#tree details[open] li").length === 3 && document.activeElement.tagName === "SUMMARY"`) {
		b.t.Error("what was opened was closed, or the focus was lost, when the page was drawn again")
	}
	looksOfPage(b)
	b.run(script(`document.querySelector("#tree").scrollIntoView()`))
	picture(b, "tree")
	b.run(chromedp.KeyEvent("u"))
	for _, u := range created {
		if err := w.client.Delete(w.t.Context(), u); err != nil {
			w.t.Fatal(err)
		}
	}
	b.until("the list without them", `document.querySelectorAll(".rows a").length === 3`)
}

// put creates the objects of manifests, and returns them.
func (w *world) put(manifests string) (all []*unstructured.Unstructured) {
	w.t.Helper()
	for text := range strings.SplitSeq(manifests, "\n---\n") {
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
			w.t.Fatal(err)
		}
		u.SetNamespace(w.namespace)
		status, has := u.Object["status"]
		if err := w.client.Create(w.t.Context(), u); err != nil {
			w.t.Fatal(err)
		}
		if has {
			w.status(u, status)
		}
		all = append(all, u)
	}
	return all
}

// looksOfPage: in light and dark, and from the narrowest to the widest screen, the page that is shown can be read.
func looksOfPage(b tab) {
	for _, preferred := range []string{"dark", "light"} {
		b.run(scheme(preferred))
		for _, width := range []int64{320, 768, 3840, 1280} {
			b.run(chromedp.EmulateViewport(width, 800))
			if wide := eval[int64](b, `document.documentElement.scrollWidth`); wide > width {
				b.t.Errorf("%s at %d pixels: the page is %d wide", preferred, width, wide)
			}
			if low := eval[[]string](b, contrasts); len(low) > 0 {
				b.t.Errorf("%s at %d pixels: too little contrast of %q", preferred, width, low)
			}
		}
	}
}
