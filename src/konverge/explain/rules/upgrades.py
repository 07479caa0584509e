"""What a custom resource says of its upgrade: `status.upgrade` with `to`, `step`, `halted` and `message`. Pure.

Nacos does it so (docs/nacos.md); it is read by its form, so any operator may. An upgrade that is halted resumes when
its reason is gone, so the resource waits, unless it says by itself that it failed.
"""

from __future__ import annotations

from dataclasses import replace

from konverge.explain.model import Health, Verdict
from konverge.explain.reading import Obj, mapping, text
from konverge.explain.sentences import NOTHING, Sentence, explained, say
from konverge.explain.texts import shorten

HALTED = "upgrade-halted"
WAY_OUT = "; to go on in spite of it: "
"""What stands between the problem and the command that allows it, in the message of a halt."""
_COMMAND = 300
"""Characters of it: half of one would do harm, so a longer one is left out."""


def with_upgrade(obj: Obj, verdict: Verdict) -> Verdict:
    """The verdict on an object that is not ready, by its upgrade where one is under way."""
    upgrade = mapping(obj, "status", "upgrade")
    version, step = text(upgrade, "to"), text(upgrade, "step")
    if not version or step in ("", "Done"):
        return verdict
    version, step = shorten(version, 40), shorten(step, 40)
    failed = verdict.health is Health.FAILED and not _is_only_held(obj)
    if not text(upgrade, "halted"):
        says = say("is being upgraded to {version}, in the step {step}", version=version, step=step)
        health = Health.FAILED if failed else Health.PROGRESSING
        return replace(verdict, health=health, says=explained(says, shorten(text(upgrade, "message"))))
    problem, _, command = text(upgrade, "message").partition(WAY_OUT)
    return replace(
        verdict,
        health=Health.FAILED if failed else Health.WAITING,
        says=NOTHING,
        whose=_halted(version, step, shorten(text(upgrade, "halted"), 40), shorten(problem)),
        cause=HALTED,
        advice=_advice(command),
    )


def _is_only_held(obj: Obj) -> bool:
    """Its servers are well: it is stalled because its user has to act, and that is no failure."""
    return text(obj, "status", "phase") == "Running"


def _halted(version: str, step: str, reason: str, detail: str) -> Sentence:
    if not detail:
        return say(
            "upgrade to {version} is halted in the step {step} ({reason})", version=version, step=step, reason=reason
        )
    return say(
        "upgrade to {version} is halted in the step {step} ({reason}): {detail}",
        version=version,
        step=step,
        reason=reason,
        detail=detail,
    )


def _advice(command: str) -> Sentence:
    if not command or len(command) > _COMMAND:
        return NOTHING
    return say("to go on in spite of it: {command}", command=command)
