// Why the object is as it is: one sentence, the chain to the cause, what to do about it.

import { Loading, Mark, Problem } from "../parts/basics";
import { ObjectLink } from "../parts/chain";
import type { TabProps } from "../pages/object";
import { says, t } from "../texts";

export function WhyTab({ why, whyError }: TabProps) {
  if (!why) return whyError ? <Problem error={whyError} /> : <Loading />;
  return (
    <div class="why">
      <p class={`verdict ${why.health}`}><Mark health={why.health} size={20} /><span>{says(why.sentence, why.parts?.sentence)}</span></p>
      {why.chain.length > 1 && (
        <>
          <h2>{t("why.chain")}</h2>
          <ol class="links">
            {why.chain.map((step, index) => (
              <li key={index} class={index === why.chain.length - 1 ? "cause" : ""}>
                <ObjectLink target={step} tab="why" />
                {index === why.chain.length - 1 && <span class="cause-tag">{t("why.cause")}</span>}
                <p>{says(step.sentence, step.parts?.sentence)}</p>
              </li>
            ))}
          </ol>
        </>
      )}
      {why.advice && <section class="advice-box"><h2>{t("why.advice")}</h2><p>{says(why.advice, why.parts?.advice)}</p></section>}
      {why.unread && why.unread.length > 0 && <section class="quiet"><p>{t("why.unread")}</p><ul>{why.unread.map((text, index) => <li key={text}>{says(text, why.parts?.unread[index])}</li>)}</ul></section>}
      {why.log && why.log.length > 0 && <section><h2>{t("why.log", { container: why.container ?? "" })}</h2><pre class="log" tabIndex={0}>{why.log.join("\n")}</pre></section>}
    </div>
  );
}
