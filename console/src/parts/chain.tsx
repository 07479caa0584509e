// A chain of objects to the cause, as links.

import type { Step } from "../api/console";
import { objectAddress } from "../pure/routes";
import { t } from "../texts";

export function ObjectLink({ target, tab = "" }: { target: { apiVersion: string; kind: string; resource?: string; namespace?: string | null; name: string }; tab?: string }) {
  const text = <><span class="kind-tag">{target.kind}</span>{target.name}</>;
  return target.resource ? <a class="object-link" href={objectAddress({ ...target, resource: target.resource }, tab)}>{text}</a> : <span class="object-link">{text}</span>;
}

export function Chain({ steps }: { steps: Step[] }) {
  return (
    <ol class="chain" aria-label={t("why.chain")}>
      {steps.map((step, index) => (
        <li key={index}><ObjectLink target={step} tab="why" />{index === steps.length - 1 && <span class="cause-tag">{t("why.cause")}</span>}</li>
      ))}
    </ol>
  );
}
