// How a row of a Table is, read from the words in its cells. The engine of `why` knows more; this needs no request.

/** `asleep`: it does nothing because its user wants it so. */
export type Health = "ok" | "asleep" | "waiting" | "broken" | "gone" | "unknown";

const OK = new Set([
  "running", "active", "bound", "ready", "true", "available", "succeeded", "completed", "complete", "healthy", "approved", "approved,issued", "established",
]);
const ASLEEP = new Set(["hibernated"]);
const BROKEN = /backoff|^err|error|failed|failure|evicted|oomkilled|lost|invalid|notready|unknown|crash|denied|degraded|false/;
const WAITING = /pending|creating|terminating|initializ|init:|waiting|progressing|scheduling|starting|stopping|provisioning|released|suspended|paused|deleting|migrating|hibernating|stopped|scheduled|updating/;
const STATE_COLUMNS = /^(status|phase|state|ready|printablestatus)$/i;

export interface Column { name: string; type: string; format?: string; priority: number; description?: string }

/** What a word of a status column says; `null` when it says nothing about health. */
export function wordHealth(word: string): Health | null {
  const text = word.trim().toLowerCase();
  if (!text) return null;
  if (OK.has(text)) return "ok";
  if (ASLEEP.has(text)) return "asleep";
  const ready = /^(\d+)\/(\d+)$/.exec(text);
  if (ready) return ready[1] === ready[2] ? "ok" : "waiting";
  if (text === "ready,schedulingdisabled") return "waiting";
  if (WAITING.test(text)) return "waiting";
  if (BROKEN.test(text)) return "broken";
  return null;
}

const SEVERITY: Record<Health, number> = { ok: 0, asleep: 0, gone: 1, unknown: 2, waiting: 3, broken: 4 };

export const severity = (health: Health): number => SEVERITY[health] ?? SEVERITY.unknown;

/** The sickest word of the columns that speak of a state. A pod that completed is not waiting for its containers, nor
 * is one that sleeps for servers to be ready (`Hibernated` beside `False` or `0/3`). */
export function rowHealth(columns: readonly Column[], cells: readonly unknown[], deleting: boolean): Health | null {
  let worst: Health | null = null;
  let finished = false;
  let asleep = false;
  columns.forEach((column, index) => {
    if (!STATE_COLUMNS.test(column.name)) return;
    const text = String(cells[index] ?? "");
    if (/^(completed|succeeded|complete)$/i.test(text)) finished = true;
    const health = wordHealth(text);
    if (health === "asleep") asleep = true;
    if (health && (worst === null || severity(health) > severity(worst))) worst = health;
  });
  if (finished) return "ok";
  if (asleep) return deleting ? "waiting" : "asleep";
  return deleting && worst !== "broken" ? "waiting" : worst;
}

export const isStateColumn = (column: Column): boolean => STATE_COLUMNS.test(column.name);
