// Elements from data. Texts stay texts: nothing here parses markup, so no name or message can become markup.

export function h(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === false || value === null) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else element.setAttribute(name, String(value));
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== ""));
  return element;
}

export function show(place, ...children) {
  place.replaceChildren(...children.flat().filter(Boolean));
}

export function table(caption, heads, rows, empty) {
  if (!rows.length) return h("p", { class: "quiet" }, empty);
  const head = h("thead", {}, h("tr", {}, heads.map((text) => h("th", { scope: "col" }, text))));
  const body = h("tbody", {}, rows.map((cells) => h("tr", {}, cells.map((cell) => h("td", {}, cell)))));
  return h("div", { class: "wide" }, h("table", { "aria-label": caption }, head, body));
}

export function facts(pairs) {
  return h("dl", {}, pairs.filter(([, value]) => value !== "").map(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]).flat());
}

const PHASE_CLASSES = { Running: "good", Failed: "bad" };

export function phase(instance) {
  const text = instance.deleting ? "Deleting" : instance.phase;
  return h("span", { class: `phase ${PHASE_CLASSES[text] || "busy"}` }, text);
}

export function when(text) {
  return text ? h("time", { datetime: text }, new Date(text).toLocaleString()) : "";
}

export function problemBox(problem) {
  const lines = (problem.errors || []).map((error) => h("p", {}, h("code", {}, error.field), ` ${error.message}`));
  return h("div", { class: "problem", role: "alert", tabindex: "-1" },
    h("p", {}, h("strong", {}, problem.title || "The request failed")), h("p", {}, problem.detail || ""), lines);
}

let fields = 0;

export function field(label, input, { hint = "", path = "" } = {}) {
  input.id = `field-${++fields}`;
  if (path) input.dataset.path = path;
  return h("div", { class: "field" }, h("label", { for: input.id }, label, hint && h("small", {}, ` ${hint}`)), input);
}

export function markWrong(form, problem) {
  // Shows each error at its input. Returns whether any input was marked.
  for (const old of form.querySelectorAll(".wrong")) old.remove();
  for (const input of form.querySelectorAll("[aria-invalid]")) {
    input.removeAttribute("aria-invalid");
    input.removeAttribute("aria-describedby");
  }
  let first = null;
  for (const error of problem ? problem.errors || [] : []) {
    const input = [...form.querySelectorAll("[data-path]")].find((candidate) => candidate.dataset.path === error.field);
    if (!input || input.closest("[hidden]")) continue;
    const note = h("p", { class: "wrong", id: `${input.id}-wrong` }, error.message);
    input.setAttribute("aria-invalid", "true");
    input.setAttribute("aria-describedby", note.id);
    input.after(note);
    first = first || input;
  }
  if (first) first.focus();
  return first !== null;
}
