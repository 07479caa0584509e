"""`Explainer`: the tree of an object, its health, and the chain to the cause, in one sentence. Pure.

Objects may own each other in circles, and trees may be as deep as the cluster is large: nothing here recurses without a
limit, and every object is visited once.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

from konverge.explain.answer import Answer, Branch, Step
from konverge.explain.links import links
from konverge.explain.model import Health, Link, Ref, Verdict
from konverge.explain.rules import judge
from konverge.explain.sentences import NOTHING, Sentence, say
from konverge.explain.world import World

LONGEST = 32
"""Objects of a chain: what is longer is no sentence any more, and rings may be as long as the cluster is large."""
DEPTH = 12
"""Levels of a tree that are drawn."""
WIDTH = 500
"""Objects of a tree that are drawn."""
RELAYS = frozenset(("ReplicaSet", "EndpointSlice", "ControllerRevision"))
"""Kinds that only stand between two others: no sentence names them unless they are the cause."""
EVERYWHERE = frozenset((("ConfigMap", "kube-root-ca.crt"), ("ServiceAccount", "default")))
"""What every pod uses: drawn only where it is missing."""
OBSERVERS = frozenset(("Service", "EndpointSlice", "Ingress", "PodDisruptionBudget", "HorizontalPodAutoscaler"))
"""Kinds that are sick because of the pods of others: the way to the cause leads through those others, if it can."""
CARRIERS = frozenset(("Deployment", "StatefulSet", "DaemonSet"))
"""Named only where a sentence begins or ends with them."""


class Explainer:
    """Explains the objects of a world; what it has worked out it remembers.

    >>> from konverge.explain.world import World
    >>> claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "db", "namespace": "shop"},
    ...          "spec": {"storageClassName": "fast"}, "status": {"phase": "Pending"}}
    >>> Explainer(World([claim])).why(Ref("PersistentVolumeClaim", "db", "shop")).sentence
    'claim db waits: its storage class `fast` does not exist'
    """

    def __init__(self, world: World) -> None:
        self.world = world
        self._verdicts: dict[Ref, Verdict] = {}
        self._links: dict[Ref, list[Link]] = {}
        self._health: dict[Ref, Health] = {}
        self._sick: dict[Ref, bool] = {}

    def verdict(self, ref: Ref) -> Verdict:
        """By what is said about the object itself."""
        verdict = self._verdicts.get(ref)
        if verdict is None:
            verdict = self._verdicts[ref] = judge(ref, self.world)
        return verdict

    def links(self, ref: Ref) -> list[Link]:
        edges = self._links.get(ref)
        if edges is None:
            edges = self._links[ref] = links(ref, self.world)
        return edges

    def health(self, ref: Ref) -> Health:
        """How an object is. One that is not ready because of another that waits or failed waits itself."""
        health = self._health.get(ref)
        if health is None:
            steps = self._walk(ref)
            health = self._health[ref] = self._combined(steps)
        return health

    def is_at_rest(self, ref: Ref) -> bool:
        """It does nothing because its user wants it so."""
        return self.verdict(ref).at_rest and self.health(ref) is Health.READY

    def _combined(self, steps: list[Ref]) -> Health:
        first, last = self.verdict(steps[0]), self.verdict(steps[-1])
        own = first.health
        if len(steps) == 1 or own in (Health.FAILED, Health.WAITING):
            return own
        if last.health is Health.READY:
            return Health.WAITING  # the chain was cut off: what is beyond is not ready
        return max(own, min(last.health, Health.WAITING, key=_severity), key=_severity)

    # -------------------------------------------------------------- the chain

    def _walk(self, start: Ref) -> list[Ref]:
        """From an object to the cause: always to the sickest of what it waits for, never to the same twice.

        Where it is longer than `LONGEST`, the last one may be ready by itself and wait for others.
        """
        steps, seen, current = [start], {start}, start
        while True:
            verdict = self.verdict(current)
            if verdict.health is Health.READY and not verdict.like_children:
                break
            candidates = [ref for ref in dict.fromkeys(verdict.waits_for) if ref not in seen and self._is_sick(ref)]
            if not candidates:
                break
            if len(steps) == LONGEST:
                return steps
            current = max(candidates, key=lambda ref: (ref.kind not in OBSERVERS, self.verdict(ref).health.severity))
            seen.add(current)
            steps.append(current)
        while len(steps) > 1 and self.verdict(steps[-1]).health is Health.READY:
            steps.pop()  # in a ring, what waits for the object itself is no cause
        return steps

    def _is_sick(self, start: Ref) -> bool:
        """Not ready; of what is as its children are, whether one of those (at any depth) is not."""
        waiting, above = [start], {start: start}
        while waiting:
            current = waiting.pop()
            verdict, known = self.verdict(current), self._sick.get(current)
            if known or verdict.health not in (Health.READY, Health.UNKNOWN):
                self._sick[current] = True
                while above[current] != current:
                    current = above[current]
                    self._sick[current] = True
                return True
            if verdict.like_children and known is None:
                fresh = [child for child in dict.fromkeys(verdict.waits_for) if child not in above]
                above.update(dict.fromkeys(fresh, current))
                waiting += fresh
        self._sick.update(dict.fromkeys(above, False))
        return False

    def why(self, ref: Ref) -> Answer:
        """How an object is, and why: the chain to the cause."""
        steps = self._walk(ref)
        last = self.verdict(steps[-1])
        return Answer(
            ref=ref,
            health=self.health(ref),
            sentence=self._sentence(steps),
            chain=[
                Step(ref=step, health=self.verdict(step).health, says=self.verdict(step).sentence) for step in steps
            ],
            cause=last.cause if last.health is not Health.READY else "",
            at_rest=self.is_at_rest(ref),
            advice=last.advice or _advice(steps[-1], last),
            container=last.container,
        )

    def _sentence(self, steps: list[Ref]) -> Sentence:
        shown = [number for number in range(len(steps)) if self._is_shown(steps, number)]
        last = self.verdict(steps[-1])
        if len(shown) == 1:
            return say("{object} {says}", object=steps[0].named, says=last.sentence)
        text, clause = steps[0].named, last.says
        for before, number in pairwise(shown):
            step, reason = steps[number], self.verdict(steps[number - 1]).whose
            begin = before == 0
            if reason:
                since = say("{whose}, since {object}", whose=reason, object=step.named)
                text, clause = _whose(text, since, begin), last.sentence
            elif self.world.is_missing(step):
                return _whose(text, say("{noun} `{name}` does not exist", noun=step.noun, name=step.name), begin)
            else:
                text, clause = _waits_for(text, self._with_others(steps[number - 1], step), begin), NOTHING
        if last.health is Health.READY:
            return say("{text}, which waits for others", text=text)
        if clause:
            return say("{object} {says}", object=text, says=clause)
        return _whose(text, last.whose, False) if last.whose else say("{text}, which {says}", text=text, says=last.says)

    def _with_others(self, waiting: Ref, step: Ref) -> Sentence:
        """A step, and how many more of the same kind are waited for."""
        same = [ref for ref in self.verdict(waiting).waits_for if ref.kind == step.kind and ref != step]
        more = sum(self.verdict(ref).health not in (Health.READY, Health.UNKNOWN) for ref in same)
        return say("{object} (and {count} more)", object=step.named, count=more) if more else step.named

    def _is_shown(self, steps: list[Ref], number: int) -> bool:
        if number in (0, len(steps) - 1):
            return True
        step, after = steps[number], steps[number + 1]
        if step.kind in RELAYS:
            return False
        return step.kind not in CARRIERS or after.kind not in ("Pod", "ReplicaSet")

    # -------------------------------------------------------------- the tree

    def tree(self, root: Ref) -> Branch:
        """An object with what it owns and uses, each once, down to a limit."""
        budget, seen = [WIDTH], {root}
        return self._branch(Link("", root), seen, budget, 0)

    def _branch(self, link: Link, seen: set[Ref], budget: list[int], depth: int) -> Branch:
        budget[0] -= 1
        below, cut = [], 0
        fresh = [edge for edge in self.links(link.ref) if edge.ref not in seen and self._is_drawn(edge)]
        seen.update(edge.ref for edge in fresh)
        # Each object is drawn once: pods below what owns them, not below a Service that selects them too.
        for edge in sorted(fresh, key=lambda edge: edge.ref.kind in OBSERVERS):
            if depth >= DEPTH or budget[0] <= 0:
                cut += 1
            else:
                below.append(self._branch(edge, seen, budget, depth + 1))
        verdict = self.verdict(link.ref)
        return Branch(
            ref=link.ref,
            relation=link.relation,
            health=self.health(link.ref),
            says=verdict.sentence,
            children=below,
            cut=cut,
        )

    def _is_drawn(self, edge: Link) -> bool:
        """What does not exist and need not is left out, and so is what could not be read."""
        if self.world.get(edge.ref) is None:
            return edge.required and self.world.is_missing(edge.ref)
        return (edge.ref.kind, edge.ref.name) not in EVERYWHERE

    # -------------------------------------------------------------- everything

    def sick(self, refs: Iterable[Ref] | None = None) -> list[Answer]:
        """What is not ready, the sickest first; an object that only waits for another of the list comes with it."""
        chosen = list(self.world if refs is None else refs)
        answers = [self.why(ref) for ref in chosen if self._is_sick(ref) and not self._is_consequence(ref)]
        blamed = {step.ref for answer in answers for step in answer.chain[1:]}
        tops = [answer for answer in answers if answer.ref not in blamed]
        # In a ring, everything is blamed by something.
        ends = {answer.chain[-1].ref for answer in answers if len(answer.chain) < LONGEST}
        left = ends - {answer.chain[-1].ref for answer in tops}
        tops += [answer for answer in answers if answer.ref in left]
        tops += _uncovered(tops, [answer for answer in answers if len(answer.chain) == LONGEST])
        return sorted(tops, key=lambda answer: (-answer.worst.severity, answer.ref.namespace, answer.ref))

    def _is_consequence(self, ref: Ref) -> bool:
        """A Service or the like whose owner is not ready either: the owner's answer is enough."""
        owners = [owner for owner in self.world.owners(ref) if owner.kind not in OBSERVERS]
        return ref.kind in OBSERVERS and any(self._is_sick(owner) for owner in owners)


