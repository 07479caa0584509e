// The choice of a namespace: a list where the caller may list them, and always a field to type one.

import { signal } from "@preact/signals";
import { useEffect, useId, useState } from "preact/hooks";
import { get } from "../api/http";
import { t } from "../texts";

const known = signal<string[]>([]);

async function load(): Promise<void> {
  const list = await get<{ items: { metadata: { name: string } }[] }>("/k8s/api/v1/namespaces?limit=1000");
  known.value = list.items.map((item) => item.metadata.name).sort();
}

export function NamespacePicker({ chosen, choose }: { chosen: string; choose: (namespace: string) => void }) {
  const [typed, setTyped] = useState(chosen);
  const id = useId();
  useEffect(() => { load().catch(() => undefined); }, []);
  useEffect(() => setTyped(chosen), [chosen]);
  const settle = (value: string) => { if (value.trim() !== chosen) choose(value.trim()); };
  return (
    <label class="field"><span>{t("table.namespace")}</span>
      <input list={id} value={typed} placeholder={t("table.allNamespaces")} spellcheck={false} autocomplete="off"
        onInput={(event) => {
          const value = event.currentTarget.value;
          setTyped(value);
          if (!value || known.value.includes(value)) settle(value);
        }}
        onBlur={() => settle(typed)} onKeyDown={(event) => { if (event.key === "Enter") settle(typed); }} />
      <datalist id={id}>{known.value.map((name) => <option key={name} value={name} />)}</datalist>
    </label>
  );
}
