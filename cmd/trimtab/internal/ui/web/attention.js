// The first page: what needs attention.

import {age, h, link, named, place, tone, unseen, within} from "./dom.js";

let filter = "";

export function attention(v, draw) {
	document.title = v.notReady && v.notReady.length ? `(${v.notReady.length}) trimtab` : "trimtab";
	document.getElementById("place").textContent = [v.cluster, v.namespace || "all namespaces"].filter(Boolean).join(" · ");
	within(v.namespace);
	const ready = Object.entries(v.ready).sort();
	const matches = o => filter.toLowerCase().split(/\s+/).every(w => (named(o) + " " + o.namespace + " " + o.reason + " " + o.state + " " + o.message).toLowerCase().includes(w));
	const groups = v.groups.map(g => ({...g, objects: g.objects.filter(matches)})).filter(g => g.objects.length);
	const field = h("input", {id: "filter", type: "search", value: filter, placeholder: "Filter ( / )", ariaLabel: "Filter"});
	field.addEventListener("input", () => { filter = field.value; draw(); });
	return [
		h("h1", null, v.groups.length ? "Needs attention" : v.unseen ? "Nothing that can be seen needs attention" : "Nothing needs attention"),
		h("ul.counts", null,
			h("li" + (v.groups.length ? ".bad" : v.unseen ? ".wait" : ".good"), null, `${v.groups.reduce((n, g) => n + g.objects.length, 0)} not ready`),
			ready.map(([kind, n]) => h("li.good", null, `✔ ${n} ${kind} ready`))),
		v.groups.length ? field : null,
		groups.map(g => h("section", null,
			h("h2", null, g.reason, " ", h("span.dim", null, `${g.objects.length}`)),
			h("ul.rows", null, g.objects.map(o => {
				const [kind, sign, word] = tone(o);
				return h("li", null, h("a", {href: link(o), id: link(o)},
					h("span", null, h("b", null, named(o)), " ", place(o)), h("span." + kind, null, sign + " " + word), age(o.since || o.created), h("span.message", null, o.message || "")));
			})))),
		v.groups.length && !groups.length ? h("p", null, "Nothing matches the filter.") : null,
		unseen(v.unseen),
	];
}
