// One object: what it is, what belongs to it, why it is so, how it came so, and what can be done with it.

import { useEffect, useState } from "preact/hooks";
import * as api from "../api/console";
import type { ApiError } from "../api/http";
import { findKind, type Kind } from "../api/kinds";
import { followObject, type KubeObject } from "../api/object";
import { poll } from "../api/watch";
import { Actions } from "../parts/actions";
import { Loading, Mark, Missing, Problem, Status } from "../parts/basics";
import { lazy } from "../parts/lazy";
import { Tabs } from "../parts/tabs";
import { kindAddress, formatRoute, type Route } from "../pure/routes";
import { replaceAddress } from "../state";
import { Events } from "../tabs/events";
import { Summary } from "../tabs/summary";
import { WhyTab } from "../tabs/why";
import { says, t, type Key } from "../texts";

const TreeTab = lazy(() => import("../tabs/tree").then((module) => module.TreeTab));
const StoryTab = lazy(() => import("../tabs/story").then((module) => module.StoryTab));
const YamlTab = lazy(() => import("../tabs/yaml").then((module) => module.YamlTab));
const LogsTab = lazy(() => import("../tabs/logs").then((module) => module.LogsTab));
const TerminalTab = lazy(() => import("../tabs/terminal").then((module) => module.TerminalTab));

type At = Extract<Route, { page: "object" }>;

export interface TabProps { kind: Kind; target: api.Ref; object: KubeObject; why: api.Why | null; whyError: unknown }

export function ObjectPage({ at }: { at: At }) {
  const kind = findKind(at.group, at.version, at.resource);
  if (!kind) return <Missing />;
  return <Shown at={at} kind={kind} />;
}

function useObject(at: At, kind: Kind) {
  const [state, setState] = useState<{ object: KubeObject | null; gone: boolean; error: ApiError | null }>({ object: null, gone: false, error: null });
  useEffect(() => followObject({ group: kind.group, version: kind.version, resource: kind.resource, namespace: at.namespace, name: at.name }, {
    object: (object) => setState((old) => (object ? { object: { ...object, kind: kind.kind, apiVersion: kind.apiVersion }, gone: false, error: null } : { ...old, gone: true })),
    refused: (error) => setState((old) => ({ ...old, error })),
  }), [kind, at.namespace, at.name]);
  return state;
}

function useWhy(target: api.Ref, ready: boolean) {
  const [state, setState] = useState<{ why: api.Why | null; error: unknown }>({ why: null, error: null });
  useEffect(() => (ready ? poll(4000, async (signal) => {
    try {
      const why = await api.why(target, signal);
      setState({ why, error: null });
    } catch (error) {
      if (!signal.aborted) setState((old) => ({ ...old, error }));
    }
  }) : undefined), [ready, target.namespace, target.name, target.kind]);
  return state;
}

function Shown({ at, kind }: { at: At; kind: Kind }) {
  const { object, gone, error } = useObject(at, kind);
  const target: api.Ref = { apiVersion: kind.apiVersion, kind: kind.kind, resource: kind.resource, namespace: at.namespace, name: at.name };
  const { why, error: whyError } = useWhy(target, object !== null && !gone);
  if (error) return <Problem error={error} />;
  if (!object) return gone ? <Absent kind={kind} at={at} /> : <Loading />;
  const isPod = kind.kind === "Pod" && kind.group === "";
  const ids = ["summary", "tree", "why", "story", "yaml", ...(isPod ? ["logs", "terminal"] : []), "events"];
  const tab = ids.includes(at.tab) ? at.tab : "summary";
  const choose = (id: string) => replaceAddress(formatRoute({ ...at, tab: id === "summary" ? "" : id }));
  const props: TabProps = { kind, target, object, why, whyError };
  return (
    <div class="object">
      <header class="page-head">
        <div class="titles">
          <p class="crumbs"><a href={kindAddress(kind, at.namespace)}>{kind.kind}</a>{at.namespace && <> / <span>{at.namespace}</span></>}</p>
          <h1>{at.name}</h1>
        </div>
        {gone ? <Status health="gone">{t("object.gone")}</Status> : why && <Status health={why.health} />}
        {object.metadata.deletionTimestamp && !gone && <Status health="waiting">{t("object.deleting")}</Status>}
        <span class="gap" />
        {!gone && <Actions kind={kind} object={object} />}
      </header>
      {why && why.health !== "ok" && why.health !== "asleep" && !gone && tab !== "why" && <p class={`why-line ${why.health}`}><Mark health={why.health} /><a href={formatRoute({ ...at, tab: "why" })}>{says(why.sentence, why.parts?.sentence)}</a></p>}
      <Tabs label={t("object.tabs")} chosen={tab} choose={choose} tabs={ids.map((id) => ({ id, title: t(`object.${id}` as Key) }))} />
      <div role="tabpanel" id="panel" class="panel" aria-labelledby={`tab-${tab}`} tabIndex={tab === "terminal" || tab === "yaml" ? -1 : 0}>
        {tab === "summary" && <Summary {...props} />}
        {tab === "tree" && <TreeTab {...props} />}
        {tab === "why" && <WhyTab {...props} />}
        {tab === "story" && <StoryTab {...props} />}
        {tab === "yaml" && <YamlTab {...props} />}
        {tab === "logs" && <LogsTab {...props} />}
        {tab === "terminal" && <TerminalTab {...props} />}
        {tab === "events" && <Events {...props} />}
      </div>
    </div>
  );
}

function Absent({ kind, at }: { kind: Kind; at: At }) {
  return (
    <div class="object">
      <header class="page-head"><div class="titles">
        <p class="crumbs">{kind.kind}{at.namespace && <> / <span>{at.namespace}</span></>}</p>
        <h1>{at.name}</h1>
      </div></header>
      <p><Status health="gone">{t("object.absent")}</Status></p>
      <p><a href={kindAddress(kind, at.namespace)}>{t("object.all")}</a></p>
    </div>
  );
}
