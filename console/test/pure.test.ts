import { describe, expect, it } from "vitest";
import { endOf, frame, resizeFrame, textFrame } from "../src/pure/channels";
import { fieldAt, filledPatch, isEmpty, isWebAddress, itemsOf, stepsOf, textOf } from "../src/pure/fields";
import { curve, neighbour, place } from "../src/pure/graph";
import { groupKinds } from "../src/pure/groups";
import { rowHealth, severity, wordHealth } from "../src/pure/health";
import { columns, short, summary } from "../src/pure/load";
import { visibleText } from "../src/pure/logText";
import { EMPTY_FORM, inputOf, nacosOf } from "../src/pure/nacosForm";
import { formatRoute, kindAddress, objectAddress, parseRoute, type Route } from "../src/pure/routes";
import { helpAt, offersAt, schemaAt, schemaOfKind, typeText } from "../src/pure/schema";
import { dataOf, isAfter, merged, seconds } from "../src/pure/story";
import { age } from "../src/pure/times";
import { kindsOf } from "../src/api/kinds";
import { en } from "../src/texts/en";
import { zh } from "../src/texts/zh";
import type { StoryEntry } from "../src/api/console";

describe("addresses", () => {
  it("lead back to their route, whatever the names", () => {
    const routes: Route[] = [
      { page: "overview" }, { page: "simulation" }, { page: "load" }, { page: "create", form: "nacos" }, { page: "operator", name: "web apps" },
      { page: "kind", group: "", version: "v1", resource: "pods", namespace: "a b", search: "x&y=1", labels: "app=web,t!=1" },
      { page: "object", group: "rbac.authorization.k8s.io", version: "v1", resource: "clusterroles", namespace: "", name: "system:a/b?c#d%<script>", tab: "yaml" },
    ];
    for (const route of routes) expect(parseRoute(formatRoute(route))).toEqual(route);
  });
  it("of nonsense lead to no page", () => {
    for (const hash of ["#/x", "#/o/a", "#/k/%zz/v1", "#/o/a/b/c/d/e/f/g"]) expect(parseRoute(hash)).toEqual({ page: "missing" });
    expect(parseRoute("")).toEqual({ page: "overview" });
  });
  it("of objects know groups", () => {
    expect(objectAddress({ apiVersion: "apps/v1", resource: "deployments", namespace: "a", name: "b" }, "why")).toBe("#/o/apps/v1/deployments/a/b?tab=why");
    expect(kindAddress({ apiVersion: "v1", resource: "pods" })).toBe("#/k/-/v1/pods");
  });
});

describe("the health of a row", () => {
  const columns = ["Ready", "Status", "Restarts"].map((name) => ({ name, type: "string", priority: 0 }));
  it("is that of its sickest state", () => {
    expect(rowHealth(columns, ["1/1", "Running", "0"], false)).toBe("ok");
    expect(rowHealth(columns, ["0/1", "CrashLoopBackOff", "7"], false)).toBe("broken");
    expect(rowHealth(columns, ["1/2", "Running", "0"], false)).toBe("waiting");
    expect(rowHealth(columns, ["0/1", "Completed", "0"], false)).toBe("ok");
    expect(rowHealth(columns, ["1/1", "Running", "0"], true)).toBe("waiting");
    expect(rowHealth(columns, ["0/3", "Hibernated", "0"], false)).toBe("asleep");
    expect(rowHealth(columns, ["Hibernated", "False", "0"], false)).toBe("asleep");
    expect(rowHealth(columns, ["0/3", "Hibernated", "0"], true)).toBe("waiting");
    expect(rowHealth(columns, ["0/3", "Hibernating", "0"], false)).toBe("waiting");
    expect(["Hibernated", "Hibernating"].map(wordHealth)).toEqual(["asleep", "waiting"]);
    expect([severity("asleep"), severity("ok")]).toEqual([0, 0]);
    expect(rowHealth([{ name: "Data", type: "integer", priority: 0 }], [3], false)).toBeNull();
  });
  it("reads the words of common kinds", () => {
    expect(["Bound", "Lost", "Pending", "NotReady", "Ready,SchedulingDisabled", "ErrImagePull", "Terminating", "whatever", ""].map(wordHealth))
      .toEqual(["ok", "broken", "waiting", "broken", "waiting", "broken", "waiting", null, null]);
  });
});

