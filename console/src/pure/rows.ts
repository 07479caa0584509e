// What a live table knows: a list, then the events of a watch. A pure step, so that all orders of events can be tested.

import type { Column } from "./health";

export interface Row {
  key: string;
  name: string;
  namespace: string;
  labels: Record<string, string>;
  created: string;
  deleting: boolean;
  version: string;
  cells: unknown[];
}

export interface Table {
  metadata?: { resourceVersion?: string; continue?: string; remainingItemCount?: number };
  columnDefinitions?: Column[] | null;
  rows?: { cells: unknown[]; object?: { metadata?: Record<string, unknown> } }[] | null;
}

export interface WatchEvent { type: string; object: Table & { code?: number; message?: string; reason?: string } }

export interface Rows {
  columns: Column[];
  rows: Map<string, Row>;
  /** Where the next watch begins; empty before the first list is complete. */
  version: string;
}

export const NO_ROWS: Rows = { columns: [], rows: new Map(), version: "" };

const text = (value: unknown): string => (typeof value === "string" ? value : "");

/** Only what the page needs of a row: an object's record of field owners alone can be larger than all the rest. */
export function rowOf(cells: unknown[], metadata: Record<string, unknown>): Row {
  const namespace = text(metadata.namespace);
  const name = text(metadata.name);
  return {
    key: text(metadata.uid) || `${namespace}/${name}`, name, namespace, cells,
    labels: (metadata.labels as Record<string, string> | undefined) ?? {},
    created: text(metadata.creationTimestamp), deleting: Boolean(metadata.deletionTimestamp), version: text(metadata.resourceVersion),
  };
}

function rowsOf(table: Table): Row[] {
  return (table.rows ?? []).filter((row) => row.object?.metadata).map((row) => rowOf(row.cells, row.object!.metadata!));
}

/** The rows of one list, which may have several pages. */
export function listed(pages: Table[]): Rows {
  const rows = new Map<string, Row>();
  for (const page of pages) for (const row of rowsOf(page)) rows.set(row.key, row);
  return {
    columns: pages.find((page) => page.columnDefinitions?.length)?.columnDefinitions ?? [],
    rows, version: pages[0]?.metadata?.resourceVersion ?? "",
  };
}

export class Expired extends Error {}

/** Apply one event. The map is changed in place (ten thousand rows are not copied for one); the object is new.
 *  Throws Expired when the server has forgotten where the watch was: then everything is listed again. */
export function applied(state: Rows, event: WatchEvent): Rows {
  if (event.type === "ERROR") {
    if (event.object.code === 410) throw new Expired(event.object.message ?? "expired");
    throw new Error(event.object.message ?? "the watch failed");
  }
  const rows = rowsOf(event.object);
  const version = event.object.metadata?.resourceVersion || rows[0]?.version || state.version;
  if (event.type === "BOOKMARK") return { ...state, version };
  for (const row of rows) {
    if (event.type === "DELETED") state.rows.delete(row.key);
    else state.rows.set(row.key, row);
  }
  const columns = event.object.columnDefinitions?.length ? event.object.columnDefinitions : state.columns;
  return { columns, rows: state.rows, version };
}

export interface Sort { column: number; descending: boolean }

const QUANTITY = /^(-?\d+(?:\.\d+)?)(m|k|Ki|Mi|Gi|Ti|M|G|T)?$/;
const SIZES: Record<string, number> = { m: 1e-3, k: 1e3, M: 1e6, G: 1e9, T: 1e12, Ki: 1024, Mi: 1024 ** 2, Gi: 1024 ** 3, Ti: 1024 ** 4 };

function numberOf(value: unknown): number | null {
  if (typeof value === "number") return value;
  const match = QUANTITY.exec(String(value ?? ""));
  return match ? Number(match[1]) * (match[2] ? SIZES[match[2]] : 1) : null;
}

export function compareCells(a: unknown, b: unknown): number {
  const [left, right] = [numberOf(a), numberOf(b)];
  if (left !== null && right !== null) return left - right;
  return String(a ?? "").localeCompare(String(b ?? ""), undefined, { numeric: true });
}

const isAge = (column: Column | undefined) => column?.name === "Age" || column?.name === "Created";

/** The rows to show: those that have every word of the search, in order. Column -1 is the namespace. */
export function shown(state: Rows, search: string, sort: Sort): Row[] {
  const needles = search.toLowerCase().split(/\s+/).filter(Boolean);
  const fits = (row: Row) => {
    if (!needles.length) return true;
    const hay = `${row.namespace}/${row.name} ${row.cells.join(" ")} ${Object.entries(row.labels).map(([key, value]) => `${key}=${value}`).join(" ")}`.toLowerCase();
    return needles.every((needle) => hay.includes(needle));
  };
  const rows = [...state.rows.values()].filter(fits);
  const direction = sort.descending ? -1 : 1;
  const byName = (a: Row, b: Row) => compareCells(a.namespace, b.namespace) || compareCells(a.name, b.name);
  const compare = (a: Row, b: Row): number => {
    if (sort.column < 0) return byName(a, b) * direction;
    if (isAge(state.columns[sort.column])) return compareCells(b.created, a.created) * direction || byName(a, b);
    return compareCells(a.cells[sort.column], b.cells[sort.column]) * direction || byName(a, b);
  };
  return rows.sort(compare);
}
