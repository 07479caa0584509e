// A difference of texts, line by line. The sign stands beside the colour.

import { useMemo } from "preact/hooks";
import { differenceOf } from "../pure/difference";
import { t } from "../texts";

export function Difference({ before, after }: { before: string; after: string }) {
  const lines = useMemo(() => differenceOf(before, after), [before, after]);
  if (!lines.length) return <p class="quiet">{t("yaml.noDifference")}</p>;
  return (
    <pre class="difference" tabIndex={0} aria-label={t("yaml.difference")}>
      {lines.map((line, index) => (line.sign === "…"
        ? <div key={index} class="folded">{t("yaml.folded", { count: line.text })}</div>
        : <div key={index} class={line.sign === "+" ? "added" : line.sign === "-" ? "removed" : ""}>{`${line.sign} ${line.text}`}</div>))}
    </pre>
  );
}
