// The form for a new Nacos. The cluster validates it, and its refusals are shown at the fields.

import type { ComponentChildren } from "preact";
import { useRef, useState } from "preact/hooks";
import { ApiError, send, withQuery } from "../api/http";
import { apiPath } from "../api/kinds";
import { Problem } from "../parts/basics";
import { Dialog, Entry } from "../parts/dialog";
import { EMPTY_FORM, inputOf, nacosOf, type NacosForm } from "../pure/nacosForm";
import { formatRoute, objectAddress, splitVersion } from "../pure/routes";
import { forPeople, toYaml } from "../pure/yaml";
import { operatorPages } from "../state";
import { t, type Key } from "../texts";

export function CreateNacos() {
  const page = operatorPages.value.find((entry) => entry.create?.form === "nacos");
  const versions = page?.create?.versions ?? [];
  const chosen = versions.find((entry) => entry.default) ?? versions[0];
  const [form, setForm] = useState<NacosForm>({ ...EMPTY_FORM, version: chosen?.version ?? "", image: chosen?.image ?? "" });
  const [error, setError] = useState<unknown>(null);
  const [proposal, setProposal] = useState<string | null>(null);
  const element = useRef<HTMLFormElement>(null);
  const wrong = new Map<keyof NacosForm, string>();
  if (error instanceof ApiError) {
    for (const cause of error.causes) {
      const input = inputOf(cause.field ?? "");
      if (input) wrong.set(input, cause.message ?? "");
    }
  }
  const set = (name: keyof NacosForm, value: string) => setForm((old) => ({
    ...old, [name]: value, ...(name === "version" ? { image: versions.find((entry) => entry.version === value)?.image ?? "" } : {}),
  }));
  const apiVersion = page?.apiVersion ?? "nacos.io/v1alpha1";
  const resource = page?.resource ?? "nacos";
  const namespace = form.namespace.trim();
  const post = (dryRun: boolean) => send(withQuery(apiPath({ ...splitVersion(apiVersion), resource, namespace }), { dryRun: dryRun ? "All" : "" }), { method: "POST", body: nacosOf(form, apiVersion) });
  const attempt = async (work: () => Promise<void>) => {
    setError(null);
    setProposal(null);
    try {
      await work();
    } catch (problem) {
      setError(problem);
      setTimeout(() => element.current?.querySelector<HTMLElement>("[aria-invalid=true]")?.focus());
    }
  };
  const input = (name: keyof NacosForm, label: Key, more: { number?: boolean; hint?: Key; placeholder?: string; required?: boolean } = {}) => (
    <Labelled name={name} label={t(label)} wrong={wrong.get(name)}>
      <Entry id={`nacos-${name}`} number={more.number} value={form[name]} required={more.required} placeholder={more.hint ? t(more.hint) : more.placeholder}
        invalid={wrong.has(name)} describedBy={wrong.has(name) ? `nacos-${name}-wrong` : undefined} change={(text) => set(name, text)} />
    </Labelled>
  );
  const select = (name: keyof NacosForm, label: Key, options: [string, string][]) => (
    <Labelled name={name} label={t(label)} wrong={wrong.get(name)}>
      <select id={`nacos-${name}`} value={form[name]} aria-invalid={wrong.has(name)} onChange={(event) => set(name, event.currentTarget.value)}>
        {options.map(([value, text]) => <option key={value} value={value}>{text}</option>)}
      </select>
    </Labelled>
  );
  const submit = (event: Event) => {
    event.preventDefault();
    void attempt(async () => {
      await post(false);
      location.hash = objectAddress({ apiVersion, resource, namespace, name: form.name.trim() });
    });
  };
  const check = () => attempt(async () => setProposal(toYaml(forPeople(await (await post(true)).json()))));
  return (
    <form class="create" ref={element} onSubmit={submit} aria-label={t("create.title")}>
      <h1>{t("create.title")}</h1>
      {wrong.size ? <div role="alert" class="unseen">{[...wrong.values()].join(" ")}</div> : <Problem error={error} />}
      <fieldset><legend>{t("create.what")}</legend><div class="inputs">
        {input("name", "create.name", { required: true })}{input("namespace", "create.namespace", { required: true })}
        {select("type", "create.type", [["standalone", t("create.standalone")], ["cluster", t("create.cluster")]])}
        {form.type === "cluster" && input("replicas", "create.servers", { number: true })}
        {versions.length > 0 && select("version", "create.version", versions.map((entry) => [entry.version, entry.version]))}
      </div></fieldset>
      <fieldset><legend>{t("create.quota")}</legend><div class="inputs">
        {input("cpuRequest", "create.cpuRequest", { placeholder: "500m" })}{input("cpuLimit", "create.cpuLimit", { placeholder: "1" })}
        {input("memoryRequest", "create.memoryRequest", { placeholder: "1Gi" })}{input("memoryLimit", "create.memoryLimit", { placeholder: "2Gi" })}
      </div></fieldset>
      <fieldset><legend>{t("create.storage")}</legend><div class="inputs">
        {select("database", "create.database", [["embedded", t("create.embedded")], ["mysql", "MySQL"], ["postgresql", "PostgreSQL"]])}
        {form.database !== "embedded" && <>
          {input("host", "create.host")}{input("port", "create.port", { placeholder: form.database === "mysql" ? "3306" : "5432" })}
          {input("schema", "create.schema")}{input("secret", "create.secret")}
        </>}
        {input("size", "create.volume", { hint: "create.volumeHint" })}{input("storageClass", "create.storageClass", { hint: "create.storageClassHint" })}
      </div></fieldset>
      <div class="bar">
        <button type="submit" class="main">{t("create.button")}</button>
        <button type="button" onClick={() => element.current?.reportValidity() && void check()}>{t("new.check")}</button>
        <span class="gap" />
        <a class="button" href={formatRoute({ page: "new", ...splitVersion(apiVersion), resource, namespace })}>{t("object.yaml")}</a>
      </div>
      {proposal !== null && <Dialog title={t("new.proposal")} close={() => setProposal(null)} wide><pre class="log" tabIndex={0}>{proposal}</pre></Dialog>}
    </form>
  );
}

function Labelled({ name, label, wrong, children }: { name: string; label: string; wrong?: string; children: ComponentChildren }) {
  return (
    <div class="field"><label for={`nacos-${name}`}>{label}</label>{children}{wrong !== undefined && <p class="wrong" id={`nacos-${name}-wrong`}>{wrong}</p>}</div>
  );
}