def _uncovered(shown: list[Answer], long: list[Answer]) -> list[Answer]:
    """Of chains that may have been cut off, as many as it takes to name every object that begins one."""
    covered = {step.ref for answer in shown for step in answer.chain}
    more = []
    for answer in long:
        if answer.ref not in covered:
            covered.update(step.ref for step in answer.chain)
            more.append(answer)
    return more


def _whose(text: Sentence, whose: Sentence, begin: bool) -> Sentence:
    """`begin`: the first clause of a sentence."""
    if begin:
        return say("{text} waits: its {whose}", text=text, whose=whose)
    return say("{text}, whose {whose}", text=text, whose=whose)


def _waits_for(text: Sentence, what: Sentence, begin: bool) -> Sentence:
    if begin:
        return say("{text} waits for {object}", text=text, object=what)
    return say("{text}, which waits for {object}", text=text, object=what)


def _severity(health: Health) -> int:
    return health.severity


def _advice(ref: Ref, verdict: Verdict) -> Sentence:
    if not verdict.cause.startswith("missing-") or verdict.says != "does not exist":
        return NOTHING
    what = ref.named
    if ref.namespace:
        what = say("{object} in namespace {namespace}", object=what, namespace=ref.namespace)
    return say("create the {object}, or correct the name where it is used", object=what)


_SHARED = frozenset(("no-room", "taint", "affinity", "cordoned", "no-nodes", "no-scheduler"))
_SHARED_INSIDE = frozenset(
    ("quota", "limit-range", "pod-security", "webhook-away", "webhook-refuses", "no-permission", "operator-away")
)
"""Causes that keep many objects from being ready, in the whole cluster or inside of a namespace."""


def grouped(answers: Iterable[Answer]) -> list[tuple[Answer, list[Answer]]]:
    """Answers with one cause together: the first of each, and all of them."""
    groups: dict[tuple[str, ...], list[Answer]] = {}
    for answer in answers:
        groups.setdefault(_group(answer), []).append(answer)
    return [(members[0], members) for members in groups.values()]


def _group(answer: Answer) -> tuple[str, ...]:
    last = answer.chain[-1]
    if answer.cause in _SHARED:
        return (answer.cause,)
    if answer.cause in _SHARED_INSIDE:
        return (answer.cause, last.ref.namespace, last.says.partition("` ")[0])
    return (answer.cause, *last.ref)
