// Sentences of the engine of `why` as data: a template (the English text is its id) with values, which may be sentences.

export interface Said { say: string; with: Record<string, Part> }
export type Part = string | number | Said | Part[];

const HAN = /[\u4e00-\u9fff]/;
const LATIN = /[\w`]/;

/** Two pieces of a Chinese text: a space between Chinese and Latin letters, none inside of Chinese. */
function joined(left: string, right: string): string {
  const [last, first] = [left.slice(-1), right.slice(0, 1)];
  if (last === " " && HAN.test(left.slice(-2)) && HAN.test(first)) return left.slice(0, -1) + right;
  if (first === " " && HAN.test(last) && HAN.test(right.slice(1, 2))) return left + right.slice(1);
  const meet = (HAN.test(last) && LATIN.test(first)) || (LATIN.test(last) && HAN.test(first));
  return meet ? `${left} ${right}` : left + right;
}

/** The text in Chinese. A template that the table lacks stays English; what the cluster said stays as it is. */
export function spoken(part: Part, table: Readonly<Record<string, string>>): string {
  if (Array.isArray(part)) return part.map((entry) => spoken(entry, table)).join("，");
  if (typeof part !== "object") return String(part);
  const template = Object.hasOwn(table, part.say) ? table[part.say] : part.say;
  const pieces = template.split(/(\{\w+\})/).map((piece) => {
    const name = /^\{(\w+)\}$/.exec(piece)?.[1];
    return name !== undefined && Object.hasOwn(part.with, name) ? spoken(part.with[name], table) : piece;
  });
  return pieces.reduce(joined, "");
}
