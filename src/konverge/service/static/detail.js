// One instance: its servers, what happened to it, its YAML; and what can be done with it.

import { Problem, call, path, watch } from "/static/api.js";
import { facts, field, h, markWrong, phase, problemBox, show, table, when } from "/static/dom.js";

export function detail(main, state, namespace, name) {
  const place = path(namespace, name);
  const told = h("div", { "aria-live": "polite" }, h("p", { class: "quiet" }, "Looking…"));
  const notes = h("div", {});
  const events = h("div", {});
  const yaml = h("pre", { tabindex: "0", "aria-label": "YAML" });
  const file = h("details", { ontoggle: () => { if (file.open) refreshYaml(); } }, h("summary", {}, "YAML (without secrets)"), yaml);
  const forms = actions(place, name, notes);
  let seen = "";

  const refreshYaml = async () => { yaml.textContent = await call("GET", `${place}/manifest`).catch((error) => error.message); };
  const refreshEvents = async () => {
    try {
      show(events, happenings((await call("GET", `${place}/events`)).items));
    } catch (error) {
      show(events, problemBox(error.details || { detail: error.message }));
    }
  };
  const all = (known) => {
    const one = known.values().next().value;
    if (!one) {
      forms.element.hidden = true;
      show(told, h("p", {}, seen ? "This instance is gone." : "There is no such instance. ", " ", h("a", { href: "#/" }, "All instances")));
      return;
    }
    if (one.resourceVersion === seen) return;
    seen = one.resourceVersion;
    forms.offer(one);
    show(told, stateOf(one));
    refreshEvents();
    if (file.open) refreshYaml();
  };
  show(main, h("h2", {}, name, " ", h("small", { class: "quiet" }, namespace)), notes, told, forms.element,
    h("h3", {}, "Events"), events, file);
  return watch(place, { state, all, problem: (details) => show(told, problemBox(details)) });
}

function stateOf(one) {
  const servers = one.servers.map((server) => [
    server.pod, server.role || "unknown", server.ready ? "yes" : "no", server.address, server.node, server.message,
  ]);
  const conditions = one.conditions.map((each) => [each.type, each.status, each.reason, each.message, when(each.since)]);
  return [
    facts([
      ["State", phase(one)], ["What is missing", one.message], ["Ready", `${one.readyReplicas} of ${one.replicas}`],
      ["Leader", one.leader], ["Type", one.type], ["Version", one.version], ["Image", one.image],
      ["Database", one.storage.database], ["Volume", one.storage.volume ? `${one.storage.size} ${one.storage.storageClass}` : "none"],
      ["Quota", quota(one.resources)], ["Created", when(one.created)], ["Paused", one.paused ? "yes: the operator leaves it alone" : ""],
    ]),
    h("h3", {}, "Servers"), table("Servers", ["Pod", "Role", "Ready", "Address", "Node", "Message"], servers, "No server is known yet."),
    h("h3", {}, "Conditions"), table("Conditions", ["Type", "Status", "Reason", "Message", "Since"], conditions, "Nothing is known yet."),
  ];
}

function quota(resources) {
  const part = (name) => Object.entries(resources[name] || {}).map(([key, value]) => `${key} ${value}`).join(", ");
  return ["requests", "limits"].filter((name) => part(name)).map((name) => `${name}: ${part(name)}`).join("; ") || "none";
}

function happenings(items) {
  const rows = items.map((one) => [when(one.last), one.type, one.reason, String(one.count), one.message]);
  return table("Events", ["Last", "Type", "Reason", "Count", "Message"], rows, "Nothing has happened yet.");
}

function actions(place, name, notes) {
  const replicas = h("input", { type: "number", min: "1", max: "99", required: true });
  const cpu = h("input", { type: "text", spellcheck: "false", placeholder: "1" });
  const memory = h("input", { type: "text", spellcheck: "false", placeholder: "2Gi" });
  const version = h("select", {}, h("option", { value: "" }, "as it is"));
  let offered = false;

  const change = async (form, body, words) => {
    try {
      await call("PATCH", place, body);
      markWrong(form, null);
      show(notes, h("p", { role: "status" }, words));
    } catch (error) {
      refuse(form, error, notes);
    }
  };
  const scale = h("form", { class: "row", "aria-label": "Scale" }, field("Servers", replicas, { path: "replicas" }),
    h("button", { type: "submit" }, "Scale"));
  scale.addEventListener("submit", (event) => {
    event.preventDefault();
    change(scale, { replicas: Number(replicas.value) }, `${replicas.value} servers are wished for.`);
  });
  const limits = h("form", { class: "row", "aria-label": "Quota" },
    field("CPU", cpu, { hint: "limit of each server", path: "resources.limits.cpu" }),
    field("Memory", memory, { hint: "limit of each server", path: "resources.limits.memory" }),
    field("Version", version, { path: "version" }), h("button", { type: "submit" }, "Change"));
  limits.addEventListener("submit", (event) => {
    event.preventDefault();
    const body = { resources: { limits: { cpu: cpu.value.trim() || null, memory: memory.value.trim() || null } } };
    if (version.value) body.version = version.value;
    change(limits, body, "The change is on its way.");
  });
  const remove = h("button", { type: "button", class: "danger" }, "Delete…");
  remove.addEventListener("click", () => confirmDeletion(place, name, notes, remove));
  const element = h("section", { "aria-label": "Change", hidden: true }, h("h3", {}, "Change"), scale, limits, remove);
  const offer = async (one) => {
    // What somebody is typing is not overwritten by news.
    const idle = (input) => document.activeElement !== input;
    if (idle(replicas)) replicas.value = one.replicas;
    if (idle(cpu)) cpu.value = one.resources.limits?.cpu ?? "";
    if (idle(memory)) memory.value = one.resources.limits?.memory ?? "";
    element.hidden = one.deleting;
    if (offered) return;
    offered = true;
    const { items } = await call("GET", "/versions").catch(() => ({ items: [] }));
    version.append(...items.map((each) => h("option", { value: each.version }, each.version)));
  };
  return { element, offer };
}

function refuse(form, error, notes) {
  if (!(error instanceof Problem)) throw error;
  if (markWrong(form, error.details)) return;
  const box = problemBox(error.details);
  show(notes, box);
  box.focus();
}

function confirmDeletion(place, name, notes, opener) {
  const typed = h("input", { type: "text", autocomplete: "off", spellcheck: "false" });
  const sure = h("button", { type: "submit", class: "danger", disabled: true }, "Delete it");
  typed.addEventListener("input", () => { sure.disabled = typed.value !== name; });
  const cancel = h("button", { type: "button", onclick: () => dialog.close() }, "Keep it");
  const form = h("form", {}, h("h3", { id: "sure" }, `Delete ${name}?`),
    h("p", {}, "Its servers end. Its volumes are kept or deleted as its deletionPolicy says."),
    field(`Type ${name} to confirm`, typed), h("div", { class: "row" }, sure, cancel));
  const dialog = h("dialog", { "aria-labelledby": "sure" }, form);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (typed.value !== name) return;
    try {
      await call("DELETE", place);
      show(notes, h("p", { role: "status" }, `${name} is being deleted.`));
    } catch (error) {
      show(notes, problemBox(error.details || { detail: error.message }));
    }
    dialog.close();
  });
  dialog.addEventListener("close", () => { dialog.remove(); opener.focus(); });
  document.body.append(dialog);
  dialog.showModal();
  typed.focus();
}
