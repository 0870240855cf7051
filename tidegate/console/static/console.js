// The theme, confirmations, filters and what is kept of them. Everything else is htmx and plain forms.
"use strict";

const chosen = localStorage.getItem("theme");
if (chosen) document.documentElement.dataset.theme = chosen;

document.addEventListener("DOMContentLoaded", () => {
  document.getElementById("theme")?.addEventListener("click", () => {
    const dark = document.documentElement.dataset.theme
      ? document.documentElement.dataset.theme === "dark"
      : matchMedia("(prefers-color-scheme: dark)").matches;
    const next = dark ? "light" : "dark";
    document.documentElement.dataset.theme = next;
    localStorage.setItem("theme", next);
  });
});

// A form with data-confirm asks before it is sent.
document.addEventListener("submit", (event) => {
  const question = event.target.dataset.confirm;
  if (question && !window.confirm(question)) event.preventDefault();
});

// A button with data-stop ends what continues by itself: the element that it names, and the request that this has sent.
document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-stop]");
  if (!button) return;
  const going = document.querySelector(button.dataset.stop);
  if (going) {
    htmx.trigger(going, "htmx:abort");
    going.remove();
  }
  button.replaceWith("Stopped.");
});

// "/" puts the cursor into the page's filter.
document.addEventListener("keydown", (event) => {
  const typing = event.target.closest("input, textarea, select, [contenteditable]");
  if (event.key !== "/" || typing || event.ctrlKey || event.metaKey || event.altKey) return;
  const filter = document.querySelector("[data-filter]");
  if (filter) {
    event.preventDefault();
    filter.focus();
  }
});

// Errors of partial updates are shown where the result would be; without a target in the notice at the end of the page.
document.addEventListener("htmx:beforeSwap", (event) => {
  if (event.detail.xhr.status >= 400 && event.detail.xhr.getResponseHeader("content-type")?.startsWith("text/html")) {
    event.detail.shouldSwap = true;
    event.detail.isError = false;
  }
});
// A page that nobody sees does not refresh itself.
document.addEventListener("htmx:confirm", (event) => {
  if (document.hidden && event.detail.verb === "get" && event.detail.triggeringEvent === undefined) event.preventDefault();
});
document.addEventListener("htmx:sendError", () => {
  document.getElementById("notice").textContent = "The console does not answer. The page shows what was there before.";
});
document.addEventListener("htmx:afterRequest", (event) => {
  if (event.detail.successful) document.getElementById("notice").textContent = "";
});

// A button with data-back goes back to the form, whose fields the browser keeps.
document.addEventListener("click", (event) => {
  if (event.target.closest("[data-back]")) history.back();
});

// What a reader has unfolded stays unfolded when a part of the page refreshes itself.
const unfolded = new Set();
document.addEventListener("htmx:beforeSwap", (event) => {
  unfolded.clear();
  for (const details of event.detail.target.querySelectorAll("details[id][open]")) unfolded.add(details.id);
});
document.addEventListener("htmx:afterSwap", (event) => {
  for (const id of unfolded) document.getElementById(id)?.setAttribute("open", "");
});

// A button with data-keep keeps what its form asks for, under a name, in this browser; an element with data-kept lists what is kept.
const keptIn = (kind) => JSON.parse(localStorage.getItem(`kept.${kind}`) || "[]");

function listKept(list) {
  const kind = list.dataset.kept;
  list.replaceChildren();
  for (const { name, path } of keptIn(kind)) {
    const item = document.createElement("li");
    const link = Object.assign(document.createElement("a"), { href: path, textContent: name });
    const drop = Object.assign(document.createElement("button"), { type: "button", className: "plain", textContent: "✕" });
    drop.setAttribute("aria-label", `Forget ${name}`);
    drop.addEventListener("click", () => {
      localStorage.setItem(`kept.${kind}`, JSON.stringify(keptIn(kind).filter((each) => each.name !== name)));
      listKept(list);
    });
    item.append(link, " ", drop);
    list.append(item);
  }
}

document.addEventListener("DOMContentLoaded", () => document.querySelectorAll("[data-kept]").forEach(listKept));

document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-keep]");
  if (!button) return;
  const name = window.prompt("A name for it, in this browser");
  if (!name) return;
  const kind = button.dataset.keep;
  const fields = new URLSearchParams(new FormData(button.form));
  fields.delete("csrf");
  const entry = { name, path: `${new URL(button.form.action).pathname}?${fields}` };
  const others = keptIn(kind).filter((each) => each.name !== name);
  localStorage.setItem(`kept.${kind}`, JSON.stringify([...others, entry]));
  document.querySelectorAll(`[data-kept="${kind}"]`).forEach(listKept);
});
