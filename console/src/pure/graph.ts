// Where the nodes of a tree stand: layers from left to right. The layout library decides; this feeds it and cleans up.

import { graphlib, layout } from "@dagrejs/dagre";

export interface Box { id: string; x: number; y: number }
export interface Line { from: string; to: string; points: { x: number; y: number }[] }
export interface Drawing { boxes: Box[]; lines: Line[]; width: number; height: number }

export const WIDTH = 210;
export const HEIGHT = 70;

/** The places of all nodes (their left upper corners) and the lines between them. */
export function place(ids: string[], edges: { from: string; to: string; relation: string }[]): Drawing {
  const graph = new graphlib.Graph({ multigraph: true });
  graph.setGraph({ rankdir: "LR", nodesep: 14, ranksep: 56, marginx: 16, marginy: 16 });
  graph.setDefaultEdgeLabel(() => ({}));
  const known = new Set(ids);
  for (const id of ids) graph.setNode(id, { width: WIDTH, height: HEIGHT });
  const kept = edges.filter((edge) => known.has(edge.from) && known.has(edge.to) && edge.from !== edge.to);
  for (const edge of kept) graph.setEdge(edge.from, edge.to, { weight: edge.relation === "owns" ? 3 : 1 }, edge.relation);
  layout(graph);
  const boxes = ids.map((id) => {
    const node = graph.node(id) as { x: number; y: number };
    return { id, x: node.x - WIDTH / 2, y: node.y - HEIGHT / 2 };
  });
  const lines = kept.map((edge) => ({ from: edge.from, to: edge.to, points: (graph.edge(edge.from, edge.to, edge.relation) as { points?: { x: number; y: number }[] }).points ?? [] }));
  const size = graph.graph() as { width?: number; height?: number };
  return { boxes, lines, width: Math.max(1, size.width ?? 1), height: Math.max(1, size.height ?? 1) };
}

/** A line as an SVG path: from the right side of a box to the left side of the next, around what stands between. */
export function curve(from: Box, to: Box, points: { x: number; y: number }[]): string {
  const stops = [{ x: from.x + WIDTH, y: from.y + HEIGHT / 2 }, ...(points.length > 3 ? points.slice(1, -1) : []), { x: to.x, y: to.y + HEIGHT / 2 }];
  return stops.slice(1).reduce((path, stop, index) => {
    const before = stops[index];
    const bend = Math.max(12, (stop.x - before.x) / 2);
    return `${path}C${before.x + bend} ${before.y} ${stop.x - bend} ${stop.y} ${stop.x} ${stop.y}`;
  }, `M${stops[0].x} ${stops[0].y}`);
}

/** The order in which the keyboard moves: by layer, then from top to bottom. */
export function neighbour(boxes: Box[], id: string, key: string): string {
  const from = boxes.find((box) => box.id === id);
  if (!from) return boxes[0]?.id ?? "";
  const sides: Record<string, (box: Box) => boolean> = {
    ArrowRight: (box) => box.x > from.x, ArrowLeft: (box) => box.x < from.x,
    ArrowDown: (box) => box.x === from.x && box.y > from.y, ArrowUp: (box) => box.x === from.x && box.y < from.y,
  };
  if (!sides[key]) return id;
  const distance = (box: Box) => (Math.abs(box.x - from.x) * 4) + Math.abs(box.y - from.y);
  const [best] = boxes.filter(sides[key]).sort((a, b) => distance(a) - distance(b));
  return best?.id ?? id;
}
