// The events about an object, the newest first, live.

import { useEffect, useState } from "preact/hooks";
import { get, withQuery } from "../api/http";
import { poll } from "../api/watch";
import { Age, Loading, Problem, Status } from "../parts/basics";
import type { TabProps } from "../pages/object";
import { t } from "../texts";

interface Event {
  metadata: { uid: string; creationTimestamp?: string };
  type?: string; reason?: string; message?: string; count?: number; lastTimestamp?: string | null; eventTime?: string | null;
  series?: { count?: number; lastObservedTime?: string };
}

const last = (event: Event): string => event.series?.lastObservedTime ?? event.lastTimestamp ?? event.eventTime ?? event.metadata.creationTimestamp ?? "";

export function Events({ object }: TabProps) {
  const [events, setEvents] = useState<Event[] | null>(null);
  const [error, setError] = useState<unknown>(null);
  const { namespace, uid, name } = object.metadata;
  useEffect(() => poll(3000, async (signal) => {
    const path = namespace ? `/k8s/api/v1/namespaces/${encodeURIComponent(namespace)}/events` : "/k8s/api/v1/events";
    const selector = object.kind === "Node" ? `involvedObject.kind=Node,involvedObject.name=${name}` : `involvedObject.uid=${uid}`;
    try {
      const list = await get<{ items: Event[] }>(withQuery(path, { fieldSelector: selector, limit: 500 }), { signal });
      setEvents(list.items.sort((a, b) => last(b).localeCompare(last(a))));
      setError(null);
    } catch (problem) {
      if (!signal.aborted) setError(problem);
    }
  }), [uid]);
  if (error && !events) return <Problem error={error} />;
  if (!events) return <Loading />;
  if (!events.length) return <p class="quiet">{t("object.noEvents")}</p>;
  return (
    <div class="scroll"><table class="plain-table stacks" aria-label={t("object.events")}>
      <thead><tr><th scope="col">{t("object.lastSeen")}</th><th scope="col">{t("object.type")}</th><th scope="col">{t("object.reason")}</th><th scope="col">{t("object.message")}</th><th scope="col" class="numeric">{t("object.count")}</th></tr></thead>
      <tbody>{events.map((event) => (
        <tr key={event.metadata.uid}>
          <td><Age from={last(event)} /></td>
          <td>{event.type === "Normal" ? event.type : <Status health="waiting">{event.type}</Status>}</td>
          <td>{event.reason}</td><td class="wrap">{event.message}</td><td class="numeric" data-label={t("object.count")}>{event.series?.count ?? event.count ?? 1}</td>
        </tr>
      ))}</tbody>
    </table></div>
  );
}
