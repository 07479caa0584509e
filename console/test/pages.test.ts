import { describe, expect, it } from "vitest";
import type { OperatorPage } from "../src/api/console";
import { inChinese, pageOf } from "../src/pure/pages";
import { versionIn } from "../src/pure/yaml";

const PAGE: OperatorPage = {
  name: "backups", title: "Backups", kind: "Backup", apiVersion: "example.com/v1", resource: "backups",
  columns: [{ title: "Taken", path: "status.takenAt" }, { title: "Odd", path: "x" }],
  cards: [{ title: "Files", path: "status.files", type: "table", columns: [{ title: "Taken", path: "at" }], empty: "No file yet." }, { title: "Size", path: "s", type: "record", empty: "Odd." }],
  actions: [{ name: "keep", title: "Keep more", confirm: "Older ones are removed.", form: [{ name: "keep", title: "How many" }] }, { name: "now", title: "Now" }],
  chinese: { Backups: "备份", Taken: "时间", Files: "文件", "Keep more": "多保留", "Older ones are removed.": "较旧的会删除。", "How many": "多少", "No file yet.": "还没有文件。" },
};

describe("an operator's page", () => {
  it("belongs to every version of its kind", () => {
    expect(pageOf([PAGE], { group: "example.com", resource: "backups" })).toBe(PAGE);
    expect(pageOf([PAGE], { group: "other.com", resource: "backups" })).toBeUndefined();
    expect(pageOf([PAGE], { group: "example.com", resource: "others" })).toBeUndefined();
  });
  it("is said in Chinese as far as the operator does", () => {
    const page = inChinese(PAGE);
    expect(page.title).toBe("备份");
    expect(page.columns.map((column) => column.title)).toEqual(["时间", "Odd"]);
    expect(page.cards.map((card) => card.title)).toEqual(["文件", "Size"]);
    expect(page.cards[0].columns?.[0]).toEqual({ title: "时间", path: "at" });
    expect(page.cards.map((card) => card.empty)).toEqual(["还没有文件。", "Odd."]);
    expect(page.actions).toEqual([{ name: "keep", title: "多保留", confirm: "较旧的会删除。", form: [{ name: "keep", title: "多少" }] }, { name: "now", title: "Now" }]);
    expect(inChinese({ ...PAGE, chinese: undefined, title: "constructor" })).toEqual({ ...PAGE, chinese: undefined, title: "constructor" });
  });
});

describe("the version in a text", () => {
  it.each([
    ["apiVersion: example.com/v1alpha1\nkind: Backup\n", "example.com", "v1alpha1"],
    ["# here\napiVersion: 'example.com/v2' # new\n", "example.com", "v2"],
    ["kind: Pod\napiVersion: v1\n", "", "v1"],
    ["apiVersion: other.com/v1\n", "example.com", ""],
    ["metadata:\n  apiVersion: example.com/v3\n", "example.com", ""],
    ["apiVersion: example.com/\n", "example.com", ""],
    ["", "example.com", ""],
  ])("%j of %j", (text, group, version) => expect(versionIn(text, group)).toBe(version));
});
