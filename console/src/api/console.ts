// The console's own answers: session, overview, tree, why, story, simulation, operators' pages.

import type { Health } from "../pure/health";
import type { Part } from "../pure/sentence";
import { get, send, withQuery } from "./http";

export interface Ref { apiVersion: string; kind: string; resource: string; namespace?: string | null; name: string }
export interface Session {
  user: string; cluster: string; context?: string; server?: string; version?: string; simulated?: boolean;
  pages?: { name: string; title: string }[];
}
export interface Step extends Ref { sentence: string; health?: Health; parts?: { sentence: Part } }
export interface Why {
  sentence: string; health: Health; chain: Step[]; advice: string | null; log?: string[]; container?: string; unread?: string[];
  parts?: { sentence: Part; advice: Part; unread: Part[] };
}
export interface Problem extends Why { others?: number }
export interface KindCount { apiVersion: string; kind: string; resource: string; namespaced: boolean; group: string; count: number; broken: number; waiting: number }
export interface Overview { namespaces: string[]; kinds: KindCount[]; problems: Problem[] }
export interface TreeNode extends Ref {
  id: string; uid?: string; health: Health; sentence: string; says: string; parts?: { sentence: Part; says: Part }; ready: string | null; created?: string; deleting: boolean;
}
export interface TreeEdge { from: string; to: string; relation: string; sentence?: string }
export interface Tree { at?: string | number | null; nodes: TreeNode[]; edges: TreeEdge[]; history: { oldest: number; newest: number } | null; root?: string; cut?: number }
export interface Change { path: string; old?: unknown; new?: unknown }
export interface StoryEntry {
  at: string; revision?: number | string | null; object: { kind: string; namespace?: string | null; name: string };
  type: "created" | "changed" | "deleted" | "event" | "reconcile"; who?: string | null; sentence: string; parts?: Part;
  difference?: Change[]; duration?: number | null; result?: string | null;
}
export interface Series { name: string; unit: string; points: [number, number][] }
export interface Story { entries: StoryEntry[]; series: Series[]; revisions: { oldest: number; newest: number } | null }
export interface LoadLine { name: string; values: (number | null)[] }
export type LoadName = "queue" | "verbs" | "clients";
export interface LoadPlot { name: LoadName; lines: LoadLine[] }
export interface Load { times: number[]; every: number; plots: LoadPlot[]; missing: Partial<Record<LoadName, "elsewhere" | "forbidden" | "unserved">> }
export interface FaultParameter { name: string; type?: string; title?: string; values?: string[]; default?: string | number }
export interface Fault { name: string; title: string; description?: string; parameters: FaultParameter[] }
export interface Simulation {
  nodes: { name: string; ready?: boolean; lost?: boolean }[]; clock: { virtual: boolean; now: number | string; ahead?: number }; seed: number | null;
  faults: Fault[]; recording: { active: boolean; steps: number | unknown[] };
}
export interface PageColumn { title: string; path: string; type?: string }
export interface PageCard { title: string; type?: "value" | "table" | "record" | "conditions" | "links"; path: string; columns?: PageColumn[]; empty?: string }
export interface PageField { name: string; title?: string; type?: string; path?: string; values?: string[]; default?: unknown; required?: boolean }
export interface PageAction { name: string; title: string; patch?: unknown; subresource?: string; href?: string; confirm?: string; form?: PageField[] }
export interface OperatorPage {
  name: string; title: string; kind: string; apiVersion: string; resource: string;
  columns: PageColumn[]; cards: PageCard[]; actions: PageAction[]; sample?: { metadata?: object; [field: string]: unknown } | null;
  chinese?: Record<string, string>;
  create?: { form: string; versions?: { version: string; image?: string; default?: boolean }[] } | null;
}

const ROOT = "/console/v1";

export const session = (): Promise<Session> => get<Session>(`${ROOT}/session`);
export const signIn = (given: { token: string } | { code: string }): Promise<Response> => send(`${ROOT}/session`, { method: "POST", body: given });
export const signOut = (): Promise<Response> => send(`${ROOT}/session`, { method: "DELETE" });
export const overview = (signal?: AbortSignal): Promise<Overview> => get<Overview>(`${ROOT}/overview`, { signal });
export const pages = (signal?: AbortSignal): Promise<OperatorPage[]> => get<OperatorPage[]>(`${ROOT}/pages`, { signal });
export const simulation = (signal?: AbortSignal): Promise<Simulation> => get<Simulation>(`${ROOT}/simulation`, { signal });

function about(target: Ref): Record<string, string> {
  return { kind: `${target.apiVersion}/${target.kind}`, namespace: target.namespace ?? "", name: target.name };
}

export const tree = (target: Ref, at: number | null, signal?: AbortSignal): Promise<Tree> =>
  get<Tree>(withQuery(`${ROOT}/tree`, { ...about(target), at: at ?? "" }), { signal });
export const why = (target: Ref, signal?: AbortSignal): Promise<Why> => get<Why>(withQuery(`${ROOT}/why`, about(target)), { signal });
export const story = (target: Ref, signal?: AbortSignal): Promise<Story> => get<Story>(withQuery(`${ROOT}/story`, about(target)), { signal });
export const storyStream = (target: Ref, signal: AbortSignal): Promise<Response> =>
  send(withQuery(`${ROOT}/story/stream`, about(target)), { signal, accept: "text/event-stream" });
/** Of the whole cluster, or of the queues of one kind's controllers. */
export const load = (kind: string, signal?: AbortSignal): Promise<Load> => get<Load>(withQuery(`${ROOT}/load`, { kind }), { signal });
export const fault = (name: string, parameters: Record<string, unknown>): Promise<Response> =>
  send(`${ROOT}/simulation/faults/${encodeURIComponent(name)}`, { method: "POST", body: parameters });
export const record = (active: boolean): Promise<Response> => send(`${ROOT}/simulation/recording`, { method: "POST", body: { active } });
export const recordedTest = async (): Promise<string> => (await send(`${ROOT}/simulation/recording/test`, { accept: "text/plain" })).text();
