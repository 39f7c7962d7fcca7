// How the page talks to its server, and to whoever looks at it.

import {h} from "./dom.js";

// key lets this page in. It comes behind the sign # of the address, and is kept for this tab and this server alone: a cookie would
// go to the servers on other ports, too.
let key = sessionStorage.getItem("key") || "";
export function takeKey() {
	const given = new URLSearchParams(location.hash.slice(1)).get("key");
	if (!given) return;
	sessionStorage.setItem("key", key = given);
	history.replaceState(null, "", "#/");
}
export const ask = (path, options) => fetch(path, {...options, headers: {"X-Trimtab-Key": key}});

const live = document.getElementById("live");
export function say(text) { live.textContent = text; }

// copier is a button that copies a text. about names what it copies, for screen readers.
export function copier(text, about) {
	const copy = h("button", {type: "button", ariaLabel: "Copy: " + about}, "Copy");
	copy.addEventListener("click", () => navigator.clipboard.writeText(text).then(() => say("copied"), () => say("not copied: the browser forbids it")));
	return copy;
}
