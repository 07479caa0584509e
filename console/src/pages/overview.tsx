// The first page: what is wrong, the sickest first, each with its cause; then everything that there is.

import { useEffect, useState } from "preact/hooks";
import * as api from "../api/console";
import { poll } from "../api/watch";
import { Chain } from "../parts/chain";
import { Loading, Mark, Problem } from "../parts/basics";
import { severity, type Health } from "../pure/health";
import { kindAddress, objectAddress } from "../pure/routes";
import { says, t } from "../texts";

const worst = (kind: api.KindCount): Health => (kind.broken ? "broken" : kind.waiting ? "waiting" : "ok");

const isCustom = (kind: api.KindCount): boolean => kind.group.includes(".") && !kind.group.endsWith(".k8s.io");

/** The sickest first, then what operators brought, then the rest. Kinds without an object are left out. */
export function ordered(kinds: api.KindCount[]): api.KindCount[] {
  return kinds.filter((kind) => kind.count > 0).sort((a, b) =>
    severity(worst(b)) - severity(worst(a)) || Number(isCustom(b)) - Number(isCustom(a)) || a.kind.localeCompare(b.kind));
}

export function Overview() {
  const [known, setKnown] = useState<api.Overview | null>(null);
  const [error, setError] = useState<unknown>(null);
  useEffect(() => poll(5000, async (signal) => {
    try {
      setKnown(await api.overview(signal));
      setError(null);
    } catch (problem) {
      if (!signal.aborted) setError(problem);
    }
  }), []);
  if (!known) return error ? <Problem error={error} /> : <Loading />;
  const problems = [...known.problems].sort((a, b) => severity(b.health) - severity(a.health));
  return (
    <div class="overview">
      <h1>{t("over.title")}</h1>
      <section aria-label={t("over.problems")}>
        <h2>{t("over.problems")} {problems.length ? <span class="count">{problems.length}</span> : null}</h2>
        {problems.length ? <ol class="problems">{problems.map((problem) => <Card key={addressOf(problem)} problem={problem} />)}</ol> : (
          <div class="fine"><Mark health="ok" size={28} /><div><strong>{t("over.none")}</strong><p class="quiet">{t("over.noneMore")}</p></div></div>
        )}
      </section>
      <section aria-label={t("over.kinds")}>
        <h2>{t("over.kinds")}</h2>
        <ul class="kinds">
          {ordered(known.kinds).map((kind) => (
            <li key={kind.apiVersion + kind.kind}>
              <a href={kindAddress(kind)}>
                <Mark health={worst(kind)} />
                <span class="kind-name">{kind.kind}<small>{kind.group}</small></span>
                <span class="kind-count">{kind.count}</span>
                <span class="kind-state">
                  {kind.broken > 0 && <span class="text-broken">{t("over.broken", { count: kind.broken })}</span>}
                  {kind.waiting > 0 && <span class="text-waiting">{t("over.waiting", { count: kind.waiting })}</span>}
                  {!kind.broken && !kind.waiting && <span class="quiet">{t("over.healthy")}</span>}
                </span>
              </a>
            </li>
          ))}
        </ul>
      </section>
    </div>
  );
}

const addressOf = (problem: api.Why): string => (problem.chain[0] ? objectAddress(problem.chain[0], "why") : problem.sentence);

function Card({ problem }: { problem: api.Problem }) {
  const first = problem.chain[0];
  const sentence = says(problem.sentence, problem.parts?.sentence);
  return (
    <li class={`card ${problem.health}`}>
      <Mark health={problem.health} size={16} />
      <div>
        <p class="sentence">{first ? <a href={objectAddress(first, "why")}>{sentence}</a> : sentence}</p>
        {problem.chain.length > 1 && <Chain steps={problem.chain} />}
        {problem.others ? <p class="quiet small">{problem.others === 1 ? t("over.affectsOne") : t("over.affects", { count: problem.others })}</p> : null}
        {problem.advice && <p class="advice"><strong>{t("why.advice")}</strong> {says(problem.advice, problem.parts?.advice)}</p>}
      </div>
    </li>
  );
}
