// One instance: its servers, events and YAML; and the forms that change it.

import { Problem, call, path, watch } from "/static/api.js";
import { facts, field, h, markWrong, phase, problemBox, show, table, when } from "/static/dom.js";

export function detail(main, state, namespace, name) {
  const resource = path(namespace, name);
  const overview = h("div", { "aria-live": "polite" }, h("p", { class: "quiet" }, "Loading…"));
  const notes = h("div", {});
  const events = h("div", {});
  const yaml = h("pre", { tabindex: "0", "aria-label": "YAML" });
  const file = h("details", { ontoggle: () => { if (file.open) refreshYaml(); } }, h("summary", {}, "YAML (without secrets)"), yaml);
  const forms = actions(resource, name, notes);
  let seen = "";

  const refreshYaml = async () => { yaml.textContent = await call("GET", `${resource}/manifest`).catch((error) => error.message); };
  const refreshEvents = async () => {
    try {
      show(events, eventTable((await call("GET", `${resource}/events`)).items));
    } catch (error) {
      show(events, problemBox(error.details || { detail: error.message }));
    }
  };
  const all = (known) => {
    const instance = known.values().next().value;
    if (!instance) {
      forms.element.hidden = true;
      show(overview, h("p", {}, seen ? "This instance is gone." : "There is no such instance. ", " ", h("a", { href: "#/" }, "All instances")));
      return;
    }
    if (instance.resourceVersion === seen) return;
    seen = instance.resourceVersion;
    forms.update(instance);
    show(overview, stateOf(instance));
    refreshEvents();
    if (file.open) refreshYaml();
  };
  show(main, h("h2", {}, name, " ", h("small", { class: "quiet" }, namespace)), notes, overview, forms.element,
    h("h3", {}, "Events"), events, file);
  return watch(resource, { state, all, problem: (details) => show(overview, problemBox(details)) });
}

function stateOf(instance) {
  const servers = instance.servers.map((server) => [
    server.pod, server.role || "unknown", server.ready ? "yes" : "no", server.address, server.node, server.message,
  ]);
  const conditions = instance.conditions.map((condition) => [
    condition.type, condition.status, condition.reason, condition.message, when(condition.since),
  ]);
  return [
    facts([
      ["State", phase(instance)], ["What is missing", instance.message], ["Ready", `${instance.readyReplicas} of ${instance.replicas}`],
      ["Leader", instance.leader], ["Type", instance.type], ["Version", instance.version], ["Image", instance.image],
      ["Database", instance.storage.database], ["Volume", instance.storage.volume ? `${instance.storage.size} ${instance.storage.storageClass}` : "none"],
      ["Quota", quota(instance.resources)], ["Created", when(instance.created)], ["Paused", instance.paused ? "yes: the operator changes nothing" : ""],
    ]),
    h("h3", {}, "Servers"), table("Servers", ["Pod", "Role", "Ready", "Address", "Node", "Message"], servers, "No server is known yet."),
    h("h3", {}, "Conditions"), table("Conditions", ["Type", "Status", "Reason", "Message", "Since"], conditions, "There are no conditions yet."),
  ];
}

function quota(resources) {
  const part = (name) => Object.entries(resources[name] || {}).map(([key, value]) => `${key} ${value}`).join(", ");
  return ["requests", "limits"].filter((name) => part(name)).map((name) => `${name}: ${part(name)}`).join("; ") || "none";
}

function eventTable(items) {
  const rows = items.map((event) => [when(event.last), event.type, event.reason, String(event.count), event.message]);
  return table("Events", ["Last", "Type", "Reason", "Count", "Message"], rows, "There are no events yet.");
}

function actions(resource, name, notes) {
  const replicas = h("input", { type: "number", min: "1", max: "99", required: true });
  const cpu = h("input", { type: "text", spellcheck: "false", placeholder: "1" });
  const memory = h("input", { type: "text", spellcheck: "false", placeholder: "2Gi" });
  const version = h("select", {}, h("option", { value: "" }, "as it is"));
  let offered = false;

  const change = async (form, body, message) => {
    try {
      await call("PATCH", resource, body);
      markWrong(form, null);
      show(notes, h("p", { role: "status" }, message));
    } catch (error) {
      refuse(form, error, notes);
    }
  };
  const scale = h("form", { class: "row", "aria-label": "Scale" }, field("Servers", replicas, { path: "replicas" }),
    h("button", { type: "submit" }, "Scale"));
  scale.addEventListener("submit", (event) => {
    event.preventDefault();
    change(scale, { replicas: Number(replicas.value) }, `The instance will have ${replicas.value} servers.`);
  });
  const limits = h("form", { class: "row", "aria-label": "Quota" },
    field("CPU", cpu, { hint: "limit of each server", path: "resources.limits.cpu" }),
    field("Memory", memory, { hint: "limit of each server", path: "resources.limits.memory" }),
    field("Version", version, { path: "version" }), h("button", { type: "submit" }, "Change"));
  limits.addEventListener("submit", (event) => {
    event.preventDefault();
    const body = { resources: { limits: { cpu: cpu.value.trim() || null, memory: memory.value.trim() || null } } };
    if (version.value) body.version = version.value;
    change(limits, body, "The change was accepted.");
  });
  const remove = h("button", { type: "button", class: "danger" }, "Delete…");
  remove.addEventListener("click", () => confirmDeletion(resource, name, notes, remove));
  const element = h("section", { "aria-label": "Change", hidden: true }, h("h3", {}, "Change"), scale, limits, remove);
  const update = async (instance) => {
    // An update does not overwrite the input that the user is typing in.
    const idle = (input) => document.activeElement !== input;
    if (idle(replicas)) replicas.value = instance.replicas;
    if (idle(cpu)) cpu.value = instance.resources.limits?.cpu ?? "";
    if (idle(memory)) memory.value = instance.resources.limits?.memory ?? "";
    element.hidden = instance.deleting;
    if (offered) return;
    offered = true;
    const { items } = await call("GET", "/versions").catch(() => ({ items: [] }));
    version.append(...items.map((offer) => h("option", { value: offer.version }, offer.version)));
  };
  return { element, update };
}

function refuse(form, error, notes) {
  if (!(error instanceof Problem)) throw error;
  if (markWrong(form, error.details)) return;
  const box = problemBox(error.details);
  show(notes, box);
  box.focus();
}

function confirmDeletion(resource, name, notes, opener) {
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
      await call("DELETE", resource);
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
