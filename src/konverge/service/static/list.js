// The list of all instances, live.

import { path, watch } from "/static/api.js";
import { field, h, phase, problemBox, show, table, when } from "/static/dom.js";

const SPACE = "namespace";

export function list(main, state) {
  const space = h("input", { type: "text", spellcheck: "false", placeholder: "all" });
  const filter = h("input", { type: "search", spellcheck: "false" });
  const place = h("div", { "aria-live": "polite", "aria-busy": "true" }, h("p", { class: "quiet" }, "Loading…"));
  space.value = sessionStorage.getItem(SPACE) || "";
  let instances = new Map();
  let end = () => {};

  const draw = () => {
    const wanted = filter.value.trim().toLowerCase();
    const items = [...instances.values()]
      .filter((item) => !wanted || `${item.namespace}/${item.name} ${item.phase} ${item.version} ${item.type}`.toLowerCase().includes(wanted))
      .sort((a, b) => `${a.namespace}/${a.name}`.localeCompare(`${b.namespace}/${b.name}`));
    place.removeAttribute("aria-busy");
    redraw(place, items, instances.size);
  };
  const begin = () => {
    end();
    instances = new Map();
    end = watch(path(space.value.trim()), {
      state,
      all: (known) => { instances = known; draw(); },
      problem: (details) => show(place, problemBox(details), details.status === 403 && !space.value.trim()
        ? h("p", {}, "You may not list all namespaces: enter one above.") : null),
    });
  };
  const choose = (event) => {
    event.preventDefault();
    sessionStorage.setItem(SPACE, space.value.trim());
    begin();
  };
  filter.addEventListener("input", draw);
  show(main, h("h2", {}, "Instances"),
    h("form", { class: "row", onsubmit: choose }, field("Namespace", space), field("Filter", filter),
      h("button", { type: "submit" }, "Show"), h("a", { href: "#/new" }, "Create an instance")),
    place);
  begin();
  return () => end();
}

function redraw(place, items, all) {
  // The focus stays on the same instance's link when the table is redrawn.
  const focused = place.contains(document.activeElement) ? document.activeElement.getAttribute("href") : "";
  const empty = all ? "No instance matches the filter." : "There is no instance here yet.";
  const rows = items.map((item) => [
    h("a", { href: addressOf(item) }, item.name), item.namespace, phase(item), `${item.readyReplicas}/${item.replicas}`, item.type,
    item.version, item.storage.database, when(item.created), item.message,
  ]);
  show(place, table("Instances", ["Name", "Namespace", "State", "Ready", "Type", "Version", "Database", "Created", "What is missing"], rows, empty));
  if (focused) place.querySelector(`a[href="${CSS.escape(focused)}"]`)?.focus();
}

export function addressOf(instance) {
  return `#/${encodeURIComponent(instance.namespace)}/${encodeURIComponent(instance.name)}`;
}
