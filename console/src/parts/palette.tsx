// "Go to": a few letters of a kind, or a kind and a name, lead to its page.

import { useState } from "preact/hooks";
import { kinds, type Kind } from "../api/kinds";
import { formatRoute, kindAddress } from "../pure/routes";
import { t } from "../texts";
import { Dialog } from "./dialog";

/** How well a kind fits what was typed: higher is better, 0 is not at all. */
export function fit(kind: Pick<Kind, "kind" | "resource" | "shortNames">, typed: string): number {
  const needle = typed.toLowerCase();
  const names = [kind.kind.toLowerCase(), kind.resource, ...kind.shortNames];
  if (kind.shortNames.includes(needle)) return 4;
  if (names.includes(needle)) return 3;
  if (names.some((name) => name.startsWith(needle))) return 2;
  return names.some((name) => name.includes(needle)) ? 1 : 0;
}

export function Palette({ close }: { close: () => void }) {
  const [typed, setTyped] = useState("");
  const [chosen, setChosen] = useState(0);
  const [first, ...rest] = typed.trim().split(/\s+/);
  const search = rest.join(" ");
  const fitting = kinds.value.map((kind) => ({ kind, score: fit(kind, first ?? "") })).filter((entry) => entry.score)
    .sort((a, b) => b.score - a.score).slice(0, 12).map((entry) => entry.kind);
  const active = Math.min(chosen, Math.max(0, fitting.length - 1));
  const address = (kind: Kind) => (search
    ? formatRoute({ page: "kind", group: kind.group, version: kind.version, resource: kind.resource, namespace: "", search, labels: "" })
    : kindAddress(kind));
  const keys = (event: KeyboardEvent) => {
    if (event.key === "ArrowDown") setChosen(Math.min(active + 1, fitting.length - 1));
    else if (event.key === "ArrowUp") setChosen(Math.max(0, active - 1));
    else if (event.key === "Enter" && fitting[active]) {
      close();
      location.hash = address(fitting[active]);
    } else return;
    event.preventDefault();
  };
  return (
    <Dialog title={t("palette.title")} close={close}>
      <input data-first type="text" role="combobox" aria-expanded="true" aria-controls="palette" aria-label={t("palette.title")} placeholder={t("palette.hint")}
        aria-activedescendant={fitting[active] ? `palette-${active}` : undefined} autocomplete="off" spellcheck={false}
        value={typed} onInput={(event) => { setTyped(event.currentTarget.value); setChosen(0); }} onKeyDown={keys} />
      <ul id="palette" role="listbox" aria-label={t("app.kinds")} class="palette">
        {fitting.map((kind, index) => (
          <li key={kind.apiVersion + kind.kind} id={`palette-${index}`} role="option" aria-selected={index === active}
            onClick={() => { close(); location.hash = address(kind); }}>
            <strong>{kind.kind}</strong> <span class="quiet">{kind.apiVersion}{search && ` · ${search}`}</span>
          </li>
        ))}
      </ul>
      {!fitting.length && <p class="quiet">{t("palette.none")}</p>}
    </Dialog>
  );
}
