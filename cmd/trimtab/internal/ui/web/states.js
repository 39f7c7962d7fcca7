// The states of an object: boxes in rows, one after another where there is no room for rows, and behind them the transitions.

import {age, h} from "./dom.js";

// The size of the place of a box, and of the box in it, in the units of the drawing, of which 16 are 1rem. The style sheet has them, too.
const place = {w: 144, h: 120}, box = {w: 116, h: 88};

export function states(m) {
	if (!m) return null;
	const list = h("ol.states", {ariaLabel: "States"}, m.states.map(one));
	list.style.setProperty("--columns", m.columns);
	const usual = m.edges.some(e => !e.times) ? "Dashes are usual and were not seen. " : "";
	return h("section", {id: "states"}, h("h2", null, "States"),
		h("div.machine", null, list, drawing(m)),
		h("ul.transitions.dim", null, m.edges.filter(e => e.times).map(e => h("li", null, `${e.from} → ${e.to}`, e.times > 1 ? ` ${e.times} times, last ` : " ", age(e.last), " ago"))),
		usual || m.limits ? h("p.dim", null, usual + (m.limits ? "Not known: " + m.limits.join("; ") : "")) : null);
}

// one is a state. What it is to the object is said by a sign, a word and its border.
function one(s) {
	const sign = s.failure ? "✗ " : s.present ? "◉ " : s.seen ? "✔ " : "";
	const word = s.present ? ["now", s.since ? [" for ", age(s.since)] : null, s.failure ? ", failed" : null] : s.seen ? (s.failure ? "failed before" : "was here") : "not seen";
	const li = h("li" + (s.present ? ".now" : "") + (s.failure ? ".failure" : "") + (s.seen ? "" : ".unseen"), null,
		h("b", null, sign + s.name), h("span", null, word), s.reason ? h("span", null, s.reason) : null);
	if (s.present) li.setAttribute("aria-current", "step");
	li.style.setProperty("--column", s.column + 1);
	li.style.setProperty("--row", s.row + 1);
	return li;
}

// svg makes an element of a drawing.
function svg(name, attributes, ...children) {
	const e = document.createElementNS("http://www.w3.org/2000/svg", name);
	for (const [key, value] of Object.entries(attributes)) e.setAttribute(key, value);
	e.append(...children);
	return e;
}

// drawing is the arrows between the boxes. The list says the same in words.
function drawing(m) {
	const at = Object.fromEntries(m.states.map(s => [s.name, {x: s.column * place.w + box.w / 2, y: s.row * place.h + box.h / 2, ...s}]));
	const head = svg("marker", {id: "head", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 6, markerHeight: 6, orient: "auto-start-reverse"}, svg("path", {d: "M0 0 8 4 0 8z"}));
	return svg("svg", {"aria-hidden": "true", class: "arrows", viewBox: `0 0 ${m.columns * place.w} ${m.rows * place.h - 32}`, width: `${m.columns * place.w / 16}rem`},
		svg("defs", {}, head),
		...m.edges.map(e => svg("path", {d: arrow(at[e.from], at[e.to]), class: e.times ? "seen" : "usual", "marker-end": "url(#head)", "data-edge": e.from + " " + e.to})));
}

// arrow is the way from the border of one box to that of another. The way back is beside it, and one to a box that is not the next
// one goes between the rows.
function arrow(a, b) {
	const w = box.w / 2, t = box.h / 2;
	if (a.row === b.row && Math.abs(a.column - b.column) > 1) {
		const x = a.x < b.x ? 12 : -12;
		return `M${a.x + x} ${a.y + t} C${a.x + x * 3} ${a.y + t + 24} ${b.x - x * 3} ${b.y + t + 24} ${b.x - x} ${b.y + t}`;
	}
	if (a.row === b.row) {
		const right = a.x < b.x, y = right ? -10 : 10;
		return `M${a.x + (right ? w : -w)} ${a.y + y} L${b.x + (right ? -w : w)} ${b.y + y}`;
	}
	const down = a.y < b.y, x = down ? -14 : 14;
	return `M${a.x + x} ${a.y + (down ? t : -t)} L${b.x + x} ${b.y + (down ? -t : t)}`;
}
