// A tree of objects as a picture: boxes that are links, lines that say how one stands to the other.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Tree, TreeNode } from "../api/console";
import { curve, HEIGHT, neighbour, place, WIDTH } from "../pure/graph";
import { objectAddress } from "../pure/routes";
import { says, t } from "../texts";
import { healthText, Mark } from "./basics";

export function Graph({ tree, name }: { tree: Tree; name: string }) {
  const shape = tree.nodes.map((node) => node.id).join("|") + tree.edges.map((edge) => `${edge.from}>${edge.to}`).join("|");
  const drawing = useMemo(() => place(tree.nodes.map((node) => node.id), tree.edges), [shape]);
  const [scale, setScale] = useState(1);
  const [chosen, setChosen] = useState(tree.nodes[0]?.id ?? "");
  const box = useRef<HTMLDivElement>(null);
  const fit = () => {
    const element = box.current!;
    setScale(Math.min(1, Math.max(0.3, Math.min(element.clientWidth / drawing.width, element.clientHeight / drawing.height))));
  };
  useEffect(fit, [shape]);
  const active = tree.nodes.some((node) => node.id === chosen) ? chosen : tree.nodes[0]?.id;
  const keys = (event: KeyboardEvent) => {
    const next = neighbour(drawing.boxes, active ?? "", event.key);
    if (next === active || !event.key.startsWith("Arrow")) return;
    event.preventDefault();
    setChosen(next);
    const link = [...box.current!.querySelectorAll<HTMLElement>("a[data-node]")].find((element) => element.dataset.node === next);
    link?.focus();
  };
  const boxes = new Map(drawing.boxes.map((entry) => [entry.id, entry]));
  const nodes = new Map(tree.nodes.map((node) => [node.id, node]));
  return (
    <div class="graph-frame">
      <div class="graph-tools">
        <button type="button" aria-label={t("tree.zoomOut")} onClick={() => setScale((old) => Math.max(0.2, old / 1.25))}>−</button>
        <button type="button" aria-label={t("tree.zoomIn")} onClick={() => setScale((old) => Math.min(2, old * 1.25))}>+</button>
        <button type="button" onClick={fit}>{t("tree.fit")}</button>
      </div>
      <div class="graph" ref={box} onKeyDown={keys} role="group" aria-label={t("tree.label", { name })}>
        <div class="graph-area" style={{ width: `${drawing.width * scale}px`, height: `${drawing.height * scale}px` }}>
          <div class="graph-plane" style={{ width: `${drawing.width}px`, height: `${drawing.height}px`, transform: `scale(${scale})` }}>
            <svg width={drawing.width} height={drawing.height} aria-hidden="true">
              {drawing.lines.map((line, index) => <path key={index} class={`edge ${tree.edges.find((edge) => edge.from === line.from && edge.to === line.to)?.relation.replace(" ", "-") ?? ""}`} d={curve(boxes.get(line.from)!, boxes.get(line.to)!, line.points)} />)}
            </svg>
            {drawing.boxes.map((entry) => <NodeBox key={entry.id} node={nodes.get(entry.id)!} x={entry.x} y={entry.y} active={entry.id === active} focus={() => setChosen(entry.id)} />)}
          </div>
        </div>
      </div>
    </div>
  );
}

function NodeBox({ node, x, y, active, focus }: { node: TreeNode; x: number; y: number; active: boolean; focus: () => void }) {
  if (!node) return null;
  const sentence = says(node.sentence, node.parts?.sentence);
  return (
    <a class={`node ${node.health}${node.deleting ? " deleting" : ""}`} href={objectAddress(node, "tree")} data-node={node.id} tabIndex={active ? 0 : -1} onFocus={focus}
      style={{ left: `${x}px`, top: `${y}px`, width: `${WIDTH}px`, height: `${HEIGHT}px` }} title={`${healthText(node.health)}: ${sentence}`}>
      <span class="node-head"><Mark health={node.health} /><span class="unseen">{healthText(node.health)}</span><span class="node-kind">{node.kind}</span>{node.ready && <span class="node-ready">{node.ready}</span>}</span>
      <strong>{node.name}</strong>
      <span class="node-says">{says(node.says, node.parts?.says)}</span>
    </a>
  );
}
