// What the object is, at a glance: facts, the operator's own cards, conditions, containers.

import { kindByName } from "../api/kinds";
import type { Condition, KubeObject } from "../api/object";
import { Age, Pairs, Status } from "../parts/basics";
import { Cards } from "../parts/cards";
import { ObjectLink } from "../parts/chain";
import type { TabProps } from "../pages/object";
import { wordHealth } from "../pure/health";
import { pageOf } from "../pure/pages";
import { portAddresses } from "../pure/ports";
import { kindAddress } from "../pure/routes";
import { operatorPages, session } from "../state";
import { t } from "../texts";

export function Summary({ kind, object }: TabProps) {
  const page = pageOf(operatorPages.value, kind);
  const { metadata } = object;
  const conditions = conditionsOf(object);
  return (
    <div class="summary">
      <Pairs items={[
        [t("object.created"), <Age from={metadata.creationTimestamp} />],
        [t("object.owner"), metadata.ownerReferences?.length ? <Owners object={object} /> : null],
        ...facts(object),
        [t("object.labels"), metadata.labels ? <Labels labels={metadata.labels} kind={kind} namespace={metadata.namespace} /> : null],
      ]} />
      {page && <Cards cards={page.cards} object={object} />}
      <Reach object={object} />
      {object.kind === "Pod" && <Containers pod={object} />}
      {conditions.length > 0 && !page?.cards.some((card) => card.type === "conditions") && <Conditions conditions={conditions} />}
    </div>
  );
}

/** How to reach a port of a pod or Service: a page of the console may not, so that no program runs as part of it. Pods of a
 *  simulated cluster have addresses of this machine: these are links, to pages of their own. */
function Reach({ object }: { object: KubeObject }) {
  const name = object.metadata.name;
  const ports: { port: number }[] = object.kind === "Service" && object.apiVersion === "v1" ? object.spec?.ports ?? []
    : object.kind === "Pod" && object.apiVersion === "v1" ? (object.spec?.containers ?? []).flatMap((container: { ports?: { containerPort: number }[] }) => (container.ports ?? []).map((entry) => ({ port: entry.containerPort }))) : [];
  if (!ports.length) return null;
  const target = object.kind === "Service" ? `service/${name}` : `pod/${name}`;
  const addresses = object.kind === "Pod" && session.value?.simulated ? portAddresses(String(object.status?.podIP ?? ""), ports.map((entry) => entry.port), location.hostname) : [];
  return (
    <section>
      <h2>{t("summary.reach")}</h2>
      {addresses.length > 0 && <ul class="labels">{addresses.map((address) => <li key={address}><a href={address} target="_blank" rel="noreferrer noopener">{address}</a></li>)}</ul>}
      <p><code>kubectl port-forward -n {object.metadata.namespace} {target} {ports.map((entry) => entry.port).join(" ")}</code></p>
    </section>
  );
}

export function conditionsOf(object: KubeObject): Condition[] {
  const status = object.status ?? {};
  const list = Array.isArray(status.conditions) ? status.conditions : Array.isArray(status.kubeConditions) ? status.kubeConditions : [];
  return list.filter((condition: unknown): condition is Condition => condition !== null && typeof condition === "object" && "status" in condition && "type" in condition);
}

function facts(object: KubeObject): [string, string][] {
  const spec = object.spec ?? {};
  const status = object.status ?? {};
  const pairs: [string, unknown][] = [
    [t("fact.phase"), status.phase], [t("fact.replicas"), typeof spec.replicas === "number" ? `${status.readyReplicas ?? 0} / ${spec.replicas}` : undefined],
    [t("fact.node"), spec.nodeName], [t("fact.podIP"), status.podIP], [t("fact.clusterIP"), spec.clusterIP], [t("fact.storageClass"), spec.storageClassName],
    [t("fact.volume"), spec.volumeName], [t("fact.serviceAccount"), spec.serviceAccountName], [t("fact.service"), spec.serviceName],
  ];
  return pairs.filter(([, value]) => value !== undefined && value !== null && value !== "").map(([name, value]) => [name, String(value)]);
}

