// The dashboard. Each page is a stream of values; after each one the page is drawn anew, and the focus stays where it was.
// Texts become text nodes only, so that nothing that an object says is markup.

const page = document.getElementById("page");
const live = document.getElementById("live");
let stream, shown, filter = "", busy = "";

// key lets this page in. It comes behind the sign # of the address, and is kept for this tab and this server alone: a cookie would
// go to the servers on other ports, too.
let key = sessionStorage.getItem("key") || "";
function takeKey() {
	const given = new URLSearchParams(location.hash.slice(1)).get("key");
	if (!given) return;
	sessionStorage.setItem("key", key = given);
	history.replaceState(null, "", "#/");
}
const ask = (path, options) => fetch(path, {...options, headers: {"X-Trimtab-Key": key}});

// h makes an element from a name with classes ("li.bad"), properties and children.
function h(name, props, ...children) {
	const [tag, ...classes] = name.split(".");
	const e = document.createElement(tag);
	if (classes.length) e.className = classes.join(" ");
	for (const [key, value] of Object.entries(props || {})) {
		if (key in e) e[key] = value; else e.setAttribute(key, value);
	}
	e.append(...children.flat(Infinity).filter(c => c !== null && c !== undefined && c !== ""));
	return e;
}

// query and link name an object for the server and for the address bar.
const query = o => new URLSearchParams({apiVersion: o.apiVersion, kind: o.kind, namespace: o.namespace || "", name: o.name}).toString();
const link = o => "#/object?" + query(o);
const named = o => o.kind + " " + o.name;

// place is the namespace of an object, unless all on the page are in one.
let only = "";
const place = o => o.namespace && o.namespace !== only ? h("span.dim", null, o.namespace) : null;

// tone says how an object is, as a class, a sign and a word: the colour never says it alone.
function tone(o) {
	if (o.deleting) return ["wait", "✗", "Deleting"];
	if (o.paused) return ["wait", "‖", "Paused"];
	if (o.ready === "True") return ["good", "✔", o.state || o.reason || "Ready"];
	if (o.ready === "False") return ["bad", "✗", o.reason || o.state || "NotReady"];
	if (o.ready === "Unknown") return ["wait", "…", o.state || o.reason || "Unknown"];
	return ["dim", "·", o.state || ""];
}

// age is a time that goes on; tick keeps it current.
function age(at) {
	if (!at) return h("span.dim", null, "");
	const e = h("time", {dateTime: at, title: new Date(at).toLocaleString()});
	e.textContent = since(at);
	return e;
}
function since(at) {
	const s = Math.max(0, Math.round((Date.now() - new Date(at)) / 1000));
	if (s < 120) return s + "s";
	if (s < 7200) return Math.floor(s / 60) + "m";
	if (s < 172800) return Math.floor(s / 3600) + "h";
	return Math.floor(s / 86400) + "d";
}
setInterval(() => document.querySelectorAll("time").forEach(e => { e.textContent = since(e.dateTime); }), 1000);

const unseen = list => list && list.length ? h("section", null, h("h2", null, "Not seen"), h("ul.dim", null, list.map(u => h("li", null, u)))) : null;

