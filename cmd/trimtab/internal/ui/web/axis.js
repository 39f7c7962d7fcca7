// What has happened, drawn on an axis of time. The list of the history says the same in words, and takes its place where there is no
// room; the objects that this one is made of are in the tree with the time since when they are as they are.

import {h} from "./dom.js";

let chosen = {}, drawn; // chosen is the window that was chosen for an object

export function axis(v, of, draw) {
	if (!v.rows.length) return null;
	if (chosen.of !== of) chosen = {of};
	const name = v.windows.some(w => w.name === chosen.name) ? chosen.name : v.windows[v.shown].name;
	const window = v.windows.find(w => w.name === name);
	const buttons = v.windows.map(w => {
		const b = h("button", {type: "button", id: "window-" + w.name.replace(" ", "-"), ariaPressed: String(w === window)}, w.name);
		b.addEventListener("click", () => { chosen.name = w.name; draw(); });
		return b;
	});
	drawn = {v, window, e: h("div.rows-of-time", {ariaHidden: "true"})};
	fill();
	return h("div", {id: "axis"},
		v.windows.length > 1 ? h("div.windows", {role: "group", ariaLabel: "Time that is drawn"}, buttons) : null,
		drawn.e,
		v.left ? h("p.dim", null, `${v.left} more objects are not drawn.`) : null);
}

// fill draws the rows as of now.
function fill() {
	const {v, window, e} = drawn, now = Date.now();
	const from = window.seconds ? now - window.seconds * 1000 : Math.min(new Date(v.from), now - 1000);
	const share = at => Math.min(100, Math.max(0, (new Date(at) - from) / (now - from) * 100));
	const before = at => new Date(at) < from;
	e.replaceChildren(...v.rows.map(r => h("div", null, h("span.series", null, r.name), h("div.track", null,
		(r.spans || []).filter(s => !s.to || !before(s.to)).map(s => put(h("span.span" + (s.tone ? "." + s.tone : ""), {title: when(s.from) + " " + s.text}, (before(s.from) ? "◂ " : "") + s.text), share(s.from), share(s.to || now) - share(s.from))),
		(r.marks || []).filter(m => !before(m.at)).map(m => put(h("span.mark" + (m.bad ? ".bad" : ""), {title: when(m.at) + " " + m.text}, m.bad ? "✗" : "●"), share(m.at)))))),
		h("div.ticks", null, h("span.series"), h("div.track", null, ticks(from, now).map(t => put(h("span.dim", null, t.text), share(t.at))))));
}

function put(e, left, width) {
	e.style.setProperty("--left", left + "%");
	if (width !== undefined) e.style.setProperty("--width", width + "%");
	return e;
}
const when = at => new Date(at).toLocaleString();

// ticks are round times, at most eight, and now.
const steps = [1, 2, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 7200, 21600, 43200, 86400, 172800, 604800, 1209600, 2592000, 7776000, 31536000];
function ticks(from, now) {
	const step = 1000 * (steps.find(s => (now - from) / s / 1000 <= 7) || (now - from) / 7000);
	const zone = new Date(now).getTimezoneOffset() * 60000, all = [];
	for (let at = Math.ceil((from - zone) / step) * step + zone; at < now - step / 2; at += step) {
		const d = new Date(at);
		all.push({at, text: step >= 86400000 ? d.toLocaleDateString([], {month: "short", day: "numeric"}) : d.toLocaleTimeString([], {hour: "2-digit", minute: "2-digit", ...(step < 60000 ? {second: "2-digit"} : {})})});
	}
	return [...all, {at: now, text: "now"}];
}
setInterval(() => { if (drawn && drawn.e.isConnected) fill(); }, 5000);
