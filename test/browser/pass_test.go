package browser

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/trace"
)

// passWorld is the shop, and the flight recorder of an operator that works on one of its objects.
type passWorld struct {
	*world
	ring   *trace.Ring
	object trace.Object
	at     time.Time
	passes uint64
	debug  string // its debug address
}

func newPassWorld(t *testing.T) *passWorld {
	t.Helper()
	w := &passWorld{world: newWorld(t), ring: trace.NewRing(trace.RingOptions{}), at: time.Now().Add(-5 * time.Minute)}
	u := w.world.object("cloud.trimtab.dev/v1", "Instance", "orders")
	if err := w.client.Get(t.Context(), client.ObjectKeyFromObject(u), u); err != nil {
		t.Fatal(err)
	}
	w.object = trace.Object{Kind: "Instance", Namespace: w.namespace, Name: "orders", UID: string(u.GetUID())}
	server := httptest.NewServer(http.HandlerFunc(func(answer http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		sink := trace.JSON(answer)
		for _, rec := range w.ring.Select(trace.Query{Kind: q.Get("kind"), Namespace: q.Get("namespace"), Name: q.Get("name"), UID: q.Get("uid")}) {
			sink.Record(rec)
		}
	}))
	t.Cleanup(server.Close)
	w.debug = server.URL
	w.pass(trace.Start{Generation: 1, ResourceVersion: "8810"},
		trace.Decision{Rule: "D-00", Action: "observe", Because: "Observing"}, trace.Call{Op: "observe", Target: "orders", Result: "Missing", Took: 9 * time.Millisecond},
		trace.Decision{Rule: "D-13", Action: "create", Because: "Creating"}, trace.Transition{From: "Pending", To: "Creating", Reason: "Creating"},
		trace.Call{Op: "create", Target: "orders", Mutating: true, Result: "QuotaExceeded", Err: "quota exceeded (10/10 instances)", Took: 180 * time.Millisecond},
		trace.Write{Verb: "apply", Subresource: "status", Fields: []string{"status"}, ResourceVersion: "8812"},
		trace.End{Outcome: "Fail", Err: "quota exceeded", Again: 4 * time.Minute, Took: 411 * time.Millisecond})
	w.pass(trace.Start{Generation: 1, ResourceVersion: "8812", Attempt: 1},
		trace.Decision{Rule: "D-00", Action: "observe", Because: "Observing"}, trace.Call{Op: "observe", Target: "orders", Result: "Available", Took: 9 * time.Millisecond},
		trace.Drift{Path: "spec.size", Want: `"small"`, Have: `"large"`, Effect: "InPlace"}, trace.Drift{Path: "spec.password", Want: trace.Redacted, Have: trace.Redacted, Effect: "InPlace"},
		trace.Call{Op: "update", Target: "orders", Mutating: true, Took: 80 * time.Millisecond}, trace.End{Outcome: "After", Again: 10 * time.Minute, Took: 90 * time.Millisecond})
	return w
}

// pass records a pass: an event each 10 ms.
func (w *passWorld) pass(events ...trace.Event) {
	w.passes++
	w.at = w.at.Add(time.Minute)
	for n, e := range events {
		w.ring.Record(trace.Record{Time: w.at.Add(time.Duration(n) * 10 * time.Millisecond), Controller: "instance", Object: w.object, Pass: w.passes, Event: e})
	}
}

// TestPasses looks at what an operator did as its developer does: the passes over an object, one of them step by step, what differs
// between two, and a test.
func TestPasses(t *testing.T) {
	t.Parallel()
	ctx := browse(t)
	w := newPassWorld(t)
	b := tab{t, ctx}
	b.run(scheme("light"), chromedp.EmulateViewport(1280, 1400), chromedp.Navigate(w.serve(w.cfg, "--operator", w.debug)))
	for _, step := range []struct {
		name string
		do   func(tab, *passWorld)
	}{{"list", passList}, {"steps", passSteps}, {"compare", passCompare}, {"live", passLive}, {"save", passSave}, {"looks", passLooks}} {
		if !t.Run(step.name, func(t *testing.T) { step.do(tab{t, ctx}, w) }) {
			return // each goes on where the one before it has ended
		}
	}
}

