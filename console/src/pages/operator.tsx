// An operator's own page: its objects with the columns that it declares.

import { useEffect, useState } from "preact/hooks";
import type { OperatorPage as Declaration } from "../api/console";
import { get } from "../api/http";
import { apiPath, findKind } from "../api/kinds";
import type { KubeObject } from "../api/object";
import { poll } from "../api/watch";
import { Loading, Problem } from "../parts/basics";
import { Value } from "../parts/cards";
import { lazy } from "../parts/lazy";
import { fieldAt } from "../pure/fields";
import { formatRoute, kindAddress, objectAddress, splitVersion } from "../pure/routes";
import { operatorPages } from "../state";
import { t } from "../texts";

const LoadPlots = lazy(() => import("../parts/loadPlots").then((module) => module.LoadPlots));

export function OperatorPage({ name }: { name: string }) {
  const page = operatorPages.value.find((entry) => entry.name === name);
  return page ? <Shown page={page} /> : <h1>{t("app.missing")}</h1>;
}

function Shown({ page }: { page: Declaration }) {
  const [objects, setObjects] = useState<KubeObject[] | null>(null);
  const [error, setError] = useState<unknown>(null);
  const { group, version } = splitVersion(page.apiVersion);
  const kind = findKind(group, version, page.resource);
  useEffect(() => poll(3000, async (signal) => {
    try {
      const list = await get<{ items: KubeObject[] }>(apiPath({ group, version: kind?.version ?? version, resource: page.resource }), { signal });
      setObjects(list.items);
      setError(null);
    } catch (problem) {
      if (!signal.aborted) setError(problem);
    }
  }), [page.name]);
  return (
    <div class="operator">
      <header class="page-head"><h1>{page.title}</h1><span class="gap" />
        <a href={kindAddress({ apiVersion: page.apiVersion, resource: page.resource })}>{page.kind}</a>
        {page.create ? <a class="button main" href={formatRoute({ page: "create", form: page.create.form })}>{t("table.create")}</a>
          : kind?.verbs.includes("create") && <a class="button main" href={formatRoute({ page: "new", group, version: kind.version, resource: kind.resource, namespace: "" })}>{t("table.create")}</a>}
      </header>
      {error ? <Problem error={error} /> : null}
      {!objects ? !error && <Loading /> : !objects.length ? <p class="quiet">{t("page.none")}</p> : (
        <div class="scroll" tabIndex={0} role="group" aria-label={page.title}><table class="plain-table" aria-label={page.title}>
          <thead><tr><th scope="col">{t("table.name")}</th><th scope="col">{t("table.namespace")}</th>{page.columns.map((column) => <th scope="col" key={column.title}>{column.title}</th>)}</tr></thead>
          <tbody>{objects.map((object) => (
            <tr key={object.metadata.uid}>
              <td><a href={objectAddress({ apiVersion: page.apiVersion, resource: page.resource, namespace: object.metadata.namespace, name: object.metadata.name })}>{object.metadata.name}</a></td>
              <td>{object.metadata.namespace}</td>
              {page.columns.map((column) => <td key={column.title}><Value value={fieldAt(object, column.path)} type={column.type} /></td>)}
            </tr>
          ))}</tbody>
        </table></div>
      )}
      <LoadPlots kind={group ? `${page.kind}.${group}` : page.kind} />
    </div>
  );
}
