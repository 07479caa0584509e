// The first text of a new object: what every object has, and the fields that its schema requires.

import { resolve, type OpenApi, type Schema } from "./schema";

export interface Named { apiVersion: string; kind: string; namespaced: boolean }

const DEEPEST = 6;

/** A value for a required field, as empty as its type allows. */
function valueOf(schemas: OpenApi, given: Schema, depth: number): unknown {
  const schema = resolve(schemas, given) ?? {};
  if (schema.default !== undefined) return schema.default;
  if (schema.enum?.length) return schema.enum[0];
  switch (schema.type) {
    case "string": return "";
    case "integer": case "number": return 0;
    case "boolean": return false;
    case "array": return depth < DEEPEST && schema.items ? [valueOf(schemas, schema.items, depth + 1)] : [];
    default: return requiredOf(schemas, schema, depth);
  }
}

function requiredOf(schemas: OpenApi, schema: Schema, depth: number): Record<string, unknown> {
  const made: Record<string, unknown> = {};
  if (depth >= DEEPEST) return made;
  for (const name of schema.required ?? []) {
    const field = schema.properties?.[name];
    if (field) made[name] = valueOf(schemas, field, depth + 1);
  }
  return made;
}

/** `sample` is what an operator shows as an example of its kind; without one the schema says what is needed. */
export function skeleton(kind: Named, namespace: string, schemas: OpenApi, root: Schema | undefined, sample?: { metadata?: object; [field: string]: unknown } | null): unknown {
  const spec = root?.properties?.spec;
  const metadata = { name: "", ...(kind.namespaced ? { namespace: namespace || "default" } : {}) };
  if (sample) return { apiVersion: kind.apiVersion, kind: kind.kind, ...sample, metadata: { ...metadata, ...sample.metadata } };
  return { apiVersion: kind.apiVersion, kind: kind.kind, metadata, ...(spec ? { spec: requiredOf(schemas, resolve(schemas, spec) ?? {}, 0) } : {}) };
}
