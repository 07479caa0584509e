import { describe, expect, it } from "vitest";
import { applied, compareCells, Expired, listed, shown, type Table, type WatchEvent } from "../src/pure/rows";

const columns = [{ name: "Name", type: "string", format: "name", priority: 0 }, { name: "Ready", type: "string", priority: 0 }, { name: "Age", type: "string", priority: 0 }];
const row = (name: string, ready = "1/1", version = "1", more: Record<string, unknown> = {}) =>
  ({ cells: [name, ready, "1m"], object: { metadata: { name, namespace: "a", uid: `uid-${name}`, resourceVersion: version, ...more } } });
const event = (type: string, table: Table): WatchEvent => ({ type, object: table });
const first = () => listed([
  { metadata: { resourceVersion: "10", continue: "x" }, columnDefinitions: columns, rows: [row("web-1"), row("web-2")] },
  { metadata: { resourceVersion: "10" }, columnDefinitions: null, rows: [row("web-10", "0/1")] },
]);

describe("a live table", () => {
  it("has all pages of a list, and begins its watch at the list's version", () => {
    const state = first();
    expect([...state.rows.values()].map((entry) => entry.name)).toEqual(["web-1", "web-2", "web-10"]);
    expect(state.version).toBe("10");
    expect(state.columns).toHaveLength(3);
  });
  it("applies events by uid, and remembers where it is", () => {
    let state = applied(first(), event("MODIFIED", { rows: [row("web-1", "0/1", "11")] }));
    state = applied(state, event("ADDED", { rows: [row("web-3", "1/1", "12")] }));
    state = applied(state, event("DELETED", { rows: [row("web-2", "1/1", "13")] }));
    expect([...state.rows.values()].map((entry) => [entry.name, entry.cells[1]])).toEqual([["web-1", "0/1"], ["web-10", "0/1"], ["web-3", "1/1"]]);
    expect(state.version).toBe("13");
    expect(state.columns).toHaveLength(3);
  });
  it("keeps an object that has the name of a deleted one apart", () => {
    const state = applied(first(), event("ADDED", { rows: [row("web-1", "1/1", "11", { uid: "another" })] }));
    expect(applied(state, event("DELETED", { rows: [row("web-1", "1/1", "12")] })).rows.has("another")).toBe(true);
  });
  it("moves on with a bookmark, and adds no row for it", () => {
    const state = applied(first(), event("BOOKMARK", { rows: [{ cells: ["", "", ""], object: { metadata: { resourceVersion: "99" } } }] }));
    expect([state.version, state.rows.size]).toEqual(["99", 3]);
  });
  it("says when the server has forgotten where it was", () => {
    expect(() => applied(first(), { type: "ERROR", object: { code: 410, message: "too old" } })).toThrow(Expired);
    expect(() => applied(first(), { type: "ERROR", object: { code: 500, message: "broken" } })).toThrow("broken");
  });
  it("shows what has every word of the search, in the order of a column, numbers as numbers", () => {
    const names = (search: string, column: number, descending = false) => shown(first(), search, { column, descending }).map((entry) => entry.name);
    expect(names("", 0)).toEqual(["web-1", "web-2", "web-10"]);
    expect(names("", 0, true)).toEqual(["web-10", "web-2", "web-1"]);
    expect(names("WEB 0/1", -1)).toEqual(["web-10"]);
    expect(names("nothing", -1)).toEqual([]);
  });
  it("orders by age with the youngest first", () => {
    const state = listed([{ columnDefinitions: columns, rows: [row("old", "", "1", { creationTimestamp: "2026-01-01T00:00:00Z" }), row("new", "", "1", { creationTimestamp: "2026-02-01T00:00:00Z" })] }]);
    expect(shown(state, "", { column: 2, descending: false }).map((entry) => entry.name)).toEqual(["new", "old"]);
  });
  it("compares quantities by their size", () => {
    expect(compareCells("900Mi", "1Gi")).toBeLessThan(0);
    expect(compareCells("500m", 1)).toBeLessThan(0);
  });
});
