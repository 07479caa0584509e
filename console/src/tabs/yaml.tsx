// The object as YAML: read it, edit it with the schema's help, see what the server would change, apply it.

import { useMemo, useState } from "preact/hooks";
import { ApiError } from "../api/http";
import { replaceWith, type KubeObject } from "../api/object";
import { notify, Problem } from "../parts/basics";
import { Difference } from "../parts/differences";
import { Dialog } from "../parts/dialog";
import { Editor } from "../parts/editor";
import { FieldHelp, useSchema } from "../parts/fieldHelp";
import { helpAt, offersAt } from "../pure/schema";
import { forPeople, toYaml } from "../pure/yaml";
import type { TabProps } from "../pages/object";
import { t } from "../texts";

const versionLine = (object: KubeObject): string => `  resourceVersion: ${JSON.stringify(object.metadata.resourceVersion)}`;

export function YamlTab({ kind, object }: TabProps) {
  const [editing, setEditing] = useState<{ base: string; text: string } | null>(null);
  const [managed, setManaged] = useState(false);
  const [path, setPath] = useState<string[]>([]);
  const [error, setError] = useState<unknown>(null);
  const [proposal, setProposal] = useState<string | null>(null);
  const current = useMemo(() => toYaml(managed ? object : forPeople(object)), [object, managed]);
  const place = { group: kind.group, version: kind.version, resource: kind.resource, namespace: object.metadata.namespace, name: object.metadata.name };
  const { schemas, root } = useSchema(kind);

  const attempt = async (work: () => Promise<void>) => {
    setError(null);
    try {
      await work();
    } catch (problem) {
      setError(problem instanceof ApiError && problem.code === 409 && problem.reason === "Conflict" ? new ApiError(409, t("yaml.conflict"), "Conflict") : problem);
      setProposal(null);
    }
  };
  const check = () => attempt(async () => setProposal(toYaml(forPeople(await replaceWith(place, editing!.text, true)))));
  const apply = () => attempt(async () => {
    await replaceWith(place, editing!.text, false);
    setProposal(null);
    setEditing(null);
    notify(t("yaml.applied"));
  });
  const isConflict = error instanceof ApiError && error.reason === "Conflict";
  // The version that others wrote is followed, not asked for: until it is here, there is nothing to load.
  const isHere = editing !== null && !editing.text.includes(versionLine(object));
  const reload = () => {
    // Only the version moves on: the text stays, and the difference shows what would be overwritten.
    const text = editing!.text.replace(/^ {2}resourceVersion: .*$/m, () => versionLine(object));
    setEditing({ base: current, text });
    setError(null);
  };
  return (
    <div class="yaml-tab">
      <div class="bar">
        {editing ? (
          <>
            <button type="button" class="main" onClick={check}>{t("yaml.check")}</button>
            <button type="button" onClick={() => { setEditing(null); setError(null); }}>{t("yaml.discard")}</button>
            {isConflict && isHere && <button type="button" onClick={reload}>{t("yaml.reload")}</button>}
          </>
        ) : (
          <>
            {kind.verbs.includes("update") && <button type="button" onClick={() => { setManaged(false); const text = toYaml(forPeople(object)); setEditing({ base: text, text }); }}>{t("yaml.edit")}</button>}
            <label class="tick"><input type="checkbox" checked={managed} onChange={(event) => setManaged(event.currentTarget.checked)} /> {t("yaml.managed")}</label>
          </>
        )}
      </div>
      <Problem error={error} />
      <Editor value={editing ? editing.text : current} readOnly={!editing} label={t("yaml.editor", { name: object.metadata.name })}
        changed={(text) => setEditing((old) => old && { ...old, text })} at={setPath} offers={(where) => offersAt(schemas, root, where)} />
      <FieldHelp schemas={schemas} path={path} help={helpAt(schemas, root, path)} />
      {proposal !== null && (
        <Dialog title={t("yaml.difference")} close={() => setProposal(null)} wide>
          <Difference before={toYaml(forPeople(object))} after={proposal} />
          <footer>
            <button type="button" onClick={() => setProposal(null)}>{t("app.cancel")}</button>
            <button type="button" class="main" data-first onClick={apply}>{t("yaml.apply")}</button>
          </footer>
        </Dialog>
      )}
    </div>
  );
}
