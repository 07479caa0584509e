// The entries of a story: in order, each once, also when the stream repeats what the first answer had.

import type { StoryEntry } from "../api/console";

const keyOf = (entry: StoryEntry): string =>
  `${entry.at}|${entry.revision ?? ""}|${entry.type}|${entry.object.kind}/${entry.object.namespace ?? ""}/${entry.object.name}|${entry.sentence}`;

/** All entries, the newest first. */
export function merged(known: StoryEntry[], more: StoryEntry[]): StoryEntry[] {
  const all = new Map<string, StoryEntry>();
  for (const entry of [...known, ...more]) all.set(keyOf(entry), entry);
  return [...all.values()].sort((a, b) => b.at.localeCompare(a.at) || Number(b.revision ?? 0) - Number(a.revision ?? 0));
}

/** The data of one block of a text/event-stream; `null` for comments. */
export function dataOf(lines: string[]): string | null {
  const data = lines.filter((line) => line.startsWith("data:")).map((line) => line.slice(5).replace(/^ /, ""));
  return data.length ? data.join("\n") : null;
}

/** The revision of the newest entry that is not after the given one: what the slider stands at. */
export function isAfter(entry: StoryEntry, at: number | null): boolean {
  return at !== null && entry.revision !== null && entry.revision !== undefined && Number(entry.revision) > at;
}

export function seconds(duration: number): string {
  if (duration < 0.001) return `${Math.round(duration * 1e6)} µs`;
  return duration < 1 ? `${Math.round(duration * 1000)} ms` : `${duration.toFixed(1)} s`;
}
