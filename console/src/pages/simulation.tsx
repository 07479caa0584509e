// The simulated cluster: its nodes and clock, faults to try, a recording that becomes a test.

import { useEffect, useState } from "preact/hooks";
import * as api from "../api/console";
import { ApiError } from "../api/http";
import { poll } from "../api/watch";
import { ahead, Loading, notify, Pairs, Problem, save, Status } from "../parts/basics";
import { Dialog, Entry, Field } from "../parts/dialog";
import { fullTime } from "../pure/times";
import { language, t, titled } from "../texts";

export function Simulation() {
  const [known, setKnown] = useState<api.Simulation | null>(null);
  const [error, setError] = useState<unknown>(null);
  const [turn, setTurn] = useState(0);
  useEffect(() => poll(3000, async (signal) => {
    try {
      const simulation = await api.simulation(signal);
      ahead.value = simulation.clock.ahead ?? 0;
      setKnown(simulation);
      setError(null);
    } catch (problem) {
      if (!signal.aborted) setError(problem);
    }
  }), [turn]);
  if (!known) {
    if (error instanceof ApiError && error.code === 404) return <><h1>{t("sim.title")}</h1><p>{t("sim.none")}</p></>;
    return error ? <Problem error={error} /> : <Loading />;
  }
  const again = () => setTurn((count) => count + 1);
  return (
    <div class="simulation">
      <h1>{t("sim.title")}</h1>
      <Pairs items={[
        [t("sim.clock"), `${fullTime(typeof known.clock.now === "number" ? new Date(known.clock.now * 1000).toISOString() : known.clock.now, language.value)} (${known.clock.virtual ? t("sim.virtual") : t("sim.real")}${known.clock.ahead ? `, ${t("sim.ahead", { seconds: known.clock.ahead })}` : ""})`],
        [t("sim.seed"), typeof known.seed === "number" ? <Seed seed={known.seed} /> : null],
        [t("sim.nodes"), <ul class="labels">{known.nodes.map((node) => {
          const { name, ready = true } = node;
          return <li key={name}><a href={`#/o/-/v1/nodes/-/${encodeURIComponent(name)}`}><Status health={ready ? "ok" : "broken"}>{name}</Status></a></li>;
        })}</ul>],
      ]} />
      <section><h2>{t("sim.faults")}</h2><ul class="faults">{known.faults.map((fault) => <FaultCard key={fault.name} fault={fault} done={again} />)}</ul></section>
      <Recording recording={known.recording} done={again} />
    </div>
  );
}

/** The number that the chances of the simulation come from, to be given to `konverge up --seed` or a test. */
function Seed({ seed }: { seed: number }) {
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(String(seed));
      notify(t("sim.copied", { seed }));
    } catch { // not every browser and address allows it
      notify(t("sim.notCopied"));
    }
  };
  return <>{seed} <button type="button" class="link" aria-label={t("sim.copySeed", { seed })} onClick={copy}>{t("sim.copy")}</button></>;
}

function FaultCard({ fault, done }: { fault: api.Fault; done: () => void }) {
  const first = (parameter: api.FaultParameter) => String(parameter.default ?? parameter.values?.[0] ?? "");
  const [texts, setTexts] = useState<Record<string, string>>({});
  const [error, setError] = useState<unknown>(null);
  const title = titled("fault", fault.name, fault.title);
  const textOf = (parameter: api.FaultParameter) => texts[parameter.name] ?? first(parameter);
  const isNumber = (parameter: api.FaultParameter) => parameter.type === "number";
  const submit = async (event: Event) => {
    event.preventDefault();
    setError(null);
    const body = Object.fromEntries(fault.parameters.map((parameter) => [parameter.name, isNumber(parameter) && textOf(parameter) !== "" ? Number(textOf(parameter)) : textOf(parameter)]));
    try {
      await api.fault(fault.name, body);
      notify(t("sim.injected", { title }));
      done();
    } catch (problem) {
      setError(problem);
    }
  };
  return (
    <li><form onSubmit={submit} aria-label={title}>
      <h3>{title}</h3>
      {fault.description && <p class="quiet">{fault.description}</p>}
      {fault.parameters.map((parameter) => (
        <Field key={parameter.name} label={titled("parameter", parameter.title ?? parameter.name, parameter.title ?? parameter.name)}>
          {parameter.values || parameter.type === "select"
            ? <select value={textOf(parameter)} onChange={(event) => setTexts((old) => ({ ...old, [parameter.name]: event.currentTarget.value }))}>{(parameter.values ?? []).map((value) => <option key={value}>{value}</option>)}</select>
            : <Entry number={isNumber(parameter)} value={textOf(parameter)} change={(text) => setTexts((old) => ({ ...old, [parameter.name]: text }))} />}
        </Field>
      ))}
      <Problem error={error} />
      <button type="submit" disabled={fault.parameters.some((parameter) => parameter.type === "select" && !parameter.values?.length)}>{t("sim.inject")}</button>
    </form></li>
  );
}

function Recording({ recording, done }: { recording: api.Simulation["recording"]; done: () => void }) {
  const [test, setTest] = useState<string | null>(null);
  const [error, setError] = useState<unknown>(null);
  const attempt = async (work: () => Promise<unknown>) => {
    setError(null);
    try {
      await work();
      done();
    } catch (problem) {
      setError(problem);
    }
  };
  const steps = Array.isArray(recording.steps) ? recording.steps.length : recording.steps;
  return (
    <section><h2>{t("sim.recording")}</h2>
      <p class="quiet">{t("sim.about")}</p>
      <Problem error={error} />
      <div class="bar">
        <button type="button" class={recording.active ? "" : "main"} onClick={() => attempt(() => api.record(!recording.active))}>{recording.active ? t("sim.stop") : t("sim.start")}</button>
        <button type="button" disabled={!steps} onClick={() => attempt(async () => setTest(await api.recordedTest()))}>{t("sim.test")}</button>
        <span role="status">{recording.active && <Status health="waiting">{t("sim.steps", { count: steps })}</Status>}{!recording.active && steps > 0 && t("sim.steps", { count: steps })}</span>
      </div>
      {test !== null && (
        <Dialog title={t("sim.test")} close={() => setTest(null)} wide>
          <pre class="log" tabIndex={0}>{test}</pre>
          <footer><button type="button" class="main" data-first onClick={() => save("test_recorded.py", test)}>{t("sim.save")}</button></footer>
        </Dialog>
      )}
    </section>
  );
}
