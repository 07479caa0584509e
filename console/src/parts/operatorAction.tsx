// An action that an operator declares: a merge patch, perhaps with a form whose values go into it.

import { useState } from "preact/hooks";
import type { PageAction, PageField } from "../api/console";
import { mergePatch, type KubeObject } from "../api/object";
import type { Place } from "../api/kinds";
import { fieldAt, stepsOf } from "../pure/fields";
import { t } from "../texts";
import { notify } from "./basics";
import { Ask, Entry, Field } from "./dialog";
import { isWebAddress } from "./cards";

/** The patch with `{name}` replaced by the form's values; a whole `{name}` keeps the value's type. */
export function filledPatch(patch: unknown, values: Record<string, unknown>): unknown {
  if (typeof patch === "string") {
    const whole = /^\{(\w+)\}$/.exec(patch);
    if (whole && whole[1] in values) return values[whole[1]];
    return patch.replace(/\{(\w+)\}/g, (text, name: string) => (name in values ? String(values[name]) : text));
  }
  if (Array.isArray(patch)) return patch.map((item) => filledPatch(item, values));
  if (patch !== null && typeof patch === "object") return Object.fromEntries(Object.entries(patch).map(([key, item]) => [key, filledPatch(item, values)]));
  return patch;
}

/** Put values at the paths of their fields. */
export function patchOf(action: PageAction, values: Record<string, unknown>): unknown {
  const patch = structuredClone(filledPatch(action.patch ?? {}, values)) as Record<string, unknown>;
  for (const field of fieldsOf(action)) {
    const steps = field.path ? stepsOf(field.path) : null;
    if (!steps?.length) continue;
    let place = patch as Record<string | number, any>;
    for (const step of steps.slice(0, -1)) place = place[step] ??= {};
    place[steps[steps.length - 1]] = values[field.name];
  }
  return patch;
}

const fieldsOf = (action: PageAction): PageField[] => (Array.isArray(action.form) ? action.form : []);

function typed(field: PageField, text: string): unknown {
  if (field.type === "integer" || field.type === "number") return text === "" ? null : Number(text);
  if (field.type === "boolean") return text === "true";
  return text === "" && !field.required ? null : text;
}

export function OperatorAction({ action, place, object, close }: { action: PageAction; place: Place; object: KubeObject; close: () => void }) {
  const fields = fieldsOf(action);
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
    await mergePatch(place, patchOf(action, Object.fromEntries(fields.map((field) => [field.name, typed(field, texts[field.name])]))));
    notify(t("page.done", { title: action.title }));
  };
  return (
    <Ask title={`${action.title}: ${object.metadata.name}`} button={action.title} close={close} work={work} disabled={fields.some((field) => field.required && !texts[field.name])}>
      {typeof action.confirm === "string" && <p>{action.confirm}</p>}
      {fields.map((field) => (
        <Field key={field.name} label={field.title ?? field.name}>
          {field.values || field.type === "boolean"
            ? <select value={texts[field.name]} onChange={(event) => set(field.name, event.currentTarget.value)}>{(field.values ?? ["true", "false"]).map((value) => <option key={value}>{value}</option>)}</select>
            : <Entry number={field.type === "integer" || field.type === "number"} value={texts[field.name]} change={(text) => set(field.name, text)} />}
        </Field>
      ))}
    </Ask>
  );
}
