// The form for a new instance. The cluster validates it, and its errors are shown at the fields.

import { Problem, call, path } from "/static/api.js";
import { field, h, markWrong, problemBox, show } from "/static/dom.js";
import { addressOf } from "/static/list.js";

const text = (properties = {}) => h("input", { type: "text", spellcheck: "false", autocomplete: "off", ...properties });
const option = (value, label = value) => h("option", { value }, label);

export function creation(main) {
  const inputs = {
    name: text({ required: true }),
    namespace: text({ required: true }),
    type: h("select", {}, option("standalone", "one server"), option("cluster", "a cluster")),
    replicas: h("input", { type: "number", min: "1", max: "99", value: "3" }),
    version: h("select", {}),
    cpu: text({ placeholder: "1" }), memory: text({ placeholder: "2Gi" }),
    requestedCpu: text({ placeholder: "500m" }), requestedMemory: text({ placeholder: "1Gi" }),
    database: h("select", {}, option("embedded"), option("mysql", "MySQL"), option("postgresql", "PostgreSQL")),
    host: text(), port: text(), schema: text({ value: "nacos" }), secret: text(),
    size: text({ placeholder: "10Gi, or empty for none" }), storageClass: text({ placeholder: "the cluster's default" }),
  };
  inputs.namespace.value = sessionStorage.getItem("namespace") || "default";
  const notes = h("div", {});
  const external = h("div", { class: "row", hidden: true });
  const servers = field("Servers", inputs.replicas, { path: "spec.replicas" });
  servers.hidden = true;
  const form = h("form", { novalidate: true, "aria-label": "Create an instance" }, what(inputs, servers), quota(inputs), storage(inputs, external),
    h("button", { class: "main", type: "submit" }, "Create"));

  inputs.type.addEventListener("change", () => { servers.hidden = inputs.type.value !== "cluster"; });
  inputs.database.addEventListener("change", () => drawDatabase(inputs, external));
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    try {
      const created = await call("POST", path(inputs.namespace.value.trim()), requestBody(inputs));
      location.hash = addressOf(created);
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      const box = problemBox(error.details);
      show(notes, box);
      if (!markWrong(form, error.details)) box.focus();
    }
  });
  show(main, h("h2", {}, "Create an instance"), notes, form);
  inputs.name.focus();
  fillVersions(inputs.version, notes);
  return () => {};
}

async function fillVersions(select, notes) {
  try {
    const { items } = await call("GET", "/versions");
    select.append(...items.map((offer) => h("option", { value: offer.version, selected: offer.default }, offer.version)));
  } catch (error) {
    show(notes, problemBox(error.details || { detail: error.message }));
  }
}

function what(inputs, servers) {
  return h("fieldset", {}, h("legend", {}, "What"), h("div", { class: "row" },
    field("Name", inputs.name, { path: "name" }), field("Namespace", inputs.namespace, { path: "namespace" })),
    h("div", { class: "row" }, field("Type", inputs.type, { path: "spec.type" }), servers, field("Version", inputs.version, { path: "version" })));
}

function quota(inputs) {
  return h("fieldset", {}, h("legend", {}, "Quota of each server"), h("div", { class: "row" },
    field("CPU", inputs.requestedCpu, { hint: "requested", path: "spec.resources.requests.cpu" }),
    field("CPU", inputs.cpu, { hint: "limit", path: "spec.resources.limits.cpu" }),
    field("Memory", inputs.requestedMemory, { hint: "requested", path: "spec.resources.requests.memory" }),
    field("Memory", inputs.memory, { hint: "limit", path: "spec.resources.limits.memory" })));
}

function storage(inputs, external) {
  return h("fieldset", {}, h("legend", {}, "Storage"), h("div", { class: "row" },
    field("Database", inputs.database, { path: "spec.database.type" }),
    field("Volume", inputs.size, { hint: "size", path: "spec.volume.requests.storage" }),
    field("Storage class", inputs.storageClass, { path: "spec.volume.storageClass" })), external);
}

function drawDatabase(inputs, external) {
  const mysql = inputs.database.value === "mysql";
  external.hidden = inputs.database.value === "embedded";
  inputs.port.placeholder = mysql ? "3306" : "5432";
  show(external,
    field("Host", inputs.host, { path: mysql ? "spec.database.mysqlHost" : "spec.postgres.host" }),
    field("Port", inputs.port, { path: mysql ? "spec.database.mysqlPort" : "spec.postgres.port" }),
    field("Name of the database", inputs.schema, { path: mysql ? "spec.database.mysqlDb" : "spec.postgres.database" }),
    field("Secret", inputs.secret, {
      hint: "with username and password",
      path: mysql ? "spec.database.mysqlCredentialsSecretRef" : "spec.postgres.credentialsSecretRef.name",
    }));
}

// Only filled fields are sent: the cluster adds its defaults.
function requestBody(inputs) {
  const value = (name) => inputs[name].value.trim();
  const spec = { type: value("type"), ...database(value) };
  if (spec.type === "cluster") spec.replicas = Number(value("replicas"));
  const resources = filled({
    requests: filled({ cpu: value("requestedCpu"), memory: value("requestedMemory") }),
    limits: filled({ cpu: value("cpu"), memory: value("memory") }),
  });
  if (resources) spec.resources = resources;
  if (value("size")) {
    spec.volume = { enabled: true, requests: { storage: value("size") } };
    if (value("storageClass")) spec.volume.storageClass = value("storageClass");
  }
  return { name: value("name"), version: value("version"), spec };
}

function filled(fields) {
  const given = Object.entries(fields).filter(([, value]) => value);
  return given.length ? Object.fromEntries(given) : undefined;
}

function database(value) {
  const secret = value("secret") ? { name: value("secret") } : undefined;
  if (value("database") === "mysql") {
    return { database: filled({
      type: "mysql", mysqlHost: value("host"), mysqlPort: value("port"), mysqlDb: value("schema"), mysqlCredentialsSecretRef: secret,
    }) };
  }
  if (value("database") === "postgresql") {
    const postgres = filled({ host: value("host"), port: value("port"), database: value("schema"), credentialsSecretRef: secret });
    return { database: { type: "postgresql" }, postgres };
  }
  return { database: { type: "embedded" } };
}
