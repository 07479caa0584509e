import { describe, expect, it } from "vitest";
import { spoken, type Part } from "../src/pure/sentence";
import sentences from "../src/texts/sentences.zh.json";

const said = (say: string, values: Record<string, Part> = {}): Part => ({ say, with: values });
const object = (noun: Part, name: string): Part => said("{noun} {name}", { noun, name });
const inChinese = (part: Part): string => spoken(part, sentences);

describe("a sentence of the engine", () => {
  const waits = said("{text} waits for {object}", { text: object("StatefulSet", "db"), object: object(said("pod"), "db-0") });
  const claim = said("{text}, which waits for {object}", { text: waits, object: object(said("claim"), "data-db-0") });
  it("is said in Chinese, with all that is inside", () => {
    const whole = said("{text}, whose {whose}", { text: claim, whose: said("{noun} `{name}` does not exist", { noun: said("storage class"), name: "fast" }) });
    expect(inChinese(whole)).toBe("StatefulSet db 在等待 Pod db-0，后者在等待持久卷申领 data-db-0，其存储类 `fast` 不存在");
  });
  it("has a space between Chinese and Latin letters, and none inside of Chinese", () => {
    expect(inChinese(said("{text}, which {says}", { text: waits, says: said("is ready") }))).toBe("StatefulSet db 在等待 Pod db-0，后者已就绪");
    expect(inChinese(said("{text} waits: its {whose}", { text: object("Job", "a"), whose: said("operator ({who}) may not {verb} {what}", { who: "x/y", verb: "create", what: "pods" }) })))
      .toBe("Job a 在等待：其 Operator（x/y）无权 create pods");
    expect(inChinese(said("see whether {controller} runs", { controller: said("the Deployment controller") }))).toBe("查看 Deployment 控制器是否在运行");
    expect(inChinese(said("{object} {says}", { object: object(said("pod"), "样本"), says: said("is ready") }))).toBe("Pod 样本已就绪");
  });
  it("has reasons beside each other", () => {
    const reasons = [said("1 has {what}", { what: said("not enough {what}", { what: "cpu" }) }), said("{count} have {what}", { count: "2", what: said("been cordoned") }), "3 odd"];
    expect(inChinese(said("fits on none of {total} nodes: {reasons}", { total: 6, reasons }))).toBe("无法放到 6 个节点中的任何一个：1 个节点的 cpu 不足，2 个节点已停止调度，3 odd");
  });
  it("keeps what the cluster said as it is, as a quote", () => {
    const hostile = "{head} 坏了 bad <img src=x> __proto__";
    expect(inChinese(said("{head}: {detail}", { head: said("is not ready"), detail: hostile }))).toBe(`未就绪：“${hostile}”`);
  });
  it("says why a reconcile ran", () => {
    const change = said("{kind} {name} updated: {fields}", { kind: "Pod", name: "shop/web", fields: said("{names} and {count} more", { names: "spec.a, spec.b", count: 3 }) });
    const retry = said("retry {attempt} after: {detail}", { attempt: "2", detail: "<img src=x> {kind}" });
    expect(inChinese(said("{who} reconciled ({reasons})", { who: "web", reasons: said("{first}; {second}", { first: change, second: retry }) })))
      .toBe("web 进行了调谐（Pod shop/web 已更新：spec.a, spec.b 及另外 3 个；第 2 次重试，此前失败：“<img src=x> {kind}”）");
  });
  it("that is not in the table stays English", () => {
    expect(inChinese(said("is {odd}", { odd: "new" }))).toBe("is new");
    expect(inChinese(said("toString", {}))).toBe("toString");
    expect(inChinese(said("{constructor}", {}))).toBe("{constructor}");
    expect(inChinese("plain")).toBe("plain");
    expect(inChinese(3)).toBe("3");
  });
});
