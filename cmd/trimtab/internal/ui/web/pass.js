// The page of one pass over an object, step by step, and the list of passes on the page of the object.

import {age, h, link, named, place, query} from "./dom.js";
import {ask, copier} from "./server.js";

// passes lists the latest passes over an object.
export const passes = (o, v) => h("section", {id: "passes"}, h("h2", null, "Passes"),
	v.problem ? h("p.dim", null, v.problem) : null,
	v.passes.length ? h("ul.rows", null, v.passes.map(p => row(o, p))) : v.problem ? null : h("p.dim", null, "None is recorded: the operator keeps what it has done last, and forgets it with a restart."),
	v.older ? h("p.dim", null, `${v.older} older ${v.older === 1 ? "one is" : "ones are"} recorded; each pass leads to the one before it.`) : null);

// where is the address of the page of a pass.
const where = (o, p, more) => "#/pass?" + query(o) + "&" + new URLSearchParams({uid: p.uid, controller: p.controller, pass: p.number, ...more});

function row(o, p) {
	const [kind, sign, word] = ended(p), to = where(o, p);
	return h("li", null, h("a", {href: to, id: to},
		h("b", null, "Pass " + p.number), h("span." + kind, null, sign + " " + word), age(p.began), h("span.message", null, summary(p))));
}

// ended says how a pass has ended, as a class, a sign and a word.
function ended(p) {
	switch (p.outcome) {
	case "": return ["wait", "…", "no end"];
	case "Done": case "Removed": return ["good", "✔", p.outcome];
	case "Fail": case "Terminal": return ["bad", "✗", p.outcome];
	}
	return ["wait", "↻", p.outcome];
}

const summary = p => [(p.changed || []).join(", ") || "changed nothing", p.err, p.took && "took " + long(p.took), p.again && "next in " + long(p.again)].filter(Boolean).join("; ");

// long is a duration in nanoseconds, with three digits at most.
function long(ns) {
	const s = ns / 1e9;
	if (s < 0.001) return Math.round(ns / 1e3) + " µs";
	if (s < 1) return +(s * 1e3).toPrecision(3) + " ms";
	if (s < 60) return +s.toPrecision(3) + " s";
	if (s < 3600) return Math.floor(s / 60) + "m" + (Math.round(s % 60) ? Math.round(s % 60) + "s" : "");
	return Math.floor(s / 3600) + "h" + (Math.round(s % 3600 / 60) ? Math.round(s % 3600 / 60) + "m" : "");
}

// saved is the test that was written last, or why it was not, and of which pass.
let saved = {};

// pass is the page.
export function pass(v, draw) {
	const p = v.pass, o = v.object, [kind, sign, word] = ended(p);
	document.title = `Pass ${p.number}, ${named(o)}: ${word}`;
	return [
		h("h1", null, `Pass ${p.number}, `, h("a", {href: link(o)}, named(o)), " ", place(o)),
		h("p", null, h("strong." + kind, {id: "outcome"}, sign + " " + word), " ", h("span.dim", null, age(p.began), " ago, by the controller ", p.controller)),
		h("p", null, summary(p)),
		(v.lacks || []).map(text => h("p.wait", null, text)),
		h("nav.commands", {ariaLabel: "Passes over the object"},
			v.previous ? h("a", {id: "previous", href: where(o, v.previous)}, "← pass " + v.previous.number) : null, " ",
			v.next ? h("a", {id: "next", href: where(o, v.next)}, `pass ${v.next.number} →`) : null),
		h("section", {id: "steps"}, h("h2", null, "Steps"), h("table", null,
			h("thead", null, h("tr", null, ["After", "Step", "What"].map(t => h("th", {scope: "col"}, t)))),
			h("tbody", null, v.steps.map((s, n) => h("tr.step", {tabIndex: -1, id: "step-" + n}, h("td", null, n ? long(s.after) : "0"), step(s.record)))))),
		v.others.length ? comparison(v) : null,
		test(where(o, p), draw),
	];
}

// test offers a test that has the operator do the pass again.
function test(address, draw) {
	const save = h("button", {type: "button", id: "save"}, "Save as test");
	save.addEventListener("click", async () => {
		saved = {of: address, problem: "Writing the test."}; draw();
		const answer = await ask("api/test?" + address.split("?")[1]).catch(() => null);
		saved = {of: address, ...answer && answer.ok ? await answer.json() : {problem: answer ? (await answer.text()).trim() : "the server is away"}};
		draw();
	});
	return h("section", {id: "test"}, h("h2", null, "Test"),
		h("p.dim", null, "A test of package looptest runs the pass again in go test, and compares what it does. It begins with the object as it is now."),
		h("p", null, save), saved.of !== address ? null : saved.problem ? h("p", {id: "problem"}, saved.problem) : file(saved));
}

