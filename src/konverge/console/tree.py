"""`/console/v1/tree` and `/console/v1/why`: an object with all that belongs to it, and the chain to the cause."""

from __future__ import annotations

from konverge.console.answers import json_answer
from konverge.console.call import Call
from konverge.console.views import ASLEEP, HEALTHS, Kinds, View, explained, said
from konverge.explain import Explainer, Gatherer, Ref
from konverge.explain.graph import Graph, GraphReader, ready_count
from konverge.explain.reading import text
from konverge.explain.sentences import Sentence, say
from konverge.wire.message import Response

RELATIONS = {
    "owns": "owns",
    "selects": "selects",
    "protects": "selects",
    "mounts": "mounts",
    "runs on": "runs on",
    "leads to": "routes to",
    "is served by": "routes to",
    "calls": "routes to",
}
"""The relations that the browser distinguishes; every other one is `uses`."""


async def why(call: Call) -> Response:
    """Why an object is as it is."""
    gatherer = Gatherer(call.client)
    answer = await gatherer.why(call.ref)
    return json_answer(await explained(answer, Kinds(gatherer)))


async def tree(call: Call, revisions: dict[str, int] | None) -> Response:
    """An object with its owners, and with what it owns and uses; as it was at a resourceVersion, if one is named."""
    at = str(call.number("at") or "")
    reader = GraphReader(Gatherer(call.client, at=at))
    shown = await reader.read(call.ref)
    view = await tree_view(shown, reader.explainer, Kinds(reader.gatherer))
    return json_answer({"at": at or None, **view, **said(unread=reader.gatherer.unread), "history": revisions})


async def tree_view(shown: Graph, explainer: Explainer, kinds: Kinds) -> View:
    ids = {ref: _id(ref, explainer) for ref in shown.nodes}
    return {
        "root": ids[shown.root],
        "cut": shown.cut,
        "nodes": [await _node(ref, ids[ref], explainer, kinds) for ref in shown.nodes],
        "edges": [
            {
                "from": ids[edge.above],
                "to": ids[edge.below],
                "relation": RELATIONS.get(edge.relation, "uses"),
                "sentence": f"{edge.above} {edge.relation} {edge.below}",
            }
            for edge in shown.edges
        ],
    }


def _id(ref: Ref, explainer: Explainer) -> str:
    uid = text(explainer.world.get(ref), "metadata", "uid")
    return uid or "/".join((ref.group, ref.kind, ref.namespace, ref.name))


def _does_not_exist(ref: Ref) -> Sentence:
    return say("{object} {says}", object=ref.named, says=say("does not exist"))


async def _node(ref: Ref, id: str, explainer: Explainer, kinds: Kinds) -> View:
    obj = explainer.world.get(ref)
    gone = obj is None and explainer.world.is_missing(ref)
    return {
        "id": id,
        **await kinds.shown(ref),
        "uid": text(obj, "metadata", "uid"),
        "health": "gone" if gone else ASLEEP if explainer.is_at_rest(ref) else HEALTHS[explainer.health(ref)],
        **said(
            sentence=_does_not_exist(ref) if gone else explainer.why(ref).sentence,
            says=explainer.verdict(ref).sentence,
        ),
        "ready": ready_count(obj) or None,
        "created": text(obj, "metadata", "creationTimestamp") or None,
        "deleting": bool(text(obj, "metadata", "deletionTimestamp")),
    }
