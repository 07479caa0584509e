// One object: followed by a watch of its name, and changed by plain requests.

import { ApiError, get, lines, send, withQuery } from "./http";
import { apiPath, type Place } from "./kinds";
import { poll } from "./watch";

export interface Condition { type: string; status: string; reason?: string; message?: string; lastTransitionTime?: string }
export interface KubeObject {
  apiVersion: string;
  kind: string;
  metadata: {
    name: string; namespace?: string; uid: string; resourceVersion: string; creationTimestamp?: string; deletionTimestamp?: string;
    labels?: Record<string, string>; annotations?: Record<string, string>;
    ownerReferences?: { apiVersion: string; kind: string; name: string; controller?: boolean }[]; managedFields?: unknown;
  };
  spec?: Record<string, any>;
  status?: Record<string, any>;
  [more: string]: unknown;
}

export interface ObjectListener {
  object(object: KubeObject | null): void;
  refused(error: ApiError): void;
}

/** Follow an object; `null` when there is none. */
export function followObject(place: Place & { name: string }, listener: ObjectListener): () => void {
  let seen = false;
  return poll(1000, async (signal) => {
    try {
      const object = await get<KubeObject>(apiPath(place), { signal });
      seen = true;
      listener.object(object);
      await watchOne(place, object, listener, signal);
    } catch (error) {
      if (signal.aborted || !(error instanceof ApiError)) return;
      if (error.code === 404) listener.object(null);
      else if (error.code >= 400 && error.code < 500 && error.code !== 410 && error.code !== 429 && !seen) listener.refused(error);
    }
  });
}

/** Until the watch ends, the tab is hidden, or the watch cannot be had (then `poll` asks again). */
async function watchOne(place: Place & { name: string }, object: KubeObject, listener: ObjectListener, ending: AbortSignal): Promise<void> {
  const hidden = new AbortController();
  const look = () => { if (document.hidden) hidden.abort(); };
  document.addEventListener("visibilitychange", look);
  try {
    const address = withQuery(apiPath({ ...place, name: "" }), {
      watch: 1, fieldSelector: `metadata.name=${place.name}`, resourceVersion: object.metadata.resourceVersion,
    });
    const response = await send(address, { signal: AbortSignal.any([ending, hidden.signal]) });
    for await (const line of lines(response)) {
      if (!line) continue;
      const event = JSON.parse(line) as { type: string; object: KubeObject };
      if (event.type === "ERROR") return;
      listener.object(event.type === "DELETED" ? null : event.object);
    }
  } catch (error) {
    if (ending.aborted || error instanceof ApiError) throw error;
  } finally {
    document.removeEventListener("visibilitychange", look);
  }
}

const MERGE = "application/merge-patch+json";
const STRATEGIC = "application/strategic-merge-patch+json";

export async function mergePatch(place: Place, patch: unknown, subresource = ""): Promise<void> {
  await send(apiPath(place, subresource), { method: "PATCH", text: { type: MERGE, content: JSON.stringify(patch) } });
}

export async function scaleOf(place: Place): Promise<number> {
  return (await get<{ spec?: { replicas?: number } }>(apiPath(place, "scale"))).spec?.replicas ?? 0;
}

export const scale = (place: Place, replicas: number): Promise<void> => mergePatch(place, { spec: { replicas } }, "scale");

/** As `kubectl rollout restart` does it: an annotation of the pod template, with the time. */
export async function restart(place: Place): Promise<void> {
  const annotations = { "kubectl.kubernetes.io/restartedAt": new Date().toISOString() };
  const patch = { spec: { template: { metadata: { annotations } } } };
  await send(apiPath(place), { method: "PATCH", text: { type: STRATEGIC, content: JSON.stringify(patch) } });
}

export async function remove(place: Place, propagationPolicy: string, uid: string): Promise<void> {
  // The precondition: what is deleted is what was looked at, not another object that has its name now.
  await send(apiPath(place), { method: "DELETE", body: { kind: "DeleteOptions", apiVersion: "v1", propagationPolicy, preconditions: { uid } } });
}

export const cordon = (node: string, unschedulable: boolean): Promise<void> =>
  mergePatch({ group: "", version: "v1", resource: "nodes", name: node }, { spec: { unschedulable: unschedulable || null } });

interface PodList { items: KubeObject[] }

/** Cordon, then evict every pod but those of DaemonSets and mirror pods (upstream: kubectl drain, its filters). */
export async function drain(node: string): Promise<{ evicted: number; stay: number }> {
  await cordon(node, true);
  const pods = await get<PodList>(withQuery("/k8s/api/v1/pods", { fieldSelector: `spec.nodeName=${node}` }));
  let evicted = 0;
  let stay = 0;
  for (const pod of pods.items) {
    const owner = pod.metadata.ownerReferences?.find((reference) => reference.controller);
    const finished = ["Succeeded", "Failed"].includes(String(pod.status?.phase));
    if (!finished && (owner?.kind === "DaemonSet" || pod.metadata.annotations?.["kubernetes.io/config.mirror"])) {
      stay++;
      continue;
    }
    const { name, namespace } = pod.metadata;
    try {
      await send(apiPath({ group: "", version: "v1", resource: "pods", namespace, name }, "eviction"), {
        method: "POST", body: { apiVersion: "policy/v1", kind: "Eviction", metadata: { name, namespace } },
      });
      evicted++;
    } catch (error) {
      if (error instanceof ApiError && error.code === 404) continue;
      if (error instanceof ApiError && error.code === 429) stay++; // a disruption budget forbids it now
      else throw error;
    }
  }
  return { evicted, stay };
}

/** Put a text of YAML in the object's place; the answer is the object as the server has it, or would have it. */
export async function replaceWith(place: Place, yaml: string, dryRun: boolean): Promise<KubeObject> {
  const address = withQuery(apiPath(place), { dryRun: dryRun ? "All" : "", fieldManager: "konverge-console", fieldValidation: "Strict" });
  const response = await send(address, { method: "PUT", text: { type: "application/yaml", content: yaml } });
  return response.json() as Promise<KubeObject>;
}

/** Create an object from a text of YAML; the answer is the object as the server has it, or would have it. */
export async function createFrom(place: Place, yaml: string, dryRun: boolean): Promise<KubeObject> {
  const address = withQuery(apiPath(place), { dryRun: dryRun ? "All" : "", fieldManager: "konverge-console", fieldValidation: "Strict" });
  const response = await send(address, { method: "POST", text: { type: "application/yaml", content: yaml } });
  return response.json() as Promise<KubeObject>;
}
