// An object as YAML, in the order that people expect. Reading YAML is left to the API server, which takes it as it is.

import { splitVersion } from "./routes";

const FIRST = ["apiVersion", "kind", "metadata", "name", "namespace", "spec", "data", "stringData", "status"];
const LAST = new Set(["status"]);
const PLAIN = /^[A-Za-z_/.][\w./@+-]*(?: [\w./@+()-]+)*$/;
const SPECIAL = /^(?:true|false|null|yes|no|on|off|y|n|~|\.inf|\.nan|[-+]?\.?\d.*)$/i;

function order(keys: string[]): string[] {
  const rank = (key: string) => {
    if (LAST.has(key)) return FIRST.length + 1;
    const index = FIRST.indexOf(key);
    return index < 0 ? FIRST.length : index;
  };
  return [...keys].sort((a, b) => rank(a) - rank(b) || (a < b ? -1 : a > b ? 1 : 0));
}

/** A scalar on one line. What could be read as something else is quoted; JSON's quoting is YAML's. */
function scalar(value: unknown): string {
  if (typeof value !== "string") return JSON.stringify(value);
  return PLAIN.test(value) && !SPECIAL.test(value) ? value : JSON.stringify(value);
}

const isBlock = (value: unknown): value is string =>
  typeof value === "string" && value.includes("\n") && !/[^\x09\x0a\x20-\x7e\u00a0-\ud7ff\ue000-\ufffd]/.test(value) && !/^\s/.test(value) && !/[ \t]\n/.test(value) && value.trim() !== "";

function block(text: string, pad: string): string {
  const body = text.replace(/\n+$/, "");
  const tail = text.length - body.length;
  const mark = tail === 0 ? "|-" : tail === 1 ? "|" : "|+";
  const lines = (tail > 1 ? text.slice(0, -1) : body).split("\n").map((line) => (line ? pad + line : ""));
  return `${mark}\n${lines.join("\n")}`;
}

function isCollection(value: unknown): value is object {
  return value !== null && typeof value === "object" && Object.keys(value).length > 0;
}

function leaf(value: unknown, pad: string): string {
  if (isBlock(value)) return block(value, pad);
  if (Array.isArray(value)) return "[]";
  if (value !== null && typeof value === "object") return "{}";
  return scalar(value);
}

function lines(value: object, pad: string, out: string[]): void {
  if (Array.isArray(value)) {
    for (const item of value) {
      if (!isCollection(item)) {
        out.push(`${pad}- ${leaf(item, `${pad}  `)}`);
        continue;
      }
      const inner: string[] = [];
      lines(item, `${pad}  `, inner);
      out.push(`${pad}- ${inner[0].slice(pad.length + 2)}`, ...inner.slice(1));
    }
    return;
  }
  const fields = value as Record<string, unknown>;
  for (const key of order(Object.keys(fields))) {
    const item = fields[key];
    if (item === undefined) continue;
    const label = `${pad}${scalar(key)}:`;
    if (!isCollection(item)) {
      out.push(`${label} ${leaf(item, `${pad}  `)}`);
      continue;
    }
    out.push(label);
    lines(item, Array.isArray(item) ? pad : `${pad}  `, out);
  }
}

/** The YAML of a JSON value.
 *
 *  toYaml({ kind: "Pod", spec: { nodes: ["a"] } })  // kind: Pod\nspec:\n  nodes:\n  - a\n
 */
export function toYaml(value: unknown): string {
  if (!isCollection(value)) return `${leaf(value, "")}\n`;
  const out: string[] = [];
  lines(value, "", out);
  return `${out.join("\n")}\n`;
}

/** The object without the records of field owners, which people do not edit. */
export function forPeople<T>(object: T): T {
  const copy = structuredClone(object) as { metadata?: Record<string, unknown> };
  if (copy.metadata) delete copy.metadata.managedFields;
  return copy as T;
}

/** The version that a text of YAML names, if it is one of this group; empty where it is not. */
export function versionIn(text: string, group: string): string {
  const named = /^apiVersion:[ \t]*(["']?)([^\s"'#]+)\1/m.exec(text)?.[2] ?? "";
  const parts = splitVersion(named);
  return parts.group === group ? parts.version : "";
}

/** The namespace that a text of YAML names in its metadata; empty where it cannot be seen. */
export function namespaceIn(text: string): string {
  const block = /^metadata:[ \t]*\n((?:[ \t]+.*\n?|[ \t]*\n)*)/m.exec(text)?.[1] ?? "";
  const indent = /^[ \t]+/.exec(block)?.[0] ?? "  ";
  const line = block.split("\n").find((entry) => entry.startsWith(`${indent}namespace:`));
  return (line ?? "").slice(indent.length + "namespace:".length).replace(/\s#.*$/, "").trim().replace(/^(["'])(.*)\1$/, "$2");
}
