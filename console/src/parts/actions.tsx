// What can be done with an object: scale, restart, delete, cordon and drain, and what its operator declares.

import { useEffect, useState } from "preact/hooks";
import type { PageAction } from "../api/console";
import type { Kind } from "../api/kinds";
import { cordon, drain, remove, restart, scale, scaleOf, type KubeObject } from "../api/object";
import { pageOf } from "../pure/pages";
import { kindAddress } from "../pure/routes";
import { operatorPages } from "../state";
import { t } from "../texts";
import { notify } from "./basics";
import { Ask, Field } from "./dialog";
import { OperatorAction } from "./operatorAction";

const RESTARTABLE = new Set(["Deployment", "StatefulSet", "DaemonSet"]);

interface Props { kind: Kind; object: KubeObject }
type Open = "" | "scale" | "restart" | "delete" | "drain" | PageAction;

export function Actions({ kind, object }: Props) {
  const [open, setOpen] = useState<Open>("");
  const close = () => setOpen("");
  const place = { group: kind.group, version: kind.version, resource: kind.resource, namespace: object.metadata.namespace, name: object.metadata.name };
  const isNode = kind.kind === "Node" && kind.group === "";
  const isCordoned = Boolean(object.spec?.unschedulable);
  const own = pageOf(operatorPages.value, kind)?.actions ?? [];
  const name = object.metadata.name;
  return (
    <div class="actions" role="group" aria-label={t("object.actions")}>
      {own.map((action) => <button key={action.name} type="button" onClick={() => setOpen(action)}>{action.title}…</button>)}
      {kind.subresources.includes("scale") && !own.some((action) => action.name === "scale") && <button type="button" onClick={() => setOpen("scale")}>{t("action.scale")}</button>}
      {RESTARTABLE.has(kind.kind) && kind.group === "apps" && <button type="button" onClick={() => setOpen("restart")}>{t("action.restart")}</button>}
      {isNode && <button type="button" onClick={() => void cordon(name, !isCordoned).then(() => notify(t("action.done")), (error: Error) => notify(error.message))}>{isCordoned ? t("action.uncordon") : t("action.cordon")}</button>}
      {isNode && <button type="button" onClick={() => setOpen("drain")}>{t("action.drain")}</button>}
      {kind.verbs.includes("delete") && <button type="button" class="danger-text" onClick={() => setOpen("delete")}>{t("action.delete")}</button>}
      {open === "scale" && <Scale place={place} close={close} />}
      {open === "restart" && (
        <Ask title={t("action.restartTitle", { name })} button={t("action.restartNow")} close={close} work={async () => { await restart(place); notify(t("action.restarted", { name })); }}>
          <p>{t("action.restartAbout")}</p>
        </Ask>
      )}
      {open === "drain" && (
        <Ask title={t("action.drainTitle", { name })} button={t("action.drainNow")} danger close={close}
          work={async () => { const done = await drain(name); notify(t("action.drained", { count: done.evicted, stay: done.stay })); }}>
          <p>{t("action.drainAbout")}</p>
        </Ask>
      )}
      {open === "delete" && <Delete kind={kind} object={object} place={place} close={close} />}
      {typeof open === "object" && <OperatorAction action={open} place={place} object={object} close={close} />}
    </div>
  );
}

function Scale({ place, close }: { place: Parameters<typeof scale>[0]; close: () => void }) {
  const [replicas, setReplicas] = useState("");
  useEffect(() => { scaleOf(place).then((count) => setReplicas((typed) => typed || String(count)), () => undefined); }, []);
  const count = Number(replicas);
  const name = place.name ?? "";
  return (
    <Ask title={t("action.scaleTitle", { name })} button={t("action.scaleNow")} close={close} disabled={replicas === "" || !Number.isInteger(count) || count < 0}
      work={async () => { await scale(place, count); notify(t("action.scaled", { name, count })); }}>
      <Field label={t("action.replicas")}><input data-first type="number" min="0" step="1" value={replicas} onInput={(event) => setReplicas(event.currentTarget.value)} /></Field>
    </Ask>
  );
}

function Delete({ kind, object, place, close }: Props & { place: Parameters<typeof remove>[0]; close: () => void }) {
  const [typed, setTyped] = useState("");
  const [policy, setPolicy] = useState("Background");
  const name = object.metadata.name;
  return (
    <Ask title={t("action.deleteTitle", { name: `${kind.kind} ${name}` })} button={t("action.deleteNow")} danger disabled={typed !== name} close={close}
      work={async () => {
        await remove(place, policy, object.metadata.uid);
        notify(t("action.deleted", { name }));
        if (kind.kind === "Namespace") location.hash = kindAddress(kind);
      }}>
      <Field label={t("action.propagation")}>
        <select value={policy} onChange={(event) => setPolicy(event.currentTarget.value)}>
          <option value="Background">{t("action.background")}</option><option value="Foreground">{t("action.foreground")}</option><option value="Orphan">{t("action.orphan")}</option>
        </select>
      </Field>
      <Field label={t("action.typeName", { name })}><input data-first type="text" autocomplete="off" spellcheck={false} value={typed} onInput={(event) => setTyped(event.currentTarget.value)} /></Field>
    </Ask>
  );
}
