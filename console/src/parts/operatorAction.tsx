// An action that an operator declares: a merge patch, perhaps with a form whose values go into it.

import { useState } from "preact/hooks";
import type { PageAction, PageField } from "../api/console";
import { mergePatch, type KubeObject } from "../api/object";
import type { Place } from "../api/kinds";
import { fieldAt, filledPatch, isWebAddress } from "../pure/fields";
import { t } from "../texts";
import { notify } from "./basics";
import { Ask, Entry, Field } from "./dialog";

function typed(field: PageField, text: string): unknown {
  if (field.type === "number") return text === "" ? null : Number(text);
  if (field.type === "bool") return text === "true";
  return text === "" && !field.required ? null : text;
}

export function OperatorAction({ action, place, object, close }: { action: PageAction; place: Place; object: KubeObject; close: () => void }) {
  const fields = action.form ?? [];
  const first = (field: PageField) => String((field.path ? fieldAt(object, field.path) : undefined) ?? field.default ?? "");
  const [texts, setTexts] = useState<Record<string, string>>(() => Object.fromEntries(fields.map((field) => [field.name, first(field)])));
  const set = (name: string, text: string) => setTexts((old) => ({ ...old, [name]: text }));
  const work = async () => {
    if (action.href) {
      const address = action.href.replace(/\{([^}]+)\}/g, (_, path: string) => encodeURIComponent(String(fieldAt(object, path) ?? "")));
      if (address.startsWith("#/")) location.hash = address;
      else if (isWebAddress(address)) window.open(address, "_blank", "noopener,noreferrer");
      return;
    }
    const values = Object.fromEntries(fields.map((field) => [field.name, typed(field, texts[field.name])]));
    const now = new Date().toISOString().replace(/\.\d+Z$/, "Z");
    await mergePatch(place, filledPatch(action.patch ?? {}, values, now), action.subresource ?? "");
    notify(t("page.done", { title: action.title }));
  };
  return (
    <Ask title={`${action.title}: ${object.metadata.name}`} button={action.title} close={close} work={work} disabled={fields.some((field) => field.required && !texts[field.name])}>
      {action.confirm && <p>{action.confirm}</p>}
      {fields.map((field) => (
        <Field key={field.name} label={field.title ?? field.name}>
          {field.values?.length || field.type === "bool"
            ? <select value={texts[field.name]} onChange={(event) => set(field.name, event.currentTarget.value)}>{(field.values?.length ? field.values : ["true", "false"]).map((value) => <option key={value}>{value}</option>)}</select>
            : <Entry number={field.type === "number"} value={texts[field.name]} change={(text) => set(field.name, text)} />}
        </Field>
      ))}
    </Ask>
  );
}
