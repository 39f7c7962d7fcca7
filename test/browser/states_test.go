package browser

import (
	"strings"

	"github.com/chromedp/chromedp"
	"github.com/google/go-cmp/cmp"
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
