// The log of a container, followed as it is written. Lines are texts and nothing else.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { ApiError, lines, send, withQuery } from "../api/http";
import { apiPath } from "../api/kinds";
import { sleep } from "../api/watch";
import { Problem, save } from "../parts/basics";
import type { TabProps } from "../pages/object";
import { visibleText } from "../pure/logText";
import { t } from "../texts";

const MOST = 10000;
const TAIL = 2000;

interface Named { name: string }

export function LogsTab({ object }: TabProps) {
  const containers = [...((object.spec?.containers ?? []) as Named[]), ...((object.spec?.initContainers ?? []) as Named[]), ...((object.spec?.ephemeralContainers ?? []) as Named[])].map((entry) => entry.name);
  const [container, setContainer] = useState(containers[0] ?? "");
  const [follow, setFollow] = useState(true);
  const [previous, setPrevious] = useState(false);
  const [wrap, setWrap] = useState(true);
  const [search, setSearch] = useState("");
  const { rows, dropped, error } = useLog(object.metadata.namespace ?? "", object.metadata.name, container, follow && !previous, previous);
  const needle = search.toLowerCase();
  const shown = useMemo(() => (needle ? rows.filter((row) => row.toLowerCase().includes(needle)) : rows), [rows, needle]);
  const box = useRef<HTMLPreElement>(null);
  const atEnd = useRef(true);
  useEffect(() => { if (atEnd.current && box.current) box.current.scrollTop = box.current.scrollHeight; }, [shown]);
  return (
    <div class="logs-tab">
      <div class="bar">
        <label class="field"><span>{t("logs.container")}</span>
          <select value={container} onChange={(event) => setContainer(event.currentTarget.value)}>{containers.map((name) => <option key={name}>{name}</option>)}</select></label>
        <label class="field"><span>{t("logs.search")}</span><input type="search" value={search} spellcheck={false} onInput={(event) => setSearch(event.currentTarget.value)} /></label>
        <label class="tick"><input type="checkbox" checked={follow} disabled={previous} onChange={(event) => setFollow(event.currentTarget.checked)} /> {t("logs.follow")}</label>
        <label class="tick"><input type="checkbox" checked={previous} onChange={(event) => setPrevious(event.currentTarget.checked)} /> {t("logs.previous")}</label>
        <label class="tick"><input type="checkbox" checked={wrap} onChange={(event) => setWrap(event.currentTarget.checked)} /> {t("logs.wrap")}</label>
        <span class="gap" />
        <span class="quiet">{t("logs.lines", { count: shown.length })}{dropped && ` · ${t("logs.dropped")}`}</span>
        <button type="button" onClick={() => save(`${object.metadata.name}-${container}.log`, rows.join("\n"))}>{t("logs.download")}</button>
      </div>
      <Problem error={error} />
      <pre ref={box} class={`log${wrap ? " wrapped" : ""}`} tabIndex={0} role="log" aria-label={t("logs.label", { name: object.metadata.name })}
        onScroll={() => { const element = box.current!; atEnd.current = element.scrollHeight - element.scrollTop - element.clientHeight < 40; }}>
        {shown.length ? shown.join("\n") : t("logs.empty")}
      </pre>
    </div>
  );
}

function useLog(namespace: string, name: string, container: string, follow: boolean, previous: boolean) {
  const [state, setState] = useState<{ rows: string[]; dropped: boolean; error: unknown }>({ rows: [], dropped: false, error: null });
  useEffect(() => {
    const ending = new AbortController();
    setState({ rows: [], dropped: false, error: null });
    void readLog({ namespace, name, container, follow, previous }, ending.signal, setState);
    return () => ending.abort();
  }, [namespace, name, container, follow, previous]);
  return state;
}

interface Wanted { namespace: string; name: string; container: string; follow: boolean; previous: boolean }
type SetState = (change: (old: { rows: string[]; dropped: boolean; error: unknown }) => { rows: string[]; dropped: boolean; error: unknown }) => void;

/** Lines are collected and drawn ten times a second: a log that floods must not freeze the page. */
async function readLog(wanted: Wanted, ending: AbortSignal, setState: SetState): Promise<void> {
  let waiting: string[] = [];
  let timer = 0;
  const draw = () => {
    timer = 0;
    const more = waiting;
    waiting = [];
    setState((old) => {
      const rows = [...old.rows, ...more];
      return { rows: rows.length > MOST ? rows.slice(-MOST) : rows, dropped: old.dropped || rows.length > MOST, error: null };
    });
  };
  let since = "";
  while (!ending.aborted) {
    try {
      const path = apiPath({ group: "", version: "v1", resource: "pods", namespace: wanted.namespace, name: wanted.name }, "log");
      const options = since ? { sinceTime: since } : { tailLines: TAIL };
      const response = await send(withQuery(path, { container: wanted.container, follow: wanted.follow, previous: wanted.previous, ...options }), { signal: ending, accept: "*/*" });
      for await (const line of lines(response)) {
        waiting.push(visibleText(line));
        timer ||= window.setTimeout(draw, 100);
      }
      since = new Date().toISOString();
    } catch (error) {
      if (ending.aborted) return;
      const final = error instanceof ApiError && error.code >= 400 && error.code < 500;
      setState((old) => ({ ...old, error }));
      if (final && !wanted.follow) return;
    }
    if (!wanted.follow) return;
    await sleep(3000, ending); // the container ended, or is not there yet
  }
}