// passList: the page of an object lists its passes, the newest first, and a key opens one.
func passList(b tab, w *passWorld) {
	b.until("the list", `document.querySelectorAll(".rows a").length === 3`)
	b.run(script(`[...document.querySelectorAll(".rows a")].find(a => a.innerText.includes("orders")).click()`))
	b.until("the passes", `document.querySelectorAll("#passes .rows a").length === 2`)
	rows := eval[[]string](b, text("#passes .rows a"))
	if !strings.HasPrefix(rows[0], "Pass 2 ↻ After ") || !strings.HasSuffix(rows[0], " update orders; took 90 ms; next in 10m") {
		b.t.Errorf("the newest pass is %q", rows[0])
	}
	if !strings.HasPrefix(rows[1], "Pass 1 ✗ Fail ") || !strings.Contains(rows[1], " create orders failed, apply status; quota exceeded; took 411 ms; next in 4m") {
		b.t.Errorf("the first pass is %q", rows[1])
	}
	if got := eval[[]string](b, text("#due li")); len(got) != 1 || !strings.HasPrefix(got[0], "in ") || !strings.HasSuffix(got[0], ": the next pass, unless a change causes one before (flight recorder of the operator, pass 2)") {
		b.t.Errorf("what comes next, by the records: %q", got)
	}
	if got := eval[[]string](b, text(".transitions li")); len(got) != 1 || !strings.HasPrefix(got[0], "Pending → Creating ") {
		b.t.Errorf("the transitions, by the records: %q", got)
	}
	b.run(script(`document.querySelector("#passes .rows a").focus()`), chromedp.KeyEvent("j"), chromedp.KeyEvent(kb.Enter))
	b.until("the first pass", `document.querySelector("h1").innerText === "Pass 1, Instance orders" && !!document.getElementById("steps")`)
}

// passSteps: each step says when it was, what kind of step it is, and what was done.
func passSteps(b tab, w *passWorld) {
	want := []string{
		"0 ▸ read the object: generation 1, resourceVersion 8810",
		"10 ms ◆ decide D-00 observe because Observing",
		"20 ms ○ call observe orders → Missing took 9 ms",
		"30 ms ◆ decide D-13 create because Creating",
		"40 ms → state Pending → Creating (Creating)",
		"50 ms ☁ call, changes create orders → QuotaExceeded took 180 ms ✗ quota exceeded (10/10 instances)",
		"60 ms ✎ write apply status",
		"70 ms ✗ end Fail took 411 ms; next pass in 4m ✗ quota exceeded",
	}
	if diff := cmp.Diff(want, eval[[]string](b, text("#steps tbody tr"))); diff != "" {
		b.t.Errorf("steps (-want +got):\n%s", diff)
	}
	if got := eval[bool](b, `!!document.getElementById("previous")`); got {
		b.t.Error("there is a pass before the first one")
	}
	b.run(chromedp.KeyEvent("j"), chromedp.KeyEvent("j"))
	if got := eval[string](b, `document.activeElement.id`); got != "step-1" {
		b.t.Errorf("after j twice, the focus is on %q, want the second step", got)
	}
	b.run(chromedp.Click(chromedp.CSS("#next")))
	b.until("the second pass", `document.querySelector("h1").innerText === "Pass 2, Instance orders" && document.querySelectorAll("#steps tbody tr").length === 7`)
	rows := eval[[]string](b, text("#steps tbody tr"))
	if rows[0] != "0 ▸ read the object: generation 1, resourceVersion 8812, attempt 1 after a failure" ||
		rows[3] != `30 ms ≠ difference spec.size: the object says "small", the resource has "large" InPlace` || !strings.Contains(rows[4], "the object says (sensitive), the resource has (sensitive)") {
		b.t.Errorf("steps %q", rows)
	}
	picture(b, "pass")
}

// passCompare: what differs between two passes is shown, and times do not count.
func passCompare(b tab, w *passWorld) {
	b.until("the comparison", `document.getElementById("with").selectedOptions[0].innerText.startsWith("pass 1: Fail")`)
	lines := eval[[]string](b, text(".lines li"))
	if got := eval[[]string](b, text("#differ")); !strings.HasPrefix(got[0], "13 of 14 lines differ.") {
		b.t.Errorf("it says %q of\n%s", got, strings.Join(lines, "\n"))
	}
	for at, want := range map[int]string{0: "− pass 1 start generation 1", 1: "+ pass 2 start generation 1, attempt 1", 2: "both decide D-00 observe: Observing"} {
		if lines[at] != want {
			b.t.Errorf("line %d is %q, want %q", at, lines[at], want)
		}
	}
	same := []trace.Event{trace.Start{Generation: 1, ResourceVersion: "8813"}, trace.Call{Op: "observe", Target: "orders", Result: "Available", Took: time.Millisecond}, trace.End{Outcome: "After", Took: time.Second}}
	w.pass(same...)
	same[1] = trace.Call{Op: "observe", Target: "orders", Result: "Available", Took: time.Second}
	w.pass(same...)
	b.run(chromedp.Reload())
	b.until("the newer passes", `document.querySelectorAll("#with option").length === 3`)
	b.run(script(`(() => { const s = document.getElementById("with"); s.focus(); s.value = [...s.options].find(o => o.innerText.startsWith("pass 3")).value; s.dispatchEvent(new Event("change")) })()`))
	b.until("the other comparison", `document.querySelector(".lines").innerText.includes("pass 3")`)
	if at := eval[string](b, `document.activeElement.id`); at != "with" {
		b.t.Errorf("after a choice the focus is at %q, so that by keys none of the next ones can be reached", at)
	}
	b.run(script(`document.getElementById("with").dispatchEvent(new KeyboardEvent("keydown", {key: "u", bubbles: true}))`))
	if !eval[bool](b, `location.hash.startsWith("#/pass")`) {
		b.t.Error("a letter in the list of passes leaves the page")
	}
	b.run(chromedp.Click(chromedp.CSS("#next")))
	b.until("the third pass", `document.querySelector("h1").innerText.startsWith("Pass 3") && !!document.getElementById("next")`)
	b.run(chromedp.Click(chromedp.CSS("#next")))
	b.until("two that are the same", `document.querySelector("h1").innerText.startsWith("Pass 4") && document.getElementById("differ").innerText.startsWith("Nothing differs") && !document.querySelector(".lines")`)
}

