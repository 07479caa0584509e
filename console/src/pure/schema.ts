// What an OpenAPI v3 document says about the field of a path.

export interface Schema {
  $ref?: string;
  allOf?: Schema[];
  type?: string;
  format?: string;
  description?: string;
  properties?: Record<string, Schema>;
  items?: Schema;
  additionalProperties?: Schema | boolean;
  required?: string[];
  enum?: unknown[];
  default?: unknown;
  "x-kubernetes-group-version-kind"?: { group: string; version: string; kind: string }[];
}
export interface OpenApi { components?: { schemas?: Record<string, Schema> } }

/** The schema itself, with what a reference or an `allOf` of one leads to. A field's own description goes first. */
export function resolve(document: OpenApi, schema: Schema | undefined): Schema | undefined {
  let current = schema;
  let description = schema?.description;
  for (let depth = 0; current && depth < 20; depth++) {
    const reference: string | undefined = current.$ref ?? current.allOf?.find((part) => part.$ref)?.$ref;
    if (!reference || current.properties) break;
    current = document.components?.schemas?.[reference.slice(reference.lastIndexOf("/") + 1)];
    description ??= current?.description;
  }
  return current && { ...current, description };
}

export function schemaOfKind(document: OpenApi, group: string, version: string, kind: string): Schema | undefined {
  return Object.values(document.components?.schemas ?? {}).find((schema) =>
    schema["x-kubernetes-group-version-kind"]?.some((entry) => entry.group === group && entry.version === version && entry.kind === kind));
}

/** The schema at a path of keys, where `[]` is an item of a list. */
export function schemaAt(document: OpenApi, root: Schema | undefined, path: string[]): Schema | undefined {
  let current = resolve(document, root);
  for (const key of path) {
    if (!current) return undefined;
    const inner: Schema | undefined = key === "[]" ? current.items
      : current.properties?.[key] ?? (typeof current.additionalProperties === "object" ? current.additionalProperties : undefined);
    current = resolve(document, inner);
  }
  return current;
}

/** What is known of the field at a path: its own schema, or the nearest above it that is described (a map's, for a key). */
export function helpAt(document: OpenApi, root: Schema | undefined, path: string[]): { path: string[]; schema: Schema } | null {
  for (let length = path.length; length > 0; length--) {
    const schema = schemaAt(document, root, path.slice(0, length));
    if (schema?.description) return { path: path.slice(0, length), schema };
  }
  return null;
}

export function typeText(document: OpenApi, schema: Schema): string {
  if (schema.type === "array") {
    const items = resolve(document, schema.items);
    return `[]${items ? typeText(document, items) : "any"}`;
  }
  if (schema.enum) return schema.enum.map(String).join(" | ");
  return schema.format && schema.type === "string" ? schema.format : schema.type ?? "any";
}

export interface Offer { key: string; type: string; description: string; required: boolean; collection: boolean }

/** The keys that may stand at a path, required ones first. */
export function offersAt(document: OpenApi, root: Schema | undefined, path: string[]): Offer[] {
  const schema = schemaAt(document, root, path);
  const required = new Set(schema?.required ?? []);
  return Object.entries(schema?.properties ?? {}).map(([key, part]) => {
    const whole = resolve(document, part) ?? part;
    return { key, type: typeText(document, whole), description: whole.description ?? "", required: required.has(key), collection: whole.type === "array" || whole.type === "object" };
  }).sort((a, b) => Number(b.required) - Number(a.required) || a.key.localeCompare(b.key));
}
