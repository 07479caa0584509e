// All objects of a kind, live, with the columns that the server gives.

import { useEffect, useMemo, useState } from "preact/hooks";
import type { ApiError } from "../api/http";
import { apiPath, findKind, type Kind } from "../api/kinds";
import { followTable, type Connection } from "../api/watch";
import { Age, Missing, Problem, Status } from "../parts/basics";
import { Grid, type GridColumn } from "../parts/grid";
import { NamespacePicker } from "../parts/namespaces";
import { isStateColumn, rowHealth, severity, wordHealth } from "../pure/health";
import { formatRoute, type Route } from "../pure/routes";
import { NO_ROWS, shown, type Row, type Rows, type Sort } from "../pure/rows";
import { pageOf } from "../pure/pages";
import { operatorPages, replaceAddress } from "../state";
import { t, type Key } from "../texts";

type At = Extract<Route, { page: "kind" }>;

export function KindPage({ at }: { at: At }) {
  const kind = findKind(at.group, at.version, at.resource);
  if (!kind) return <Missing />;
  return <Listing at={at} kind={kind} />;
}

function columnsOf(state: Rows, kind: Kind, everywhere: boolean, wide: boolean): GridColumn<Row>[] {
  const columns: GridColumn<Row>[] = [];
  const nameAt = state.columns.findIndex((column) => column.format === "name" || column.name === "Name");
  columns.push({ id: String(nameAt), title: t("table.name"), width: "minmax(11rem, 2.2fr)", narrow: true, share: 12, cell: (row) => row.name });
  if (kind.namespaced && everywhere) columns.push({ id: "-1", title: t("table.namespace"), width: "minmax(6rem, 1fr)", cell: (row) => row.namespace });
  state.columns.forEach((column, index) => {
    if (index === nameAt || (column.priority > 0 && !wide)) return;
    const isAge = column.name === "Age" || column.name === "Created At";
    const isState = isStateColumn(column);
    columns.push({
      id: String(index), title: column.name, description: column.description, width: isAge ? "5rem" : isState ? `minmax(${roomFor(state, index)}rem, 1fr)` : "minmax(4.5rem, 1fr)",
      narrow: isState, share: isState ? Math.min(roomFor(state, index), 10) : undefined, numeric: column.type === "integer" || column.type === "number",
      cell: (row) => (isAge && row.created ? <Age from={row.created} /> : isState ? <StateCell text={String(row.cells[index] ?? "")} well={severity(rowHealth(state.columns, row.cells, row.deleting) ?? "unknown") === 0} /> : String(row.cells[index] ?? "")),
    });
  });
  return columns;
}

/** What the longest state needs (with its mark), between two bounds: `0/1` little, `CrashLoopBackOff` all of it. */
function roomFor(state: Rows, index: number): number {
  const longest = Math.max(...[...state.rows.values()].slice(0, 500).map((row) => String(row.cells[index] ?? "").length), 0);
  return Math.min(16, Math.max(4.5, 2 + longest * 0.52));
}

function StateCell({ text, well }: { text: string; well: boolean }) {
  const health = wordHealth(text);
  return health && health !== "ok" && (!well || health === "asleep") ? <Status health={health}>{text}</Status> : <>{text}</>;
}

function Listing({ at, kind }: { at: At; kind: Kind }) {
  const [state, setState] = useState<{ rows: Rows; turn: number }>({ rows: NO_ROWS, turn: 0 });
  const [connection, setConnection] = useState<Connection>("loading");
  const [error, setError] = useState<ApiError | null>(null);
  const [sort, setSort] = useState<Sort>({ column: -1, descending: false });
  const [wide, setWide] = useState(false);
  const [search, setSearch] = useState(at.search);
  const [labels, setLabels] = useState(at.labels);
  useEffect(() => {
    setError(null);
    setState({ rows: NO_ROWS, turn: 0 });
    const parameters: Record<string, string> = at.labels ? { labelSelector: at.labels } : {};
    const path = apiPath({ group: kind.group, version: kind.version, resource: kind.resource, namespace: kind.namespaced ? at.namespace : "" });
    return followTable(path, parameters, {
      rows: (rows) => setState((old) => ({ rows, turn: old.turn + 1 })), connection: setConnection, refused: setError,
    });
  }, [kind, at.namespace, at.labels]);
  useEffect(() => setSearch(at.search), [at.search]);
  useEffect(() => setLabels(at.labels), [at.labels]);

  const columns = useMemo(() => columnsOf(state.rows, kind, !at.namespace, wide), [state.rows.columns, kind, at.namespace, wide, t("table.name")]);
  const rows = useMemo(() => shown(state.rows, search, sort), [state, search, sort]);
  const change = (part: Partial<At>) => replaceAddress(formatRoute({ ...at, ...part }));
  const form = pageOf(operatorPages.value, kind)?.create?.form;
  const sortBy = (id: string) => setSort((old) => ({ column: Number(id), descending: old.column === Number(id) && !old.descending }));
  return (
    <div class="listing">
      <header class="page-head">
        <h1>{kind.kind} <small>{kind.apiVersion}</small></h1>
        <span class={`connection ${connection}`} role="status">{t(`table.${connection}` as Key)}</span>
        <span class="quiet">{t("table.count", { count: rows.length, all: state.rows.rows.size })}</span>
        <span class="gap" />
        {form ? <a class="button main" href={formatRoute({ page: "create", form })}>{t("table.create")}</a>
          : kind.verbs.includes("create") && <a class="button" href={formatRoute({ page: "new", group: kind.group, version: kind.version, resource: kind.resource, namespace: at.namespace })}>{t("table.create")}</a>}
      </header>
      <form class="filters" role="search" onSubmit={(event) => event.preventDefault()}>
        {kind.namespaced && <NamespacePicker chosen={at.namespace} choose={(namespace) => change({ namespace })} />}
        <label class="field"><span>{t("table.search")}</span>
          <input type="search" value={search} spellcheck={false} onInput={(event) => { setSearch(event.currentTarget.value); change({ search: event.currentTarget.value }); }} /></label>
        <label class="field"><span>{t("table.labels")}</span>
          <input type="text" value={labels} placeholder={t("table.labelsHint")} spellcheck={false} onInput={(event) => setLabels(event.currentTarget.value)}
            onKeyDown={(event) => { if (event.key === "Enter") change({ labels: labels.trim() }); }} onBlur={() => change({ labels: labels.trim() })} /></label>
        <label class="tick"><input type="checkbox" checked={wide} onChange={(event) => setWide(event.currentTarget.checked)} /> {t("table.wide")}</label>
      </form>
      {error ? <><Problem error={error} />{error.code === 403 && kind.namespaced && !at.namespace && <p>{t("table.chooseNamespace")}</p>}</> : (
        <Grid label={kind.kind} columns={columns} rows={rows} keyOf={(row) => row.key} sort={{ id: String(sort.column), descending: sort.descending }} sortBy={sortBy}
          href={(row) => formatRoute({ page: "object", group: kind.group, version: kind.version, resource: kind.resource, namespace: row.namespace, name: row.name, tab: "" })}
          health={(row) => rowHealth(state.rows.columns, row.cells, row.deleting)}
          empty={connection === "loading" ? t("app.loading") : state.rows.rows.size ? t("table.noMatch") : t("table.empty")} />
      )}
    </div>
  );
}
