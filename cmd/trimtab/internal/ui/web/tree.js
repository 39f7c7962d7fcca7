// What an object is made of: the objects of each wave, one wave after another, and the path to the root cause.

import {age, h, link, named, place, tone} from "./dom.js";

const opened = new Set(); // the folds that are open, so that they stay open when the page is drawn again

export const tree = o => h("section", {id: "tree"}, h("h2", null, "Made of"), h("ul.tree", null, branch(o)));

function branch(o) {
	const [kind, sign, word] = o.held ? ["wait", "○", "Held"] : tone(o);
	const what = o.relation === "external" ? h("span", null, "external " + o.name) : h("a", {href: link(o)}, named(o));
	const message = o.ready && o.ready !== "True" && o.message ? h("span.dim", null, o.message) : null;
	return h("li" + (o.blocks ? ".on-path" : ""), null,
		h("div", null, h("span." + kind, null, sign), what, place(o), h("span." + kind, null, word),
			o.blocks ? h("strong.blocks", null, o.blocks) : null,
			o.relation === "needed" ? h("span.dim", null, "needed, and not a part") : null,
			o.since ? h("span.dim", null, "since ", age(o.since)) : null,
			o.needs ? h("span.dim", null, "after " + o.needs.join(", ")) : null, message),
		!o.waves ? null : o.waves.some(w => w.order !== undefined) ? h("ol.waves", null, o.waves.map(w => wave(o, w))) : o.waves.map(w => objects(o, w)));
}

const wave = (o, w) => h("li", null,
	h("p.dim", null, w.order === undefined ? "In no wave" : `Wave ${w.order}: ${w.ready ? "✔ ready" : w.branches && w.branches.every(b => b.held) ? "○ waits" : "✗ not ready"}`),
	objects(o, w));

const objects = (o, w) => h("ul", null, (w.branches || []).map(branch), (w.folded || []).map(f => fold(link(o) + " " + w.order, f)));

// fold is objects that are fine, in one line that can be opened.
function fold(where, f) {
	const id = where + " " + f.kind;
	const e = h("details", {open: opened.has(id)}, h("summary", {id}, h("span.good", null, "✔"), ` ${f.branches.length} × ${f.kind}`), h("ul", null, f.branches.map(branch)));
	e.addEventListener("toggle", () => opened[e.open ? "add" : "delete"](id));
	return h("li", null, e);
}
