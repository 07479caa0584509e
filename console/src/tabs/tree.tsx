// What belongs to the object: what it owns, selects, mounts; now, or as it was at a revision.

import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import * as api from "../api/console";
import { poll } from "../api/watch";
import { Loading, Problem, Status } from "../parts/basics";
import { Graph } from "../parts/graph";
import { ObjectLink } from "../parts/chain";
import type { TabProps } from "../pages/object";
import { says, t, type Key } from "../texts";

export function useTree(target: api.Ref, at: number | null) {
  const [state, setState] = useState<{ tree: api.Tree | null; error: unknown }>({ tree: null, error: null });
  useEffect(() => {
    const ask = async (signal: AbortSignal) => {
      try {
        const tree = await api.tree(target, at, signal);
        setState({ tree, error: null });
      } catch (error) {
        // Of a moment at which there was no such object, nothing is shown: not the tree of another moment.
        const empty = (old: api.Tree | null): api.Tree | null => (old && at !== null ? { ...old, nodes: [], edges: [] } : old);
        if (!signal.aborted) setState((old) => ({ tree: empty(old.tree), error }));
      }
    };
    if (at === null) return poll(3000, ask);
    const ending = new AbortController();
    const timer = setTimeout(() => void ask(ending.signal), 120); // a slider that moves asks only where it rests
    return () => {
      clearTimeout(timer);
      ending.abort();
    };
  }, [target.kind, target.namespace, target.name, at]);
  return state;
}

export function TreeTab({ target }: TabProps) {
  const [at, setAt] = useState<number | null>(null);
  const [asList, setAsList] = useState(() => matchMedia("(max-width: 600px)").matches);
  const { tree, error } = useTree(target, at);
  if (!tree) return error ? <Problem error={error} /> : <Loading />;
  return (
    <div class="tree-tab">
      <div class="bar">
        {tree.history && <Past history={tree.history} at={at} choose={setAt} />}
        {tree.cut ? <span class="quiet">{t("tree.cut", { count: tree.cut })}</span> : null}
        <span class="gap" />
        <button type="button" aria-pressed={asList} onClick={() => setAsList(!asList)}>{asList ? t("tree.graph") : t("tree.list")}</button>
      </div>
      {error ? <Problem error={error} /> : null}
      {asList ? <Outline tree={tree} /> : <Graph tree={tree} name={target.name} />}
    </div>
  );
}

export function Past({ history, at, choose }: { history: { oldest: number; newest: number }; at: number | null; choose: (at: number | null) => void }) {
  const value = at ?? history.newest;
  return (
    <label class="past">
      <span>{t("story.slider")}</span>
      <input type="range" min={history.oldest} max={Math.max(history.newest, value)} value={value} aria-valuetext={at === null ? t("tree.now") : t("tree.at", { revision: value })}
        onInput={(event) => {
          const next = Number(event.currentTarget.value);
          choose(next >= history.newest ? null : next);
        }} />
      <output>{at === null ? t("tree.now") : value}</output>
      {at !== null && <button type="button" onClick={() => choose(null)}>{t("tree.now")}</button>}
    </label>
  );
}

function Outline({ tree }: { tree: api.Tree }) {
  const below = new Map<string, api.TreeEdge[]>();
  const reached = new Set<string>();
  for (const edge of tree.edges) {
    below.set(edge.from, [...(below.get(edge.from) ?? []), edge]);
    reached.add(edge.to);
  }
  const nodes = new Map(tree.nodes.map((node) => [node.id, node]));
  const drawn = new Set<string>();
  const branch = (id: string, relation: string): JSX.Element | null => {
    const node = nodes.get(id);
    if (!node || drawn.has(id)) return null;
    drawn.add(id);
    return (
      <li key={id}>
        <span class="outline-node"><Status health={node.health} />{relation && <em>{t(`relation.${relation}` as Key)}</em>}<ObjectLink target={node} tab="tree" />{node.ready && <small>{node.ready}</small>}</span>
        {node.health !== "ok" && node.health !== "asleep" && <p>{says(node.sentence, node.parts?.sentence)}</p>}
        {below.get(id)?.length ? <ul>{below.get(id)!.map((edge) => branch(edge.to, edge.relation))}</ul> : null}
      </li>
    );
  };
  const roots = tree.nodes.filter((node) => !reached.has(node.id));
  return <ul class="outline">{(roots.length ? roots : tree.nodes.slice(0, 1)).map((node) => branch(node.id, ""))}</ul>;
}
