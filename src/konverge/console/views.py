"""How the console shows what `konverge.explain` found: references, healths and chains as the browser gets them."""

from __future__ import annotations

from typing import Any

from konverge.client import ClientError, Unauthorized
from konverge.explain import Answer, Gatherer, Health, Ref
from konverge.explain.sentences import parts
from konverge.objects.resource import Resource

View = dict[str, Any]
HEALTHS = {
    Health.READY: "ok",
    Health.PROGRESSING: "waiting",
    Health.WAITING: "waiting",
    Health.FAILED: "broken",
    Health.UNKNOWN: "unknown",
}


ASLEEP = "asleep"
"""Ready, and doing nothing, because its user wants it so."""


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


def said(**texts: str | list[str]) -> View:
    """Texts of the engine in English, and under `parts` what a page needs to say them in another language.

    >>> from konverge.explain.sentences import say
    >>> said(sentence=say("is ready"))
    {'sentence': 'is ready', 'parts': {'sentence': {'say': 'is ready', 'with': {}}}}
    """
    plain = {
        name: [str(text) for text in each] if isinstance(each, list) else str(each) for name, each in texts.items()
    }
    data = {
        name: [parts(text) for text in each] if isinstance(each, list) else parts(each) for name, each in texts.items()
    }
    return {**plain, "parts": data}


async def explained(answer: Answer, kinds: Kinds) -> View:
    """An answer to why."""
    return {
        **await kinds.shown(answer.ref),
        **said(sentence=answer.sentence, advice=answer.advice, unread=answer.unread),
        "health": ASLEEP if answer.at_rest else HEALTHS[answer.health],
        "chain": [
            {**await kinds.shown(step.ref), **said(sentence=step.says), "health": HEALTHS[step.health]}
            for step in answer.chain
        ],
        "advice": str(answer.advice) or None,
        "cause": answer.cause,
        "container": answer.container or None,
        "log": answer.log,
    }
