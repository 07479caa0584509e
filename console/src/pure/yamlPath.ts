// Where in an object a line of YAML is, by its indentation: enough for the help at the cursor, without a parser.

const KEY = /^(\s*(?:- )*)("(?:[^"\\]|\\.)*"|[^\s#:][^:#]*?):(?:\s|$)/;

interface Place { indent: number; key: string }

function keyOf(line: string): Place | null {
  const match = KEY.exec(line);
  if (!match) return null;
  const key = match[2].startsWith('"') ? (JSON.parse(match[2]) as string) : match[2].trim();
  return { indent: match[1].length, key };
}

const isList = (line: string) => /^\s*-(?:\s|$)/.test(line);
const indentOf = (line: string) => /^\s*/.exec(line)![0].length;

/** The keys that lead to a line (counted from 0), with `[]` for the items of lists. The line's own key is the last.
 *
 *  pathAt("spec:\n  containers:\n  - name: web", 2)  // ["spec", "containers", "[]", "name"]
 */
export function pathAt(text: string, line: number, column = Infinity): string[] {
  const rows = text.split("\n");
  const current = rows[line] ?? "";
  const own = keyOf(current);
  const blank = current.trim() === "" || current.trim() === "-";
  let limit = own ? own.indent : blank ? Math.min(column, Math.max(indentOf(current), current.trim() === "-" ? indentOf(current) + 2 : 0)) : indentOf(current) + (isList(current) ? 2 : 0);
  const path: string[] = own ? [own.key] : [];
  let inList = isList(current);
  let listIndent = inList ? indentOf(current) : -1;
  for (let index = line - 1; index >= 0 && (limit > 0 || inList); index--) {
    const row = rows[index];
    if (!row.trim() || row.trim().startsWith("#")) continue;
    const place = keyOf(row);
    const dash = isList(row);
    if (inList) {
      if (place && !dash && place.indent <= listIndent) {
        path.unshift("[]");
        path.unshift(place.key);
        limit = place.indent;
        inList = false;
      } else if (dash && place && indentOf(row) < listIndent && place.indent <= listIndent) {
        path.unshift("[]");
        path.unshift(place.key);
        limit = place.indent;
        listIndent = indentOf(row);
      }
      continue;
    }
    if (dash && indentOf(row) < limit) {
      if (place && place.indent < limit) {
        path.unshift(place.key);
        limit = place.indent;
      }
      inList = true;
      listIndent = indentOf(row);
      continue;
    }
    if (place && place.indent < limit) {
      path.unshift(place.key);
      limit = place.indent;
    }
  }
  return path;
}
