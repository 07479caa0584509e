// All instances that there are, as they are now.

import { path, watch } from "/static/api.js";
import { field, h, phase, problemBox, show, table, when } from "/static/dom.js";

const SPACE = "namespace";

export function list(main, state) {
  const space = h("input", { type: "text", spellcheck: "false", placeholder: "all" });
  const words = h("input", { type: "search", spellcheck: "false" });
  const place = h("div", { "aria-live": "polite", "aria-busy": "true" }, h("p", { class: "quiet" }, "Looking…"));
  space.value = sessionStorage.getItem(SPACE) || "";
  let found = new Map();
  let end = () => {};

  const draw = () => {
    const wanted = words.value.trim().toLowerCase();
    const items = [...found.values()]
      .filter((one) => !wanted || `${one.namespace}/${one.name} ${one.phase} ${one.version} ${one.type}`.toLowerCase().includes(wanted))
      .sort((a, b) => `${a.namespace}/${a.name}`.localeCompare(`${b.namespace}/${b.name}`));
    place.removeAttribute("aria-busy");
    redraw(place, items, found.size);
  };
  const begin = () => {
    end();
    found = new Map();
    end = watch(path(space.value.trim()), {
      state,
      all: (known) => { found = known; draw(); },
      problem: (details) => show(place, problemBox(details), details.status === 403 && !space.value.trim()
        ? h("p", {}, "You may not look at all namespaces: name one above.") : null),
    });
  };
  const choose = (event) => {
    event.preventDefault();
    sessionStorage.setItem(SPACE, space.value.trim());
    begin();
  };
  words.addEventListener("input", draw);
  show(main, h("h2", {}, "Instances"),
    h("form", { class: "row", onsubmit: choose }, field("Namespace", space), field("Filter", words),
      h("button", { type: "submit" }, "Show"), h("a", { href: "#/new" }, "Create an instance")),
    place);
  begin();
  return () => end();
}

function redraw(place, items, all) {
  // The focus stays on the same instance's link when the table is drawn anew.
  const focused = place.contains(document.activeElement) ? document.activeElement.getAttribute("href") : "";
  const empty = all ? "Nothing fits the filter." : "There is no instance here yet.";
  const rows = items.map((one) => [
    h("a", { href: placeOf(one) }, one.name), one.namespace, phase(one), `${one.readyReplicas}/${one.replicas}`, one.type,
    one.version, one.storage.database, when(one.created), one.message,
  ]);
  show(place, table("Instances", ["Name", "Namespace", "State", "Ready", "Type", "Version", "Database", "Created", "What is missing"], rows, empty));
  if (focused) place.querySelector(`a[href="${CSS.escape(focused)}"]`)?.focus();
}

export function placeOf(instance) {
  return `#/${encodeURIComponent(instance.namespace)}/${encodeURIComponent(instance.name)}`;
}
