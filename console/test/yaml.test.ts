import { describe, expect, it } from "vitest";
import { forPeople, toYaml } from "../src/pure/yaml";
import { pathAt } from "../src/pure/yamlPath";
import { differenceOf, diffLines } from "../src/pure/difference";

describe("YAML", () => {
  it("has the order that people expect, and lists at the level of their key", () => {
    expect(toYaml({ status: { a: 1 }, spec: { containers: [{ image: "x", name: "web" }, "plain", []] }, kind: "Pod", apiVersion: "v1", metadata: { labels: {}, name: "p" } }))
      .toBe("apiVersion: v1\nkind: Pod\nmetadata:\n  name: p\n  labels: {}\nspec:\n  containers:\n  - name: web\n    image: x\n  - plain\n  - []\nstatus:\n  a: 1\n");
  });
  it("quotes what would be read as something else", () => {
    for (const text of ["true", "no", "null", "~", "1.5", "0x10", "1e3", "- a", "a: b", "#c", "", " a", "a ", "@x", "{a}", "[a]", "*a", "&a", "!a", "a #b", "2026-01-01", "\u0007", "y", ".inf"]) {
      expect(toYaml({ a: text })).toBe(`a: ${JSON.stringify(text)}\n`);
    }
    expect(toYaml({ a: "nginx:1.27" })).toBe('a: "nginx:1.27"\n');
    expect(toYaml({ a: "kube-system", b: 3, c: null, d: false })).toBe("a: kube-system\nb: 3\nc: null\nd: false\n");
  });
  it("writes texts of several lines as blocks that keep their end", () => {
    expect(toYaml({ a: { b: "x\n  y\n", c: "x\ny", d: "x\n\n" } })).toBe("a:\n  b: |\n    x\n      y\n  c: |-\n    x\n    y\n  d: |+\n    x\n\n");
    expect(toYaml({ a: " x\ny" })).toBe('a: " x\\ny"\n');
  });
  it("hides the records of field owners without touching the object", () => {
    const object = { metadata: { name: "a", managedFields: [1] } };
    expect(forPeople(object)).toEqual({ metadata: { name: "a" } });
    expect(object.metadata.managedFields).toEqual([1]);
  });
});

describe("the path at a line", () => {
  const text = "apiVersion: v1\nspec:\n  replicas: 3\n  containers:\n  - name: a\n    ports:\n    - containerPort: 80\n  - name: b\n    image: c\nstatus: {}\n";
  const at = (line: number) => pathAt(text, line).join(".");
  it("follows the indentation, with [] for items", () => {
    expect([at(0), at(2), at(4), at(5), at(6), at(8), at(9)]).toEqual(
      ["apiVersion", "spec.replicas", "spec.containers.[].name", "spec.containers.[].ports", "spec.containers.[].ports.[].containerPort", "spec.containers.[].image", "status"]);
  });
  it("knows where an empty line is by the cursor's column", () => {
    expect(pathAt("spec:\n  a: 1\n  \n", 2, 2)).toEqual(["spec"]);
    expect(pathAt("spec:\n  a: 1\n\n", 2, 0)).toEqual([]);
  });
});

describe("a difference", () => {
  const signs = (before: string, after: string) => diffLines([...before], [...after]).map((line) => line.sign + line.text).join(" ");
  it("is the shortest", () => {
    expect(signs("abc", "abc")).toBe(" a  b  c");
    expect(signs("abcabba", "cbabac").match(/[+-]/g)).toHaveLength(5);
    expect(signs("", "ab")).toBe("+a +b");
    expect(signs("ab", "")).toBe("-a -b");
  });
  it("leads from one text to the other", () => {
    for (const [a, b] of [["kitten", "sitting"], ["aXbXc", "abc"], ["abab", "baba"], ["x", "y"]]) {
      const lines = diffLines([...a], [...b]);
      expect(lines.filter((line) => line.sign !== "+").map((line) => line.text).join("")).toBe(a);
      expect(lines.filter((line) => line.sign !== "-").map((line) => line.text).join("")).toBe(b);
    }
  });
  it("folds what is far from a change", () => {
    const before = Array.from({ length: 30 }, (_, index) => `line ${index}`).join("\n");
    const lines = differenceOf(before, before.replace("line 15", "changed"));
    expect(lines.map((line) => line.sign).join("")).toBe("…   -+   …");
    expect(lines[0].text).toBe("12");
    expect(differenceOf("a", "a")).toEqual([]);
  });
});
