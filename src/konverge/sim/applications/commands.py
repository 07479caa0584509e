"""Scripted exec: the rules of a simulate file answer commands in simulated containers."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from typing import Any

from konverge.objects.codec import from_dict
from konverge.objects.kinds.core_v1 import Pod
from konverge.sim.applications.application import ExecAnswer, Obj
from konverge.sim.applications.simulation import ExecRule
from konverge.sim.kubelet.channels import OUTCOME, STDERR, STDOUT, Channels, outcome_of
from konverge.sim.kubelet.sessions import ExecOptions, Talk

_CHUNK = 32 * 1024
Asked = Callable[[str, Obj, list[str]], ExecAnswer | None]
"""Has a server answer, by its name, for a pod."""


class Commands:
    """Answers by the first rule that matches."""

    def __init__(self, rules: Sequence[ExecRule], ask: Asked, changed: Callable[[], None]) -> None:
        self._rules = [(rule, rule.selector) for rule in rules]
        self._ask = ask
        self._changed = changed
        self.counts: dict[str, int] = {}
        """How many times a rule has answered in a pod, by `namespace/pod number-of-rule`; only where answers differ."""

    def exec(self, pod: Obj, container: str, options: ExecOptions) -> Talk | None:
        answer = self.answer(pod, container, list(options.command))
        if answer is None:
            return None

        async def talk(session: Channels) -> None:
            await session.send(bytes((STDOUT,)))  # some clients wait for a first message
            for channel, text, wanted in (
                (STDOUT, answer.stdout, options.stdout),
                (STDERR, answer.stderr, options.stderr and not options.tty),
            ):
                data = text.encode() if wanted else b""
                for start in range(0, len(data), _CHUNK):
                    await session.send(bytes((channel,)) + data[start : start + _CHUNK])
            await session.send(bytes((OUTCOME,)) + json.dumps(outcome_of(answer.exit)).encode())

        return talk

    def answer(self, pod: Obj, container: str, command: list[str]) -> ExecAnswer | None:
        """What a command prints; None when no rule is about it."""
        text = " ".join(command)
        meta = from_dict(Pod, pod).metadata
        image = image_of(pod, container)
        for number, (rule, selector) in enumerate(self._rules):
            if selector.matches(meta, container, image) and fnmatchcase(text, rule.command):
                answer = self._by_rule(number, rule, pod, command)
                if answer is not None:
                    return answer
        return None

    def _by_rule(self, number: int, rule: ExecRule, pod: Obj, command: list[str]) -> ExecAnswer | None:
        if rule.server:
            return self._ask(rule.server, pod, command)
        chosen: Any = rule
        if rule.answers:
            key = f"{pod['metadata']['namespace']}/{pod['metadata']['name']} {number}"
            count = self.counts.get(key, 0)
            chosen = rule.answers[min(count, len(rule.answers) - 1)]
            self.counts[key] = count + 1
            self._changed()
        return ExecAnswer(stdout=chosen.stdout, stderr=chosen.stderr, exit=chosen.exit)


def image_of(pod: Obj, container: str) -> str:
    spec = pod["spec"]
    declared = (*spec["containers"], *(spec.get("initContainers") or ()))
    return next((entry.get("image") or "" for entry in declared if entry["name"] == container), "")
