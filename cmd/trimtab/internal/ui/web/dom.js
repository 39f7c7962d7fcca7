// What all pages share: making elements, naming objects, and how an object is said to be. Texts become text nodes only, so that
// nothing that an object says is markup.

// h makes an element from a name with classes ("li.bad"), properties and children.
export function h(name, props, ...children) {
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
export const query = o => new URLSearchParams({apiVersion: o.apiVersion, kind: o.kind, namespace: o.namespace || "", name: o.name}).toString();
export const link = o => "#/object?" + query(o);
export const named = o => o.kind + " " + o.name;

// place is the namespace of an object, unless all on the page are in one.
let only = "";
export function within(namespace) { only = namespace; }
export const place = o => o.namespace && o.namespace !== only ? h("span.dim", null, o.namespace) : null;

// tone says how an object is, as a class, a sign and a word: the colour never says it alone.
export function tone(o) {
	if (o.deleting) return ["wait", "✗", "Deleting"];
	if (o.paused) return ["wait", "‖", "Paused"];
	if (o.ready === "True") return ["good", "✔", o.state || o.reason || "Ready"];
	if (o.ready === "False") return ["bad", "✗", o.reason || o.state || "NotReady"];
	if (o.ready === "Unknown") return ["wait", "…", o.state || o.reason || "Unknown"];
	return ["dim", "·", o.state || ""];
}

// age is a time that goes on; tick keeps it current.
export function age(at) {
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

export const unseen = list => list && list.length ? h("section", null, h("h2", null, "Not seen"), h("ul.dim", null, list.map(u => h("li", null, u)))) : null;