function Owners({ object }: { object: KubeObject }) {
  return <>{object.metadata.ownerReferences!.map((owner) => {
    const kind = kindByName(owner.apiVersion, owner.kind);
    const namespace = kind?.namespaced ? object.metadata.namespace : "";
    return <ObjectLink key={owner.name} target={{ ...owner, resource: kind?.resource, namespace }} />;
  })}</>;
}

function Labels({ labels, kind, namespace }: { labels: Record<string, string>; kind: TabProps["kind"]; namespace?: string }) {
  return <ul class="labels">{Object.entries(labels).map(([key, value]) => <li key={key}><a href={kindAddress(kind, namespace, `${key}=${value}`)}>{key}<b>{value}</b></a></li>)}</ul>;
}

export function Conditions({ conditions }: { conditions: Condition[] }) {
  return (
    <section><h2>{t("object.conditions")}</h2><div class="scroll" tabIndex={0} role="group" aria-label={t("object.conditions")}><table class="plain-table stacks" aria-label={t("object.conditions")}>
      <thead><tr><th scope="col">{t("object.type")}</th><th scope="col">{t("object.status")}</th><th scope="col">{t("object.reason")}</th><th scope="col">{t("object.message")}</th><th scope="col">{t("object.since")}</th></tr></thead>
      <tbody>{conditions.map((condition) => (
        <tr key={condition.type}><td>{condition.type}</td><td>{condition.status}</td><td>{condition.reason}</td><td class="wrap">{condition.message}</td><td data-label={t("object.since")}><Age from={condition.lastTransitionTime} /></td></tr>
      ))}</tbody>
    </table></div></section>
  );
}

interface ContainerState { waiting?: { reason?: string; message?: string }; terminated?: { reason?: string; exitCode?: number; message?: string }; running?: unknown }
interface ContainerStatus { name: string; ready: boolean; restartCount: number; state?: ContainerState; lastState?: ContainerState }

function stateOf(status: ContainerStatus | undefined): string {
  const { waiting, terminated, running } = status?.state ?? {};
  if (waiting) return waiting.reason ?? "Waiting";
  if (terminated) return terminated.reason ?? `exit ${terminated.exitCode}`;
  return running ? "Running" : "";
}

function Containers({ pod }: { pod: KubeObject }) {
  const statuses: ContainerStatus[] = [...(pod.status?.initContainerStatuses ?? []), ...(pod.status?.containerStatuses ?? [])];
  const containers: { name: string; image: string; ports?: { containerPort: number; name?: string }[] }[] = [...(pod.spec?.initContainers ?? []), ...(pod.spec?.containers ?? [])];
  return (
    <section><h2>{t("summary.containers")}</h2><div class="scroll" tabIndex={0} role="group" aria-label={t("summary.containers")}><table class="plain-table stacks" aria-label={t("summary.containers")}>
      <thead><tr><th scope="col">{t("table.name")}</th><th scope="col">{t("object.status")}</th><th scope="col" class="numeric">{t("fact.restarts")}</th><th scope="col">{t("fact.image")}</th><th scope="col">{t("fact.ports")}</th></tr></thead>
      <tbody>{containers.map((container) => {
        const status = statuses.find((entry) => entry.name === container.name);
        const state = stateOf(status);
        const health = wordHealth(state);
        const message = status?.state?.waiting?.message ?? status?.state?.terminated?.message ?? "";
        return (
          <tr key={container.name}>
            <td>{container.name}</td><td title={message}>{health ? <Status health={health}>{state}</Status> : state}</td>
            <td class="numeric" data-label={t("fact.restarts")}>{status?.restartCount ?? 0}</td><td class="wrap"><code>{container.image}</code></td>
            <td data-label={container.ports?.length ? t("fact.ports") : ""}>{container.ports?.map((port) => port.containerPort).join(", ")}</td>
          </tr>
        );
      })}</tbody>
    </table></div></section>
  );
}
