// How a row of a Table is, read from the words in its cells. The engine of `why` knows more; this needs no request.

export type Health = "ok" | "waiting" | "broken" | "gone" | "unknown";

const OK = new Set([
  "running", "active", "bound", "ready", "true", "available", "succeeded", "completed", "complete", "healthy", "approved", "approved,issued", "established",
]);
const BROKEN = /backoff|^err|error|failed|failure|evicted|oomkilled|lost|invalid|notready|unknown|crash|denied|degraded|false/;
const WAITING = /pending|creating|terminating|initializ|init:|waiting|progressing|scheduling|starting|stopping|provisioning|released|suspended|paused|deleting|migrating|stopped|scheduled|updating/;
const STATE_COLUMNS = /^(status|phase|state|ready|printablestatus)$/i;

export interface Column { name: string; type: string; format?: string; priority: number; description?: string }

/** What a word of a status column says; `null` when it says nothing about health. */
export function wordHealth(word: string): Health | null {
  const text = word.trim().toLowerCase();
  if (!text) return null;
  if (OK.has(text)) return "ok";
  const ready = /^(\d+)\/(\d+)$/.exec(text);
  if (ready) return ready[1] === ready[2] ? "ok" : "waiting";
  if (text === "ready,schedulingdisabled") return "waiting";
  if (WAITING.test(text)) return "waiting";
  if (BROKEN.test(text)) return "broken";
  return null;
}

const SEVERITY: Record<Health, number> = { ok: 0, gone: 1, unknown: 2, waiting: 3, broken: 4 };

export const severity = (health: Health): number => SEVERITY[health] ?? SEVERITY.unknown;

/** The sickest word of the columns that speak of a state. A pod that completed is not waiting for its containers. */
export function rowHealth(columns: readonly Column[], cells: readonly unknown[], deleting: boolean): Health | null {
  let worst: Health | null = null;
  let finished = false;
  columns.forEach((column, index) => {
    if (!STATE_COLUMNS.test(column.name)) return;
    const text = String(cells[index] ?? "");
    if (/^(completed|succeeded|complete)$/i.test(text)) finished = true;
    const health = wordHealth(text);
    if (health && (worst === null || severity(health) > severity(worst))) worst = health;
  });
  if (finished) return "ok";
  return deleting && worst !== "broken" ? "waiting" : worst;
}

export const isStateColumn = (column: Column): boolean => STATE_COLUMNS.test(column.name);
