// A new object of any kind, as YAML: with the schema's help, and what the server would make of it before it is created.

import { useEffect, useRef, useState } from "preact/hooks";
import { findKind, type Kind } from "../api/kinds";
import { createFrom } from "../api/object";
import { notify, Problem } from "../parts/basics";
import { Difference } from "../parts/differences";
import { Dialog } from "../parts/dialog";
import { Editor } from "../parts/editor";
import { FieldHelp, useSchema } from "../parts/fieldHelp";
import { pageOf } from "../pure/pages";
import { formatRoute, objectAddress, type Route } from "../pure/routes";
import { helpAt, offersAt } from "../pure/schema";
import { skeleton } from "../pure/skeleton";
import { forPeople, namespaceIn, toYaml, versionIn } from "../pure/yaml";
import { operatorPages } from "../state";
import { t } from "../texts";

type At = Extract<Route, { page: "new" }>;

export function NewObject({ at }: { at: At }) {
  const kind = findKind(at.group, at.version, at.resource);
  if (!kind) return <h1>{t("app.missing")}</h1>;
  return <Writing at={at} kind={kind} />;
}

function Writing({ at, kind }: { at: At; kind: Kind }) {
  const [text, setText] = useState("");
  const first = useRef("");
  const [path, setPath] = useState<string[]>([]);
  const [error, setError] = useState<unknown>(null);
  const [proposal, setProposal] = useState<string | null>(null);
  const { schemas, root } = useSchema(kind);
  const sample = pageOf(operatorPages.value, kind)?.sample;
  useEffect(() => {
    if (text !== first.current) return; // the schema came after the first key
    first.current = toYaml(skeleton(kind, at.namespace, schemas, root, sample));
    setText(first.current);
  }, [schemas, root, kind]);

  const place = () => ({ group: kind.group, version: versionIn(text, kind.group) || kind.version, resource: kind.resource, namespace: kind.namespaced ? namespaceIn(text) || at.namespace || "default" : "" });
  const attempt = async (work: () => Promise<void>) => {
    setError(null);
    try {
      await work();
    } catch (problem) {
      setError(problem);
      setProposal(null);
    }
  };
  const check = () => attempt(async () => setProposal(toYaml(forPeople(await createFrom(place(), text, true)))));
  const create = () => attempt(async () => {
    const { metadata } = await createFrom(place(), text, false);
    notify(t("new.created", { name: metadata.name }));
    location.hash = objectAddress({ apiVersion: kind.apiVersion, resource: kind.resource, namespace: metadata.namespace, name: metadata.name });
  });
  return (
    <div class="yaml-tab">
      <header class="page-head">
        <h1>{t("new.title", { kind: kind.kind })} <small>{kind.apiVersion}</small></h1>
      </header>
      <div class="bar">
        <button type="button" class="main" onClick={check}>{t("new.check")}</button>
        <a class="button" href={formatRoute({ ...at, page: "kind", search: "", labels: "" })}>{t("app.cancel")}</a>
      </div>
      <Problem error={error} />
      <Editor value={text} readOnly={false} label={t("new.title", { kind: kind.kind })} changed={setText}
        at={setPath} offers={(where) => offersAt(schemas, root, where)} />
      <FieldHelp schemas={schemas} path={path} help={helpAt(schemas, root, path)} />
      {proposal !== null && (
        <Dialog title={t("new.proposal")} close={() => setProposal(null)} wide>
          <Difference before={text} after={proposal} />
          <footer>
            <button type="button" onClick={() => setProposal(null)}>{t("app.cancel")}</button>
            <button type="button" class="main" data-first onClick={create}>{t("table.create")}</button>
          </footer>
        </Dialog>
      )}
    </div>
  );
}