function attention(v) {
	document.title = v.notReady && v.notReady.length ? `(${v.notReady.length}) trimtab` : "trimtab";
	document.getElementById("place").textContent = [v.cluster, v.namespace || "all namespaces"].filter(Boolean).join(" · ");
	only = v.namespace;
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

function object(v) {
	const o = v.why.object, [kind, sign, word] = tone(o);
	document.title = `${named(o)}: ${word}`;
	return [
		h("h1", null, named(o), " ", place(o)),
		h("p", null, h("strong." + kind, {id: "state"}, sign + " " + word), " ", h("span.dim", null, "since ", age(o.since || o.created))),
		o.message ? h("p", null, o.message) : null,
		why(v.why),
		v.commands.length ? h("section", null, h("h2", null, "What you can do"), h("ul.commands", null, v.commands.map(c => action(o, c)))) : null,
		h("div.columns", null,
			h("section", {id: "tree"}, h("h2", null, "Made of"), h("ul.tree", null, branch(v.tree))),
			v.conditions && v.conditions.length ? h("section", {id: "conditions"}, h("h2", null, "Conditions"), conditions(v.conditions)) : null),
		timeline(v.history),
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

function action(o, c) {
	const copy = h("button", {type: "button", ariaLabel: "Copy: " + c.text}, "Copy");
	copy.addEventListener("click", () => navigator.clipboard.writeText(c.text).then(() => say("copied"), () => say("not copied: the browser forbids it")));
	let act = null;
	if (c.verb) {
		act = h("button", {type: "button", id: "act-" + c.verb, disabled: busy === c.verb}, c.verb);
		act.addEventListener("click", async () => {
			busy = c.verb; draw();
			const answer = await ask(`api/act?verb=${c.verb}&uid=${o.uid}&${query(o)}`, {method: "POST"}).catch(e => e);
			busy = ""; say(answer.ok ? c.verb + ": done" : answer.text ? (await answer.text()).trim() : "the server is away"); draw();
		});
	}
	return h("li", null, act, h("code", null, c.text), copy, c.effects ? h("span.dim", null, c.effects.join("; ")) : null);
}

function branch(o) {
	const [kind, sign, word] = tone(o);
	const what = o.relation === "external" ? h("span", null, "external " + o.name) : h("a", {href: link(o)}, named(o));
	return h("li", null,
		h("div", null, h("span." + kind, null, sign), what, place(o), h("span." + kind, null, word), o.ready && o.ready !== "True" && o.message ? h("span.dim", null, o.message) : null),
		o.objects ? h("ul", null, o.objects.map(branch)) : null);
}

const conditions = list => h("table", null,
	h("thead", null, h("tr", null, ["Type", "Status", "Reason", "Since", "Message"].map(t => h("th", {scope: "col"}, t)))),
	h("tbody", null, list.map(c => h("tr", null, h("td", null, c.type), h("td", null, c.status), h("td", null, c.reason), h("td", null, age(c.lastTransitionTime)), h("td", null, c.message)))));

// timeline is what has happened, the newest first.
const timeline = v => h("section", {id: "timeline"}, h("h2", null, "History"),
	h("table", null,
		h("thead", null, h("tr", null, ["Age", "What", ""].map(t => h("th", {scope: "col"}, t)))),
		h("tbody", null, [...v.moments].reverse().map(m => h("tr", null, h("td", null, age(m.at)), h("td", null, m.what), h("td", null, m.text))))),
	h("p.dim", null, "Not known: " + v.limits.join("; ")));

function say(text) { live.textContent = text; }

// draw shows the last value again.
function draw() {
	if (!shown) return;
	const focus = document.activeElement, id = focus && page.contains(focus) ? focus.id : "";
	const caret = id === "filter" ? focus.selectionStart : null;
	const content = shown.problem ? [h("h1", null, "This cannot be shown"), h("p.bad", {id: "problem"}, shown.problem)] : shown.draw(shown.value);
	page.replaceChildren(...content.flat(Infinity).filter(Boolean));
	const again = id && document.getElementById(id);
	if (again) { again.focus({preventScroll: true}); if (caret !== null) again.setSelectionRange(caret, caret); }
}

// open follows the address.
function open() {
	takeKey();
	shown = null;
	page.replaceChildren(h("p", null, "Loading."));
	page.focus({preventScroll: true});
	connect();
}

// connect asks for the page of the address; what nobody sees is not asked for.
function connect() {
	if (stream) stream.abort();
	if (document.hidden) return;
	const [path, q] = location.hash.slice(1).split("?");
	follow(path === "/object" ? "api/object?" + q : "api/attention", path === "/object" ? object : attention, stream = new AbortController());
}

// follow shows what a stream sends until it is aborted. A stream that ends is asked for again. EventSource cannot send the key.
async function follow(path, view, control) {
	while (!control.signal.aborted) {
		try {
			const answer = await ask(path, {signal: control.signal});
			if (!answer.ok) {
				shown = {problem: (await answer.text()).trim()};
				return draw();
			}
			await events(answer.body, (name, value) => {
				if (control.signal.aborted) return;
				if (name === "page") say("live");
				shown = name === "page" ? {draw: view, value} : {problem: value};
				draw();
			});
		} catch (e) { // the server is away, or the stream was aborted
			if (control.signal.aborted) return;
			console.warn(e);
		}
		if (control.signal.aborted) return;
		say("the connection is lost; what is shown is old");
		await new Promise(again => setTimeout(again, 3000));
	}
}

// events reads server-sent events: blocks of lines, each block one event.
async function events(body, each) {
	const reader = body.pipeThrough(new TextDecoderStream()).getReader();
	for (let rest = ""; ;) {
		const {value, done} = await reader.read();
		if (done) return;
		const blocks = (rest + value).split("\n\n");
		rest = blocks.pop();
		for (const block of blocks) {
			const field = name => block.split("\n").find(line => line.startsWith(name + ": "))?.slice(name.length + 2);
			if (field("data")) each(field("event"), JSON.parse(field("data")));
		}
	}
}
addEventListener("hashchange", open);
document.addEventListener("visibilitychange", connect);
open();

const help = document.getElementById("help");
document.getElementById("keys").addEventListener("click", () => help.showModal());
addEventListener("keydown", e => {
	if (e.ctrlKey || e.metaKey || e.altKey || help.open) return;
	if (e.target.tagName === "INPUT") {
		if (e.key === "Escape") e.target.blur();
		return;
	}
	const rows = [...page.querySelectorAll(".rows a, .tree a")], at = rows.indexOf(document.activeElement);
	const keys = {
		j: () => rows[Math.min(at + 1, rows.length - 1)]?.focus(),
		k: () => rows[Math.max(at - 1, 0)]?.focus(),
		u: () => { location.hash = "#/"; },
		"/": () => document.getElementById("filter")?.focus(),
		"?": () => help.showModal(),
	};
	if (keys[e.key]) { keys[e.key](); e.preventDefault(); }
});