describe("fields", () => {
  const object = { metadata: { labels: { "a.b/c": "x" } }, status: { members: [{ name: "m0", ok: true }, { name: "m1" }], map: { first: { size: 1 }, second: 2 } } };
  it("are found by their paths", () => {
    expect(fieldAt(object, ".status.members[1].name")).toBe("m1");
    expect(fieldAt(object, "metadata.labels['a.b/c']")).toBe("x");
    expect(fieldAt(object, "status.members[*].name")).toEqual(["m0", "m1"]);
    expect(fieldAt(object, "status.none.deep")).toBeUndefined();
    expect(fieldAt(object, "constructor.name")).toBeUndefined();
    expect(stepsOf("a[b")).toBeNull();
  });
  it("become rows and texts", () => {
    expect(itemsOf(object.status.map)).toEqual([{ name: "first", size: 1 }, { name: "second", value: 2 }]);
    expect([textOf(null), textOf([1, "a"]), textOf({ a: [1, 2] }), textOf(false)]).toEqual(["", "1, a", "a: 1, 2", "false"]);
    expect([null, undefined, "", [], {}, false, 0, "x"].map(isEmpty)).toEqual([true, true, true, true, true, false, false, false]);
  });
  it("of a form go into a patch with their types", () => {
    const patch = { spec: { replicas: { $form: "count" }, at: { $now: true }, list: [{ a: { $form: "name" } }], keep: { $formless: 1 } } };
    expect(filledPatch(patch, { count: 3, name: "x" }, "T")).toEqual({ spec: { replicas: 3, at: "T", list: [{ a: "x" }], keep: { $formless: 1 } } });
    expect(filledPatch({ a: { $form: "none" } }, {}, "T")).toEqual({ a: null });
  });
  it("become links only when they are addresses of the web", () => {
    expect(["https://a.b/c", "http://x", "javascript:alert(1)", "data:text/html,x", "//a.b", "https://a b"].map(isWebAddress)).toEqual([true, true, false, false, false, false]);
  });
});

describe("a schema", () => {
  const document = { components: { schemas: {
    Pod: { "x-kubernetes-group-version-kind": [{ group: "", version: "v1", kind: "Pod" }], properties: { spec: { allOf: [{ $ref: "#/components/schemas/Spec" }], description: "own" }, status: { type: "object" } } },
    Spec: { description: "of the type", required: ["containers"], properties: {
      containers: { type: "array", items: { $ref: "#/components/schemas/Container" } }, nodeSelector: { type: "object", additionalProperties: { type: "string", description: "a value" } }, a: { type: "string", enum: ["X", "Y"] } } },
    Container: { description: "one", properties: { name: { type: "string", description: "its name" }, inner: { $ref: "#/components/schemas/Container" } } },
  } } };
  const root = schemaOfKind(document, "", "v1", "Pod");
  it("is followed through references, items and maps", () => {
    expect(schemaAt(document, root, ["spec"])?.description).toBe("own");
    expect(schemaAt(document, root, ["spec", "containers", "[]", "inner", "inner", "name"])?.description).toBe("its name");
    expect(schemaAt(document, root, ["spec", "nodeSelector", "any"])?.description).toBe("a value");
    expect(schemaAt(document, root, ["spec", "nothing", "below"])).toBeUndefined();
    expect(schemaAt(document, undefined, ["spec"])).toBeUndefined();
  });
  it("helps with the nearest description above a field", () => {
    expect(helpAt(document, root, ["spec", "a"])).toMatchObject({ path: ["spec"], schema: { description: "own" } });
    expect(helpAt(document, root, ["spec", "nodeSelector", "k"])?.path).toEqual(["spec", "nodeSelector", "k"]);
    expect(helpAt(document, root, ["none"])).toBeNull();
  });
  it("offers keys, required ones first", () => {
    expect(offersAt(document, root, ["spec"]).map((offer) => [offer.key, offer.required, offer.collection])).toEqual([["containers", true, true], ["a", false, false], ["nodeSelector", false, true]]);
    expect(typeText(document, schemaAt(document, root, ["spec", "a"])!)).toBe("X | Y");
  });
});

