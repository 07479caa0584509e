// Shows the page of the address. A page is a function; it may return a function that ends it.

import { call, exchange, session } from "/static/api.js";
import { creation } from "/static/create.js";
import { detail } from "/static/detail.js";
import { h, problemBox, show } from "/static/dom.js";
import { list } from "/static/list.js";

const main = document.getElementById("main");
const who = document.getElementById("who");
const out = document.getElementById("out");
const live = document.getElementById("live");
let leave = () => {};

function signIn(details) {
  leave();
  leave = () => {};
  session.end();
  live.textContent = "";
  who.textContent = "";
  out.hidden = true;
  const token = h("input", { type: "password", autocomplete: "off", spellcheck: "false", id: "token", required: true });
  const form = h("form", { onsubmit: (event) => { event.preventDefault(); begin(token.value.trim()); } },
    h("h2", {}, "Sign in"),
    h("p", {}, "With a token of the cluster. You can do here only what you may do with kubectl. ",
      h("code", {}, "kubectl create token NAME"), " creates one for a service account; ", h("code", {}, "konverge console"), " prints a link that signs you in."),
    h("div", { class: "row" }, h("div", { class: "field" }, h("label", { for: "token" }, "Token"), token),
      h("button", { class: "main", type: "submit" }, "Sign in")));
  show(main, details ? problemBox(details) : null, form);
  token.focus();
}

async function begin(token) {
  session.begin(token);
  try {
    await showUser();
    route();
  } catch (error) {
    if (error.details && error.details.status !== 401) signIn(error.details);
  }
}

// A link of `konverge up` or `konverge console`: its code is used once, and leaves the address at once.
function signInByLink() {
  const code = /^#sign-in=([\w-]+)$/.exec(location.hash);
  if (!code) return false;
  history.replaceState(null, "", "/");
  exchange(code[1]).then(begin, (error) => signIn(error.details));
  return true;
}

async function showUser() {
  const identity = await call("GET", "/identity");
  who.textContent = identity.username;
  out.hidden = false;
}

function route() {
  leave();
  const parts = location.hash.replace(/^#\/?/, "").split("/").filter(Boolean).map(decodeURIComponent);
  live.textContent = "";
  const state = (text) => { live.textContent = text; live.dataset.state = text; };
  if (!parts.length) leave = list(main, state);
  else if (parts[0] === "new") leave = creation(main);
  else if (parts.length === 2) leave = detail(main, state, parts[0], parts[1]);
  else show(main, problemBox({ title: "No such page", detail: "Choose an instance from the list." }));
  leave = leave || (() => {});
  document.title = parts.length === 2 ? `${parts[1]} – Nacos` : "Nacos";
  if (main.contains(document.activeElement) === false) main.focus();
}

session.whenOver(signIn);
out.addEventListener("click", () => signIn(null));
document.querySelector(".skip").addEventListener("click", (event) => { event.preventDefault(); main.focus(); });
window.addEventListener("hashchange", () => { if (session.token) route(); });
if (session.token) showUser().then(route, (error) => { if (error.details && error.details.status !== 401) signIn(error.details); });
else if (!signInByLink()) signIn(null);
