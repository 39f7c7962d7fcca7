// The page of an operator: whether it is well, and what it does.

import {age, h, link, named, place, unseen} from "./dom.js";
import {copier} from "./server.js";

const signs = {good: "✔", wait: "!", bad: "✗"};
const number = n => n >= 10 || Number.isInteger(n) ? String(Math.round(n)) : n.toFixed(1);
const passes = n => n === 1 ? "1 pass" : n + " passes";
const share = (n, of) => of ? ` (${Math.round(100 * n / of)}%)` : "";

export function operator(v) {
	const p = v.process, name = p ? p.name : "";
	document.title = name ? `operator ${name}` : "operators";
	return [
		h("h1", null, name ? "Operator " + name : "Operators"),
		h("p", {id: "verdict"}, h("strong." + v.verdict.tone, null, signs[v.verdict.tone] + " " + v.verdict.text)),
		p ? h("p.dim", null, [p.version, p.lease && (p.leads ? "leads by the lease " : "competes for the lease ") + p.lease].filter(Boolean).join(" · "), " · started ", age(p.started), " ago") : null,
		v.findings.length ? h("section", {id: "findings"}, h("h2", null, "What is wrong"), v.findings.map(finding)) : null,
		p ? [queues(v.controllers), causes(v.controllers), busiest(v.lately), permissions(p), requests(v)] : null,
		leaders(v.operators),
		objects(v.objects),
		unseen(v.unseen),
	];
}

// command is one to copy.
const command = text => h("li", null, h("code", null, text), copier(text, text));

const finding = f => h("div.panel.cause." + f.tone + "-edge", null,
	h("p", null, h("strong." + f.tone, null, signs[f.tone] + " " + f.text)),
	(f.evidence || []).map(t => h("p.dim", null, t)),
	f.remedy ? h("p", null, "What to do: ", f.remedy) : null,
	f.command ? h("ul.commands", null, command(f.command)) : null);

// table has its heads in each cell, too, for screens that are too narrow for columns.
const table = (heads, rows) => h("table.labelled", null,
	h("thead", null, h("tr", null, heads.map(t => h("th", {scope: "col"}, t)))),
	h("tbody", null, rows.map(cells => h("tr", null, cells.map((c, i) => h("td", {"data-label": heads[i]}, c))))));

const queues = list => h("section", {id: "queue"}, h("h2", null, "Queue"),
	list.length ? table(["Controller", "Waiting", "Workers", "Passes", "Failed", "Changed nothing", "A pass takes", "Waits for it"], list.map(c => [
		c.name, number(c.waiting), `${number(c.busy)} of ${number(c.workers)} busy`, number(c.passes), number(c.failed) + share(c.failed, c.passes),
		number(c.idle) + share(c.idle, c.passes), number(c.pass) + " ms", number(c.queued) + " ms"])) : h("p", null, "It has no controllers yet."),
	h("p.dim", null, "Objects that wait now; passes since the start of the process; times on average."));

const words = {event: "an object or a source changed", retry: "a pass before it failed", time: "an interval or an appointment"};
function causes(list) {
	const rows = list.flatMap(c => Object.entries(c.causes).sort((a, b) => b[1] - a[1]).map(([cause, n]) => {
		const all = Object.values(c.causes).reduce((sum, n) => sum + n, 0);
		return [c.name, cause, words[cause] || "", [h("progress", {value: n, max: all, ariaHidden: "true"}), " ", number(n) + share(n, all)]];
	}));
	return h("section", {id: "causes"}, h("h2", null, "Why passes begin"), rows.length ? table(["Controller", "Cause", "Because", "Passes"], rows) : h("p", null, "There was none yet."));
}

const busiest = v => h("section", {id: "busiest"}, h("h2", null, "Busiest objects"),
	h("p.dim", null, `${passes(v.passes)}, ${v.failed} of which failed, since `, age(v.since), " ago."),
	v.hot.length ? h("ul.rows", null, v.hot.map(o => h("li", null, h(o.apiVersion ? "a" : "div", o.apiVersion ? {href: link(o), id: link(o)} : null,
		h("span", null, h("b", null, named(o)), " ", place(o)),
		h("span", null, passes(o.passes) + (o.idle ? `, ${o.idle} changed nothing` : "")),
		age(o.at),
		h("span.message", null, h("span." + (o.failed ? "bad" : "dim"), null, (o.failed ? `✗ ${o.failed} failed; ` : "") + "last: " + o.outcome), o.why ? " – " + o.why : ""))))) : null);

const requests = v => h("section", {id: "requests"}, h("h2", null, "Requests to the API server"),
	h("p", null, h("strong", null, number(v.perPass)), " for each pass since the start; lists, watches, the lease and questions about permissions do not count."),
	table(["Request", "Resource", "How many", "Refused"], (v.process.requests || []).map(r => [r.verb, r.resource, String(r.count), r.refused ? h("span.bad", null, "✗ " + r.refused) : "0"])));

const verdicts = {
	missing: ["bad", "✗ it does not have the permission"],
	permitted: ["wait", "! it has the permission: it was granted since, or a quota, a policy or a webhook refused the request"],
	unknown: ["wait", "! the API server did not say whether it has the permission"],
};
function permissions(p) {
	const refused = (p.requests || []).filter(r => r.last);
	const rows = [...(p.missing || []).map(text => [text, "–", "at the start", h("span.bad", null, verdicts.missing[1])]),
		...refused.map(r => [r.last.permission + (r.last.name ? `, for ${r.last.name}` : ""), String(r.refused), [age(r.last.at), " ago"], h("span." + verdicts[r.last.verdict][0], null, verdicts[r.last.verdict][1])])];
	return h("section", {id: "denied"}, h("h2", null, "Permissions denied"),
		rows.length ? table(["Permission", "Requests refused", "Last", "Now"], rows) : h("p.good", null, "✔ None since the start of the process."));
}

const leaders = list => h("section", {id: "leaders"}, h("h2", null, "Who leads"),
	list.length ? table(["Operator", "Leader", "Lease renewed", "Kinds", "How to ask it"], list.map(o => [
		`${o.namespace}/${o.name}` + (o.asked ? ", this one" : ""),
		o.leads ? h("span.good", null, "✔ " + o.holder) : h("span.bad", null, "✗ nobody"),
		[age(o.renewed), " ago"], (o.kinds || []).join(", "),
		o.commands ? h("ul.commands", null, o.commands.map(command)) : o.unreachable || (o.asked ? "it is asked" : "")])) : h("p", null, "No operator holds a lease that has a role of the same name."));

const objects = v => Object.keys(v).length ? h("section", {id: "objects"}, h("h2", null, "Objects"),
	table(["Kind", "Ready", "Not ready"], Object.entries(v).sort().map(([kind, n]) => [kind, String(n.ready), n.notReady ? h("a", {href: "#/"}, "✗ " + n.notReady) : "0"]))) : null;
