// The dashboard. Each page is a stream of values; after each one the page is drawn anew, and the focus stays where it was.

import {attention} from "./attention.js";
import {h} from "./dom.js";
import {object} from "./object.js";
import {operator} from "./operator.js";
import {pass} from "./pass.js";
import {ask, say, takeKey} from "./server.js";

const page = document.getElementById("page");
let stream, shown, chosen; // chosen is the id of a list of choices that leads from page to page

// views are what draws a page, by its path in the address, which is the path of its stream, too.
const views = {attention, object, operator, pass};

// draw shows the last value again.
function draw() {
	if (!shown) return;
	const focus = document.activeElement, id = chosen || (focus && page.contains(focus) ? focus.id : "");
	const caret = id === "filter" ? focus.selectionStart : null;
	const content = shown.problem ? [h("h1", null, "This cannot be shown"), h("p.bad", {id: "problem"}, shown.problem)] : shown.draw(shown.value, draw);
	page.replaceChildren(...content.flat(Infinity).filter(Boolean));
	const again = id && document.getElementById(id);
	if (shown.value) chosen = "";
	if (again) { again.focus({preventScroll: true}); if (caret !== null) again.setSelectionRange(caret, caret); }
}

// open follows the address.
function open() {
	takeKey();
	shown = null;
	chosen = document.activeElement.tagName === "SELECT" ? document.activeElement.id : "";
	page.replaceChildren(h("p", null, "Loading."));
	page.focus({preventScroll: true});
	connect();
}

// connect asks for the page of the address; what nobody sees is not asked for.
function connect() {
	if (stream) stream.abort();
	if (document.hidden) return;
	const [path, q] = location.hash.slice(2).split("?");
	const view = path in views ? path : "attention";
	follow(`api/${view}?${q || ""}`, views[view], stream = new AbortController());
}

// follow shows what a stream sends until it is aborted. A stream that ends is asked for again. EventSource cannot send the key.
async function follow(path, view, control) {
	while (!control.signal.aborted) {
		try {
			const answer = await ask(path, {signal: control.signal});
			if (!answer.ok) {
				shown = {problem: (await answer.text()).trim()};
				say("");
				return draw();
			}
			await events(answer.body, (name, value) => {
				if (control.signal.aborted) return;
				say(name === "page" ? "live" : "");
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
	if (["INPUT", "SELECT"].includes(e.target.tagName)) {
		if (e.key === "Escape") e.target.blur();
		return;
	}
	const rows = [...page.querySelectorAll(".rows a, .tree a, .step")], at = rows.indexOf(document.activeElement);
	const keys = {
		j: () => rows[Math.min(at + 1, rows.length - 1)]?.focus(),
		k: () => rows[Math.max(at - 1, 0)]?.focus(),
		u: () => { location.hash = "#/"; },
		o: () => { location.hash = "#/operator"; },
		"/": () => document.getElementById("filter")?.focus(),
		"?": () => help.showModal(),
	};
	if (keys[e.key]) { keys[e.key](); e.preventDefault(); }
});
