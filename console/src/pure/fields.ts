// Fields of an object by a path, as operators' pages name them: `.status.members[0].name`, `metadata.labels['a.b/c']`.

const STEP = /\.?([^.[\]]+)|\[(\d+|\*)\]|\['([^']*)'\]|\["([^"]*)"\]/y;

/** The steps of a path; `*` is every item. An unreadable path has no steps and leads nowhere. */
export function stepsOf(path: string): (string | number)[] | null {
  const steps: (string | number)[] = [];
  const text = path.trim().replace(/^\$/, "").replace(/^\{(.*)\}$/, "$1");
  STEP.lastIndex = 0;
  while (STEP.lastIndex < text.length) {
    const match = STEP.exec(text);
    if (!match) return null;
    const [, name, index, single, double] = match;
    steps.push(index !== undefined && index !== "*" ? Number(index) : index ?? name ?? single ?? double ?? "");
  }
  return steps;
}

/** The value at a path; `undefined` where there is none. With `*` a list of values. */
export function fieldAt(object: unknown, path: string): unknown {
  const steps = stepsOf(path);
  return steps ? walk(object, steps) : undefined;
}

function walk(value: unknown, steps: (string | number)[]): unknown {
  if (!steps.length) return value;
  if (value === null || typeof value !== "object") return undefined;
  const [step, ...rest] = steps;
  if (step === "*") return Object.values(value).map((item) => walk(item, rest)).flat();
  return Object.hasOwn(value, step) ? walk((value as Record<string | number, unknown>)[step], rest) : undefined;
}

/** A value as one line for people. */
export function textOf(value: unknown): string {
  if (value === undefined || value === null) return "";
  if (Array.isArray(value)) return value.map(textOf).join(", ");
  if (typeof value === "object") return Object.entries(value).map(([key, item]) => `${key}: ${textOf(item)}`).join(", ");
  return String(value);
}

/** Items of a table: those of a list, or the entries of a map with their names as `name`. */
export function itemsOf(value: unknown): unknown[] {
  if (Array.isArray(value)) return value;
  if (value !== null && typeof value === "object") {
    return Object.entries(value).map(([name, item]) => (item !== null && typeof item === "object" && !Array.isArray(item) ? { name, ...item } : { name, value: item }));
  }
  return [];
}

/** Only addresses of the web become links: a page's data never runs anything. */
export const isWebAddress = (text: string): boolean => /^https?:\/\/[^\s]+$/i.test(text);

/** The patch as it is sent: `{"$form": "replicas"}` is what was entered into that field, `{"$now": true}` the time. */
export function filledPatch(patch: unknown, values: Record<string, unknown>, now: string): unknown {
  if (Array.isArray(patch)) return patch.map((item) => filledPatch(item, values, now));
  if (patch === null || typeof patch !== "object") return patch;
  const entries = Object.entries(patch);
  if (entries.length === 1 && entries[0][0] === "$form") return values[String(entries[0][1])] ?? null;
  if (entries.length === 1 && entries[0][0] === "$now") return now;
  return Object.fromEntries(entries.map(([key, item]) => [key, filledPatch(item, values, now)]));
}

/** Whether there is nothing to show: `false` and `0` are something. */
export const isEmpty = (value: unknown): boolean => textOf(value) === "";
