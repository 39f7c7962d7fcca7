// What comes next for an object, and the time until then.

import {h} from "./dom.js";

export const next = list => list && list.length ? h("section", {id: "due"}, h("h2", null, "Next"),
	h("ul", null, list.map(n => h("li", null, n.at ? countdown(n.at) : null, n.at ? " " : null, n.text, " ", h("span.dim", null, "(" + n.known + ")"))))) : null;

// countdown is the time until something is due. It goes on by itself; a screen reader is not told each second.
function countdown(at) {
	const e = h("strong.countdown", {role: "timer", ariaLive: "off", title: new Date(at).toLocaleString()}, until(at));
	e.dataset.at = at;
	return e;
}

export function until(at) {
	let s = Math.ceil((new Date(at) - Date.now()) / 1000);
	if (s <= 0) return "due now:";
	const parts = [];
	for (const [unit, seconds] of [["d", 86400], ["h", 3600], ["m", 60], ["s", 1]]) {
		if (s >= seconds || parts.length) parts.push(Math.floor(s / seconds) + unit);
		s %= seconds;
	}
	return "in " + parts.slice(0, 2).join(" ") + ":";
}
setInterval(() => document.querySelectorAll(".countdown").forEach(e => { e.textContent = until(e.dataset.at); }), 1000);
