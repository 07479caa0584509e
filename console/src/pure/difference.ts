// The difference of two texts by lines (Myers), with unchanged stretches folded.

export interface Line { sign: " " | "+" | "-" | "…"; text: string; old?: number; new?: number }

const MOST = 4000; // edits, beyond which everything is shown as replaced: the search is quadratic in them

function trace(a: string[], b: string[]): Int32Array[] | null {
  const max = Math.min(a.length + b.length, MOST);
  const offset = max + 1;
  let reach = new Int32Array(2 * offset + 1);
  const steps: Int32Array[] = [];
  for (let d = 0; d <= max; d++) {
    steps.push(reach.slice());
    for (let k = -d; k <= d; k += 2) {
      const down = k === -d || (k !== d && reach[offset + k - 1] < reach[offset + k + 1]);
      let x = down ? reach[offset + k + 1] : reach[offset + k - 1] + 1;
      while (x < a.length && x - k < b.length && a[x] === b[x - k]) x++;
      reach[offset + k] = x;
      if (x >= a.length && x - k >= b.length) return steps;
    }
  }
  return null;
}

/** All lines with their signs, in order. */
export function diffLines(before: string[], after: string[]): Line[] {
  let head = 0;
  while (head < before.length && head < after.length && before[head] === after[head]) head++;
  let tail = 0;
  while (tail < before.length - head && tail < after.length - head && before[before.length - 1 - tail] === after[after.length - 1 - tail]) tail++;
  const a = before.slice(head, before.length - tail);
  const b = after.slice(head, after.length - tail);
  const same = (from: number, count: number, shift: number): Line[] =>
    Array.from({ length: count }, (_, index) => ({ sign: " ", text: before[from + index], old: from + index + 1, new: from + index + 1 + shift }));
  return [...same(0, head, 0), ...middle(a, b, head), ...same(before.length - tail, tail, after.length - before.length)];
}

function middle(a: string[], b: string[], head: number): Line[] {
  const steps = trace(a, b);
  if (!steps) {
    return [...a.map((text, index): Line => ({ sign: "-", text, old: head + index + 1 })), ...b.map((text, index): Line => ({ sign: "+", text, new: head + index + 1 }))];
  }
  const out: Line[] = [];
  let x = a.length;
  let y = b.length;
  for (let d = steps.length - 1; d >= 0; d--) {
    const reach = steps[d];
    const offset = (reach.length - 1) / 2;
    const k = x - y;
    const down = k === -d || (k !== d && reach[offset + k - 1] < reach[offset + k + 1]);
    const previous = down ? k + 1 : k - 1;
    const fromX = d === 0 ? 0 : reach[offset + previous];
    const fromY = d === 0 ? 0 : fromX - previous;
    while (x > fromX && y > fromY) {
      out.push({ sign: " ", text: a[x - 1], old: head + x, new: head + y });
      x--;
      y--;
    }
    if (d === 0) break;
    if (down) out.push({ sign: "+", text: b[y - 1], new: head + y });
    else out.push({ sign: "-", text: a[x - 1], old: head + x });
    x = fromX;
    y = fromY;
  }
  return out.reverse();
}

/** Only the changes, each with `context` lines around it. Empty when the texts are the same. */
export function differenceOf(before: string, after: string, context = 3): Line[] {
  if (before === after) return [];
  const all = diffLines(before.split("\n"), after.split("\n"));
  const near = new Uint8Array(all.length);
  all.forEach((line, index) => {
    if (line.sign === " ") return;
    near.fill(1, Math.max(0, index - context), Math.min(all.length, index + context + 1));
  });
  const out: Line[] = [];
  let folded = 0;
  all.forEach((line, index) => {
    if (near[index]) {
      if (folded) out.push({ sign: "…", text: String(folded) });
      folded = 0;
      out.push(line);
    } else folded++;
  });
  if (folded) out.push({ sign: "…", text: String(folded) });
  return out;
}