// file shows a file, to be copied or downloaded.
function file(f) {
	const download = h("button", {type: "button", id: "download"}, "Download");
	download.addEventListener("click", () => {
		const a = h("a", {href: URL.createObjectURL(new Blob([f.text], {type: "text/plain"})), download: f.name});
		a.click();
		setTimeout(() => URL.revokeObjectURL(a.href), 1000);
	});
	return [
		h("p.actions", null, h("code", null, f.name), " ", copier(f.text, f.name), " ", download),
		h("p.dim", null, "Put it into the folder of the operator's main package. Lines with TODO are what could not be known."),
		h("pre", {id: "file", tabIndex: 0, ariaLabel: f.name}, f.text),
	];
}

// comparison says which lines of this pass are not in another one.
function comparison(v) {
	const p = v.pass, name = o => `${o.number} ${o.controller}`;
	const other = h("select", {id: "with"}, v.with ? null : h("option", {value: ""}, "choose a pass"), v.others.map(o => h("option", {value: name(o), selected: !!v.with && name(o) === name(v.with)}, `pass ${o.number}: ${ended(o)[2]}, ${new Date(o.began).toLocaleTimeString()}`)));
	other.addEventListener("change", () => {
		const o = v.others.find(o => name(o) === other.value);
		if (o) location.replace(where(v.object, p, {with: o.number, withController: o.controller}));
	});
	const lines = v.compared || [], differ = lines.filter(l => l.sign !== "=").length;
	return h("section", {id: "comparison"}, h("h2", null, "Compared"),
		h("p", null, h("label", {htmlFor: "with"}, "Compare with "), other),
		v.with ? [
			h("p", {id: "differ"}, differ ? `${differ} of ${lines.length} lines differ. Times, durations of calls and resource versions are left out.` : "Nothing differs but times, durations of calls and resource versions."),
			differ ? h("ul.lines", null, lines.map(l => h("li" + ({"-": ".bad", "+": ".good"}[l.sign] || ""), null, h("span.sign", null, {"-": "−", "+": "+"}[l.sign] || " "), h("span.who", null, whose(v, l)), h("code", null, l.text)))) : null,
		] : null);
}

// whose says of which pass a line is; the older pass comes first.
function whose(v, l) {
	const both = [v.with, v.pass].sort((a, b) => new Date(a.began) - new Date(b.began));
	return l.sign === "=" ? "both" : "pass " + both[l.sign === "-" ? 0 : 1].number;
}

// step is what happened, as two cells: what kind of step it is, with a sign, and what it was.
function step(r) {
	const cells = (tone, sign, word, ...what) => [h("td." + tone, null, sign + " " + word), h("td", null, what)];
	const said = (...words) => words.filter(Boolean).join(" ");
	const failed = r.err ? h("div.bad", null, "✗ " + r.err) : null;
	switch (r.event) {
	case "start":
		return cells("dim", "▸", "read", `the object: generation ${r.generation || 0}, resourceVersion ${r.resourceVersion || "unknown"}`,
			r.attempt ? `, attempt ${r.attempt} after a failure` : "", r.deleting ? ", it is being deleted" : "", r.vanished ? ", it is gone already" : "");
	case "decision":
		return cells("text", "◆", "decide", r.rule ? [h("code", null, r.rule), " "] : null, h("strong", null, r.action), r.because ? h("div.dim", null, "because ", r.because) : null);
	case "drift":
		return cells("wait", "≠", "difference", h("code", null, r.path), ": the object says ", h("code", null, r.want), ", the resource has ", h("code", null, r.have), r.effect ? h("div.dim", null, r.effect) : null);
	case "call":
		return cells(r.mutating ? "wait" : "text", r.mutating ? "☁" : "○", r.mutating ? "call, changes" : "call", h("code", null, said(r.op, r.target)), r.result || !r.err ? " → " + (r.result || "ok") : "",
			r.took ? h("span.dim", null, " took " + long(r.took)) : null, failed);
	case "write":
		return cells("wait", "✎", "write", h("code", null, said(r.verb, r.subresource || "object")), " " + (r.fields || []).filter(f => f !== r.subresource).join(", "), failed);
	case "transition":
		return cells("text", "→", "state", h("strong", null, (r.from || "(new)") + " → " + r.to), r.reason ? ` (${r.reason})` : "", r.message ? h("div.dim", null, r.message) : null);
	case "end":
		return cells(...ended(r).slice(0, 2), "end", h("strong", null, r.outcome), r.took ? " took " + long(r.took) : "", r.again ? "; next pass in " + long(r.again) : "; next pass when something changes", failed);
	}
	return cells("text", "·", r.event);
}
