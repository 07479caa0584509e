// The lines of a plot of the load, as the plot and the table beside it need them.

import type { LoadLine } from "../api/console";

/** The latest value that is known, and the greatest. */
export function summary(line: LoadLine): { now: number | null; most: number } {
  const known = line.values.filter((value): value is number => value !== null);
  return { now: line.values[line.values.length - 1] ?? null, most: known.length ? Math.max(...known) : 0 };
}

/** A number in few digits: 0, 0.2, 12.5, 340. */
export function short(value: number | null): string {
  if (value === null) return "–";
  return String(value >= 100 ? Math.round(value) : Math.round(value * 10) / 10);
}

/** Columns that all have the length of the times: what uPlot takes. */
export function columns(times: number[], lines: LoadLine[]): (number | null)[][] {
  return [times, ...lines.map((line) => times.map((_, index) => line.values[index] ?? null))];
}