// passLive: a pass that goes on is followed, and what other systems said is no markup.
func passLive(b tab, w *passWorld) {
	const hostile = `<img src=x onerror="window.hacked=1"><script>window.hacked=1</script>`
	w.pass(trace.Start{Generation: 1}, trace.Call{Op: "observe", Target: hostile, Err: hostile})
	w.status(w.world.object("cloud.trimtab.dev/v1", "Instance", "orders"), map[string]any{"message": "still"})
	b.until("the next pass", `!!document.getElementById("next")`)
	b.run(chromedp.Click(chromedp.CSS("#next")))
	b.until("a pass that goes on", `document.getElementById("page").innerText.includes("The pass has not ended yet.") && document.getElementById("outcome").innerText === "… no end"`)
	if eval[bool](b, `"hacked" in window || !!document.querySelector("main img, main script")`) || !strings.Contains(eval[string](b, `document.getElementById("steps").innerText`), "onerror") {
		b.t.Error("what a call answered is taken for markup, or is not shown")
	}
	b.run(chromedp.Click(chromedp.CSS("#save")))
	b.until("a refusal", `document.querySelector("#test #problem").innerText.startsWith("the end of the pass is not recorded")`)
	w.ring.Record(trace.Record{Time: w.at.Add(time.Second), Controller: "instance", Object: w.object, Pass: w.passes, Event: trace.End{Outcome: "Done"}})
	w.status(w.world.object("cloud.trimtab.dev/v1", "Instance", "orders"), map[string]any{"message": "at last"})
	b.until("its end", `document.getElementById("outcome").innerText === "✔ Done"`)
}

// passSave: a test is shown, and can be taken along.
func passSave(b tab, w *passWorld) {
	b.run(chromedp.Click(chromedp.CSS("#save")))
	b.until("the test", `document.getElementById("file").innerText.includes("func TestInstanceOrdersPass5(t *testing.T) {")`)
	for _, part := range []string{"size: small", "  end      Done\n", "kind: Instance"} {
		if file := eval[string](b, `document.getElementById("file").innerText`); !strings.Contains(file, part) {
			b.t.Errorf("the test lacks %q:\n%s", part, file)
		}
	}
	b.run(script(`HTMLAnchorElement.prototype.click = function() { window.downloaded = this.download }`),
		chromedp.Click(chromedp.CSS("#download")))
	b.until("the download", `window.downloaded === "instanceorderspass5_test.go"`)
	if !eval[bool](b, `[...document.querySelectorAll("button")].some(b => b.innerText === "Copy") && document.getElementById("file").tabIndex === 0`) {
		b.t.Error("the file cannot be copied, or not be scrolled by keys")
	}
	b.run(chromedp.Click(chromedp.CSS("#previous")))
	b.until("another pass, without the test of this one", `document.querySelector("h1").innerText.startsWith("Pass 4") && !!document.getElementById("save") && !document.getElementById("file")`)
	b.run(chromedp.Click(chromedp.CSS("#next")))
	b.until("the test again", `document.querySelector("h1").innerText.startsWith("Pass 5") && !!document.getElementById("file")`)
}

// passLooks: in light and dark, and from the narrowest to the widest screen, everything can be read.
func passLooks(b tab, _ *passWorld) {
	for _, preferred := range []string{"light", "dark"} {
		b.run(scheme(preferred))
		if low := eval[[]string](b, contrasts); len(low) > 0 {
			b.t.Errorf("%s: too little contrast of %q", preferred, low)
		}
		for _, width := range []int64{320, 768, 1280, 3840} {
			b.run(chromedp.EmulateViewport(width, 800))
			if wide := eval[int64](b, `document.documentElement.scrollWidth`); wide > width {
				b.t.Errorf("%s at %d pixels: the page is %d wide", preferred, width, wide)
			}
		}
	}
}
