// The cards that an operator declares for its objects: values, tables, records, conditions, links.

import type { PageCard } from "../api/console";
import type { KubeObject } from "../api/object";
import { fieldAt, isEmpty, isWebAddress, itemsOf, textOf } from "../pure/fields";
import { wordHealth } from "../pure/health";
import { Conditions, conditionsOf } from "../tabs/summary";
import { t } from "../texts";
import { Age, Pairs, Status } from "./basics";

/** Characters of a value that stay on one line. */
const ON_ONE_LINE = 60;
const isLong = (value: unknown): boolean => textOf(value).length > ON_ONE_LINE;

export function Value({ value, type = "" }: { value: unknown; type?: string }) {
  const text = textOf(value);
  if (type === "bool" || typeof value === "boolean") return <>{value === true ? "✓" : "✗"}</>; // what is false may be left out
  if (!text) return <span class="quiet">–</span>;
  if (type === "age" || type === "date" || type === "time") return <Age from={text} />;
  const health = type === "state" || type === "status" || type === "phase" || type === "health" ? wordHealth(text) : null;
  return health ? <Status health={health}>{text}</Status> : <>{text}</>;
}

export function Cards({ cards, object }: { cards: PageCard[]; object: KubeObject }) {
  const isValue = (card: PageCard) => (card.type ?? "value") === "value";
  const values = cards.filter(isValue);
  return (
    <>
      {values.length > 0 && <ul class="tiles">{values.map((card) => <li key={card.title}><span>{card.title}</span><strong><Value value={fieldAt(object, card.path)} type="state" /></strong></li>)}</ul>}
      {cards.filter((card) => !isValue(card)).map((card) => <Card key={card.title} card={card} object={object} />)}
    </>
  );
}

function Card({ card, object }: { card: PageCard; object: KubeObject }) {
  if (card.type === "conditions") {
    const conditions = card.path ? itemsOf(fieldAt(object, card.path)) : conditionsOf(object);
    return conditions.length ? <Conditions conditions={conditions as never} /> : null;
  }
  if (card.type === "record") return <RecordCard card={card} value={fieldAt(object, card.path)} />;
  const items = itemsOf(fieldAt(object, card.path));
  if (card.type === "links") {
    return <section><h2>{card.title}</h2><ul>{items.map((item, index) => {
      const text = textOf(item);
      return <li key={index}>{isWebAddress(text) ? <a href={text} target="_blank" rel="noreferrer noopener">{text}</a> : <code>{text}</code>}</li>;
    })}</ul></section>;
  }
  return <TableCard card={card} items={items} />;
}

function TableCard({ card, items }: { card: PageCard; items: unknown[] }) {
  const columns = card.columns ?? [];
  const rows = items.filter((item) => !columns.length || textOf(fieldAt(item, columns[0].path))); // a list may hold other things too
  return (
    <section><h2>{card.title}</h2>
      {rows.length ? (
        <div class="scroll" tabIndex={0} role="group" aria-label={card.title}><table class="plain-table" aria-label={card.title}>
          <thead><tr>{columns.map((column) => <th scope="col" key={column.title}>{column.title}</th>)}</tr></thead>
          <tbody>{rows.map((item, index) => <tr key={index}>{columns.map((column) => <Cell key={column.title} value={fieldAt(item, column.path)} type={column.type} />)}</tr>)}</tbody>
        </table></div>
      ) : <Nothing card={card} />}
    </section>
  );
}

function Cell({ value, type }: { value: unknown; type?: string }) {
  return <td class={isLong(value) ? "wrap" : undefined}><Value value={value} type={type} /></td>;
}

/** One thing with some of its fields, such as an upgrade; those that it does not have are left out. */
function RecordCard({ card, value }: { card: PageCard; value: unknown }) {
  const given = (card.columns ?? []).map((column) => ({ ...column, value: fieldAt(value, column.path) })).filter((field) => !isEmpty(field.value));
  return (
    <section aria-label={card.title}><h2>{card.title}</h2>
      {given.length ? <Pairs items={given.map((field) => [field.title, <span class={isLong(field.value) ? "long" : undefined}><Value value={field.value} type={field.type} /></span>])} /> : <Nothing card={card} />}
    </section>
  );
}

function Nothing({ card }: { card: PageCard }) {
  return <p class="quiet">{card.empty || t("page.nothing")}</p>;
}
