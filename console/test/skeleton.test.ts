import { describe, expect, it } from "vitest";
import { formatRoute, parseRoute } from "../src/pure/routes";
import type { OpenApi } from "../src/pure/schema";
import { skeleton } from "../src/pure/skeleton";
import { namespaceIn } from "../src/pure/yaml";

const DEPLOYMENT = { apiVersion: "apps/v1", kind: "Deployment", namespaced: true };
const schemas: OpenApi = {
  components: {
    schemas: {
      Spec: {
        type: "object", required: ["selector", "mode", "count", "items", "on", "size"],
        properties: {
          selector: { allOf: [{ $ref: "#/components/schemas/Selector" }] }, mode: { type: "string", enum: ["a", "b"] }, count: { type: "integer" },
          items: { type: "array", items: { $ref: "#/components/schemas/Item" } }, on: { type: "boolean" }, size: { type: "string", default: "1Gi" }, more: { type: "string" },
        },
      },
      Selector: { type: "object", required: ["name"], properties: { name: { type: "string" } } },
      Item: { type: "object", required: ["key"], properties: { key: { type: "string" }, item: { $ref: "#/components/schemas/Item" } } },
      Ring: { type: "object", required: ["ring"], properties: { ring: { $ref: "#/components/schemas/Ring" } } },
    },
  },
};

describe("the first text of a new object", () => {
  it("has the required fields, as empty as they can be", () => {
    const root = { type: "object", properties: { spec: { $ref: "#/components/schemas/Spec" } } };
    expect(skeleton(DEPLOYMENT, "shop", schemas, root)).toEqual({
      apiVersion: "apps/v1", kind: "Deployment", metadata: { name: "", namespace: "shop" },
      spec: { selector: { name: "" }, mode: "a", count: 0, items: [{ key: "" }], on: false, size: "1Gi" },
    });
  });
  it("has no namespace where there is none, and no spec where there is none", () => {
    expect(skeleton({ ...DEPLOYMENT, namespaced: false }, "", {}, undefined)).toEqual({ apiVersion: "apps/v1", kind: "Deployment", metadata: { name: "" } });
    expect(skeleton(DEPLOYMENT, "", {}, undefined)).toMatchObject({ metadata: { namespace: "default" } });
  });
  it("ends where a schema leads to itself", () => {
    const root = { type: "object", properties: { spec: { $ref: "#/components/schemas/Ring" } } };
    expect(JSON.stringify(skeleton(DEPLOYMENT, "", schemas, root)).length).toBeLessThan(1000);
  });
  it("is the operator's own sample where there is one", () => {
    const spec = { replicas: 2 };
    expect(skeleton(DEPLOYMENT, "shop", {}, undefined, { metadata: { name: "a" }, spec })).toEqual({ apiVersion: "apps/v1", kind: "Deployment", metadata: { name: "a", namespace: "shop" }, spec });
    expect(skeleton(DEPLOYMENT, "shop", {}, undefined, { metadata: { name: "a", namespace: "b" }, spec })).toMatchObject({ metadata: { namespace: "b" } });
    expect(skeleton({ ...DEPLOYMENT, namespaced: false }, "", {}, undefined, { spec })).toEqual({ apiVersion: "apps/v1", kind: "Deployment", metadata: { name: "" }, spec });
  });
});

describe("the namespace in a text", () => {
  it.each([
    ["metadata:\n  name: a\n  namespace: shop\nspec: {}\n", "shop"],
    ["kind: X\nmetadata:\n    labels:\n      namespace: no\n    namespace: \"shop\" # here\n", "shop"],
    ["metadata:\n\n  namespace: 'a b'", "a b"],
    ["spec:\n  namespace: no\nmetadata:\n  name: a\n", ""],
    ["metadata: {namespace: x}\n", ""],
    ["", ""],
  ])("%j", (text, namespace) => expect(namespaceIn(text)).toBe(namespace));
});

it("the address of a new object leads back to it", () => {
  for (const route of [
    { page: "new", group: "", version: "v1", resource: "pods", namespace: "a/b" },
    { page: "new", group: "apps", version: "v1", resource: "deployments", namespace: "" },
  ] as const) expect(parseRoute(formatRoute(route))).toEqual(route);
});
