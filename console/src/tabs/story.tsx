// How the object came to be as it is: a timeline of writes, events and reconciles; plots; the past of its tree.

import { useEffect, useState } from "preact/hooks";
import * as api from "../api/console";
import { lines } from "../api/http";
import { poll } from "../api/watch";
import { Age, Loading, Problem } from "../parts/basics";
import { Graph } from "../parts/graph";
import { Plot } from "../parts/plot";
import { textOf } from "../pure/fields";
import { dataOf, isAfter, merged, seconds } from "../pure/story";
import { clockTime } from "../pure/times";
import type { TabProps } from "../pages/object";
import { language, says, t, titled, type Key } from "../texts";
import { Past, useTree } from "./tree";

const TYPES: api.StoryEntry["type"][] = ["created", "changed", "deleted", "event", "reconcile"];

function useStory(target: api.Ref) {
  const [story, setStory] = useState<api.Story | null>(null);
  const [error, setError] = useState<unknown>(null);
  useEffect(() => {
    const take = (more: Partial<api.Story>) => setStory((old) => ({
      entries: merged(old?.entries ?? [], more.entries ?? []).slice(0, 2000), series: more.series ?? old?.series ?? [], revisions: more.revisions ?? old?.revisions ?? null,
    }));
    const endPolls = poll(5000, async (signal) => {
      try {
        take(await api.story(target, signal));
        setError(null);
      } catch (problem) {
        if (!signal.aborted) setError(problem);
      }
    });
    const endStream = poll(1000, (signal) => readStream(target, signal, (entry) => take({ entries: [entry] })));
    return () => {
      endPolls();
      endStream();
    };
  }, [target.kind, target.namespace, target.name]);
  return { story, error };
}

async function readStream(target: api.Ref, signal: AbortSignal, take: (entry: api.StoryEntry) => void): Promise<void> {
  const hidden = new AbortController();
  const look = () => { if (document.hidden) hidden.abort(); };
  document.addEventListener("visibilitychange", look);
  try {
    const response = await api.storyStream(target, AbortSignal.any([signal, hidden.signal]));
    let block: string[] = [];
    for await (const line of lines(response)) {
      if (line.trim()) {
        block.push(line.replace(/\r$/, ""));
        continue;
      }
      const data = dataOf(block);
      block = [];
      const entry = data ? JSON.parse(data) : null;
      if (entry?.at && entry.object) take(entry as api.StoryEntry);
    }
  } catch (error) {
    if (!hidden.signal.aborted) throw error;
  } finally {
    document.removeEventListener("visibilitychange", look);
  }
}

export function StoryTab({ target }: TabProps) {
  const { story, error } = useStory(target);
  const [hiddenTypes, setHiddenTypes] = useState<Set<string>>(new Set());
  const [at, setAt] = useState<number | null>(null);
  if (!story) return error ? <Problem error={error} /> : <Loading />;
  const toggle = (type: string) => setHiddenTypes((old) => {
    const next = new Set(old);
    if (!next.delete(type)) next.add(type);
    return next;
  });
  const entries = story.entries.filter((entry) => !hiddenTypes.has(entry.type));
  return (
    <div class="story">
      {story.revisions && <div class="bar"><Past history={story.revisions} at={at} choose={setAt} /></div>}
      {at !== null && <TreeThen target={target} at={at} />}
      {story.series.some((series) => series.points.length) && (
        <section aria-label={t("story.plots")} class="plots">{story.series.filter((series) => series.points.length).map((series) => <Plot key={series.name} series={series} />)}</section>
      )}
      <section>
        <header class="row"><h2>{t("story.entries")}</h2>
          <div class="toggles" role="group" aria-label={t("story.filter")}>
            {TYPES.map((type) => <button key={type} type="button" class="toggle" aria-pressed={!hiddenTypes.has(type)} onClick={() => toggle(type)}>{t(`story.${type}` as Key)}</button>)}
          </div>
        </header>
        {entries.length ? <ol class="timeline">{entries.map((entry, index) => <Entry key={`${entry.at}${entry.revision ?? ""}${index}`} entry={entry} later={isAfter(entry, at)} choose={setAt} />)}</ol> : <p class="quiet">{t("story.none")}</p>}
      </section>
    </div>
  );
}

function TreeThen({ target, at }: { target: api.Ref; at: number }) {
  const { tree, error } = useTree(target, at);
  if (!tree) return error ? <Problem error={error} /> : <Loading />;
  return <Graph tree={tree} name={target.name} />;
}

function Entry({ entry, later, choose }: { entry: api.StoryEntry; later: boolean; choose: (at: number) => void }) {
  const changes = entry.difference ?? [];
  return (
    <li class={`entry ${entry.type}${later ? " later" : ""}`}>
      <span class="entry-when"><time dateTime={entry.at}>{clockTime(entry.at, language.value)}</time> <Age from={entry.at} /></span>
      <div>
        <p><span class={`entry-type ${entry.type}`}>{t(`story.${entry.type}` as Key)}</span> <span class="kind-tag">{entry.object.kind}</span> <strong>{entry.object.name}</strong> {says(entry.sentence, entry.parts)}</p>
        <p class="quiet small">
          {entry.who && <span>{t("story.by", { who: entry.who })}</span>}
          {typeof entry.duration === "number" && <span>{t("story.took", { time: seconds(entry.duration) })}</span>}
          {entry.result && <span>{titled("result", entry.result, entry.result)}</span>}
          {entry.revision !== null && entry.revision !== undefined && <button type="button" class="link" onClick={() => choose(Number(entry.revision))}>{String(entry.revision)}</button>}
        </p>
        {changes.length > 0 && (
          <details open={changes.length <= 4}><summary>{t("story.changes", { count: changes.length })}</summary>
            <table class="changes"><tbody>{changes.map((change) => (
              <tr key={change.path}><th scope="row"><code>{change.path}</code></th><td>{change.old !== undefined && change.old !== null && <del>{textOf(change.old)}</del>} {change.new !== undefined && change.new !== null && <ins>{textOf(change.new)}</ins>}</td></tr>
            ))}</tbody></table>
          </details>
        )}
      </div>
    </li>
  );
}
