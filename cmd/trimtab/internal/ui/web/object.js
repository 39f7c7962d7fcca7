// The page of an object.

import {axis} from "./axis.js";
import {age, h, link, named, place, query, tone, unseen} from "./dom.js";
import {next} from "./next.js";
import {passes} from "./pass.js";
import {ask, copier, say} from "./server.js";
import {states} from "./states.js";
import {tree} from "./tree.js";

let busy = "";

export function object(v, draw) {
	const o = v.why.object, [kind, sign, word] = tone(o);
	document.title = `${named(o)}: ${word}`;
	return [
		h("h1", null, named(o), " ", place(o)),
		h("p", null, h("strong." + kind, {id: "state"}, sign + " " + word), " ", h("span.dim", null, "since ", age(o.since || o.created))),
		o.message ? h("p", null, o.message) : null,
		states(v.machine),
		next(v.next),
		why(v.why),
		v.commands.length ? h("section", null, h("h2", null, "What you can do"), h("ul.commands", null, v.commands.map(c => action(o, c, draw)))) : null,
		tree(v.tree),
		v.conditions && v.conditions.length ? h("section", {id: "conditions"}, h("h2", null, "Conditions"), conditions(v.conditions)) : null,
		passes(o, v.passes),
		timeline(v, draw),
		unseen(v.why.unseen),
	];
}

function why(e) {
	if (e.ready) return null;
	const chain = e.chain || [];
	return h("section", {id: "why"}, h("h2", null, "Why"),
		chain.length > 1 ? h("ol.chain", null, chain.map(l => h("li", null, l.name === e.object.name && l.kind === e.object.kind ? named(l) : h("a", {href: link(l)}, named(l)), " ", place(l), " ", h("span.dim", null, l.why)))) : null,
		h("div.panel.cause", null,
			h("p", null, h("strong", null, e.cause.text), " ", h("code", null, e.cause.code)),
			(e.cause.evidence || []).map(t => h("p.dim", null, t)),
			h("p", {id: "remedy"}, "What to do: ", e.cause.remedy)),
		e.cleared ? h("p.dim", null, "Not the cause: " + e.cleared.join(", ")) : null);
}

function action(o, c, draw) {
	let act = null;
	if (c.verb) {
		act = h("button", {type: "button", id: "act-" + c.verb, disabled: busy === c.verb}, c.verb);
		act.addEventListener("click", async () => {
			busy = c.verb; draw();
			const answer = await ask(`api/act?verb=${c.verb}&uid=${o.uid}&shown=${c.shown}&${query(o)}`, {method: "POST"}).catch(e => e);
			busy = ""; say(answer.ok ? c.verb + ": done" : answer.text ? (await answer.text()).trim() : "the server is away"); draw();
		});
	}
	return h("li", null, act, h("code", null, c.text), copier(c.text, c.text), c.effects ? h("span.dim", null, c.effects.join("; ")) : null);
}

const conditions = list => h("table", null,
	h("thead", null, h("tr", null, ["Type", "Status", "Reason", "Since", "Message"].map(t => h("th", {scope: "col"}, t)))),
	h("tbody", null, list.map(c => h("tr", null, h("td", null, c.type), h("td", null, c.status), h("td", null, c.reason), h("td", null, age(c.lastTransitionTime)), h("td", null, c.message)))));

// timeline is what has happened: drawn, and as a list, the newest first.
const timeline = (v, draw) => h("section", {id: "timeline"}, h("h2", null, "History"),
	axis(v.axis, query(v.why.object), draw),
	h("table", null,
		h("thead", null, h("tr", null, ["Age", "What", ""].map(t => h("th", {scope: "col"}, t)))),
		h("tbody", null, [...v.history.moments].reverse().map(m => h("tr", null, h("td", null, age(m.at)), h("td", null, m.what), h("td", null, m.text))))),
	h("p.dim", null, "Not known: " + v.history.limits.join("; ")));
