"""How the console shows what `konverge.explain` found: references, healths and chains as the browser gets them."""

from __future__ import annotations

from typing import Any

from konverge.client import ClientError, Unauthorized
from konverge.explain import Answer, Gatherer, Health, Ref
from konverge.objects.resource import Resource

View = dict[str, Any]
HEALTHS = {
    Health.READY: "ok",
    Health.PROGRESSING: "waiting",
    Health.WAITING: "waiting",
    Health.FAILED: "broken",
    Health.UNKNOWN: "unknown",
}


class Kinds:
    """The resources of references, each looked up once. What is not served any more has a guessed plural."""

    def __init__(self, gatherer: Gatherer) -> None:
        self._gatherer = gatherer
        self._known: dict[tuple[str, str], Resource] = {}

    async def of(self, ref: Ref) -> Resource:
        key = (ref.group, ref.kind)
        resource = self._known.get(key)
        if resource is None:
            try:
                resource = await self._gatherer.resource_of(ref)
            except Unauthorized:
                raise
            except ClientError:
                resource = Resource(ref.group, "v1", ref.kind, f"{ref.kind.lower()}s", bool(ref.namespace))
            self._known[key] = resource
        return resource

    async def shown(self, ref: Ref) -> View:
        """A reference in full."""
        resource = await self.of(ref)
        return {
            "apiVersion": resource.api_version,
            "kind": ref.kind,
            "resource": resource.plural,
            "namespace": ref.namespace,
            "name": ref.name,
        }


async def explained(answer: Answer, kinds: Kinds) -> View:
    """An answer to why."""
    return {
        **await kinds.shown(answer.ref),
        "sentence": answer.sentence,
        "health": HEALTHS[answer.health],
        "chain": [
            {**await kinds.shown(step.ref), "sentence": step.says, "health": HEALTHS[step.health]}
            for step in answer.chain
        ],
        "cause": answer.cause,
        "advice": answer.advice or None,
        "container": answer.container or None,
        "log": answer.log,
        "unread": answer.unread,
    }