describe("small parts", () => {
  it("say ages as kubectl does", () => {
    const now = Date.parse("2026-01-10T00:00:00Z");
    const ago = (seconds: number) => age(new Date(now - seconds * 1000).toISOString(), now);
    expect([ago(0), ago(45), ago(90), ago(600), ago(3 * 3600 + 60), ago(12 * 86400), ago(-5), age("never", now)]).toEqual(["0s", "45s", "1m30s", "10m", "3h1m", "12d", "0s", ""]);
  });
  it("make the lines of logs harmless and readable", () => {
    expect(visibleText("\u001b[31;1mred\u001b[0m\u0007 \u001b]0;title\u0007done\r")).toBe("red␇ done");
    expect(visibleText("<script>alert(1)</script>\ttab")).toBe("<script>alert(1)</script>\ttab");
  });
  it("frame the streams of a terminal", () => {
    expect([...textFrame(0, "é")]).toEqual([0, 0xc3, 0xa9]);
    expect([...frame(4, new Uint8Array([1]))]).toEqual([4, 1]);
    expect(new TextDecoder().decode(resizeFrame(80, 24).subarray(1))).toBe('{"Width":80,"Height":24}');
    expect([endOf('{"status":"Success"}'), endOf('{"status":"Failure","message":"no"}'), endOf("odd")]).toEqual(["", "no", "odd"]);
  });
  it("keep the entries of a story once, the newest first", () => {
    const entry = (at: string, revision: number): StoryEntry => ({ at, revision, object: { kind: "Pod", name: "a" }, type: "changed", sentence: "x" });
    const all = merged([entry("2026-01-01T00:00:00Z", 1)], [entry("2026-01-01T00:00:00Z", 1), entry("2026-01-01T00:00:01Z", 2), entry("2026-01-01T00:00:01Z", 3)]);
    expect(all.map((item) => item.revision)).toEqual([3, 2, 1]);
    expect([isAfter(all[0], 2), isAfter(all[1], 2), isAfter(all[0], null)]).toEqual([true, false, false]);
    expect([dataOf([": beat"]), dataOf(["event: x", "data: {", "data: }"])]).toEqual([null, "{\n}"]);
    expect([seconds(0.0000123), seconds(0.25), seconds(2)]).toEqual(["12 µs", "250 ms", "2.0 s"]);
  });
  it("group kinds once", () => {
    const kinds = kindsOf([
      { versions: [{ version: "v1", resources: [{ resource: "pods", responseKind: { kind: "Pod" }, scope: "Namespaced", verbs: ["list"], subresources: [{ subresource: "log" }] }, { resource: "events", responseKind: { kind: "Event" }, scope: "Namespaced", verbs: ["list"] }, { resource: "bindings", scope: "Namespaced", verbs: ["create"] }] }] },
      { metadata: { name: "events.k8s.io" }, versions: [{ version: "v1", resources: [{ resource: "events", responseKind: { kind: "Event" }, scope: "Namespaced", verbs: ["list"] }] }] },
      { metadata: { name: "nacos.io" }, versions: [{ version: "v2", resources: [{ resource: "nacos", responseKind: { kind: "Nacos" }, scope: "Namespaced", verbs: ["list"] }] }, { version: "v1", resources: [{ resource: "nacos", scope: "Namespaced", verbs: ["list"] }] }] },
    ]);
    expect(kinds.map((kind) => `${kind.apiVersion} ${kind.kind}`)).toEqual(["v1 Event", "events.k8s.io/v1 Event", "nacos.io/v2 Nacos", "v1 Pod"]);
    expect(groupKinds(kinds).map((group) => [group.id, group.kinds.length])).toEqual([["workloads", 1], ["cluster", 1], ["nacos.io", 1]]);
  });
  it("draw a tree from left to right, also one with a ring", () => {
    const drawing = place(["a", "b", "c"], [{ from: "a", to: "b", relation: "owns" }, { from: "b", to: "c", relation: "uses" }, { from: "c", to: "a", relation: "uses" }, { from: "a", to: "gone", relation: "owns" }, { from: "a", to: "a", relation: "owns" }]);
    const [a, b] = drawing.boxes;
    expect(b.x).toBeGreaterThan(a.x);
    expect(drawing.lines).toHaveLength(3);
    expect(neighbour(drawing.boxes, "a", "ArrowRight")).toBe("b");
    expect(neighbour(drawing.boxes, "a", "ArrowUp")).toBe("a");
    expect(curve(a, b, [])).toMatch(/^M.*C/);
  });
  it("make a Nacos of the form, with filled fields only", () => {
    expect(nacosOf({ ...EMPTY_FORM, name: " shop ", image: "i:1" }, "nacos.io/v1alpha1")).toEqual(
      { apiVersion: "nacos.io/v1alpha1", kind: "Nacos", metadata: { name: "shop", namespace: "default" }, spec: { type: "standalone", database: { type: "embedded" }, image: "i:1" } });
    const cluster = nacosOf({ ...EMPTY_FORM, name: "shop", type: "cluster", replicas: "5", database: "mysql", host: "db", secret: "s", size: "10Gi", storageClass: "fast", cpuLimit: "2" }, "v") as { spec: unknown };
    expect(cluster.spec).toEqual({
      type: "cluster", replicas: 5, database: { type: "mysql", mysqlHost: "db", mysqlDb: "nacos", mysqlCredentialsSecretRef: { name: "s" } },
      resources: { limits: { cpu: "2" } }, volume: { enabled: true, requests: { storage: "10Gi" }, storageClass: "fast" },
    });
    expect([inputOf("spec.replicas"), inputOf("spec.database.mysqlCredentialsSecretRef"), inputOf("spec.postgres.host"), inputOf("spec.other")]).toEqual(["replicas", "secret", "host", null]);
  });
  it("have all texts in both languages, with the same places for values", () => {
    const places = (text: string) => (text.match(/\{\w+\}/g) ?? []).sort().join();
    for (const key of Object.keys(en) as (keyof typeof en)[]) expect([key, places(zh[key])]).toEqual([key, places(en[key])]);
  });
});

describe("the lines of the load", () => {
  it("have a text that says the same", () => {
    expect(summary({ name: "a", values: [null, 3, 1] })).toEqual({ now: 1, most: 3 });
    expect(summary({ name: "a", values: [2, null] })).toEqual({ now: null, most: 2 });
    expect(summary({ name: "a", values: [] })).toEqual({ now: null, most: 0 });
    expect([0, 0.04, 0.25, 12.54, 340.6, null].map(short)).toEqual(["0", "0", "0.3", "12.5", "341", "–"]);
  });
  it("are as long as the times", () => {
    expect(columns([1, 2, 3], [{ name: "a", values: [5] }])).toEqual([[1, 2, 3], [5, null, null]]);
  });
  it("have a reason in both languages where they are missing", () => {
    for (const key of ["load.missing.queue", "load.missing.clients", "load.forbidden", "load.unserved"] as const) expect([Boolean(en[key]), Boolean(zh[key])]).toEqual([true, true]);
  });
});
