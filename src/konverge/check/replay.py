"""A finding as a file that shows it again: `konverge check --replay finding-3.json`.

The file has everything that a run needs but what is secret: values of Secrets are replaced (see `placeholders`), and
settings of the environment whose name speaks of one are taken from the environment of whoever repeats it. Only its
owner may read it.
"""

from __future__ import annotations

import hashlib
import os
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Protocol

import msgspec

from konverge.check.differences import Masks
from konverge.check.findings import Evidence, group_of
from konverge.check.model import Alarm, Apply, Finding, Obj, Plan, Run, Setup, Step, Task, encode
from konverge.check.oracles.unused import FIELD as UNUSED_RULES
from konverge.check.oracles.unused import Used, unused
from konverge.check.placeholders import Placeholders
from konverge.check.redaction import shown_alarm
from konverge.check.reference import Reference
from konverge.check.shrink import Judge

FORMAT = 1
_SECRET = re.compile(r"token|passw|secret|credential|private|api_?key|_key$", re.IGNORECASE)


class ReplayError(Exception):
    """A file does not show a finding again; the text says why."""


class Replay(msgspec.Struct, kw_only=True):
    """What a file holds."""

    format: int = FORMAT
    konverge: str = ""
    """The version that wrote it."""
    sentence: str
    task: Task
    masks: Masks = Masks()
    alarm: Alarm
    digests: dict[str, str] = {}
    """Of the objects of the setup (definitions, roles), by kind and name."""
    redacted: tuple[str, ...] = ()
    """What was left out because it is secret."""


class _Head(msgspec.Struct):
    """What the files of every version have; the rest of a later one may be anything."""

    format: int = FORMAT


class _Runner(Protocol):
    jobs: int

    def run(self, task: Task) -> Run: ...


def replay_of(finding: Finding, evidence: Evidence, version: str) -> Replay:
    task, redacted = without_secrets(finding.task)
    return Replay(
        konverge=version,
        sentence=finding.sentence,
        task=task,
        masks=evidence.reference.masks,
        alarm=shown_alarm(finding.alarm),
        digests={_named(obj): _digest(obj) for obj in task.setup.objects},
        redacted=tuple(redacted),
    )


def write(path: Path, replay: Replay) -> None:
    """Readable by its owner alone: a workload may be confidential."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        os.fchmod(file.fileno(), 0o600)
        file.write(msgspec.json.format(encode(replay), indent=1) + b"\n")


def read(path: Path) -> Replay:
    """Raises ReplayError."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise ReplayError(f"{path}: {error.strerror}; give a file that `konverge check` has written") from error
    try:
        head = msgspec.json.decode(data, type=_Head)
        if head.format != FORMAT:
            raise ReplayError(f"{path} has format {head.format}, and this version reads {FORMAT}: run the check again")
        return msgspec.json.decode(data, type=Replay)
    except msgspec.DecodeError as error:
        raise ReplayError(
            f"{path} was not written by `konverge check`, which writes finding-N.json: {error}"
        ) from error


def again(replay: Replay, runner: _Runner, judge: Judge) -> tuple[Evidence, bool]:
    """The finding's run, beside a reference of its own; whether the alarm came again."""
    task = with_environment(replay.task)
    undisturbed, run = _both(task, runner)
    for made in (undisturbed, run):
        if made.problem:
            raise ReplayError(f"the operator could not be run: {made.problem}")
    reference = Reference(run=undisturbed, masks=replay.masks)
    alarms = [] if run.missed else list(judge(run, reference))
    if replay.alarm.field == UNUSED_RULES:
        alarms += unused(task.setup, Used([run]))
    wanted = group_of(replay.alarm)
    same = [alarm for alarm in alarms if group_of(alarm) == wanted]
    return Evidence(task, run, reference, [*same[:1], *(alarm for alarm in alarms if alarm not in same)]), bool(same)


def _both(task: Task, runner: _Runner) -> tuple[Run, Run]:
    """The reference, which ends where the other ends, and the run: at once, if the runner can."""
    first = msgspec.structs.replace(task, plan=Plan("reference", first=task.plan.first))
    if task.plan.pattern == "reference":
        run = runner.run(first)
        return run, run
    if runner.jobs <= 1:
        return runner.run(first), runner.run(task)
    with ThreadPoolExecutor(2, "replay") as pool:
        undisturbed, run = pool.map(runner.run, (first, task))
    return undisturbed, run


# ------------------------------------------------------------------ what is secret


def without_secrets(task: Task) -> tuple[Task, list[str]]:
    """The task with placeholders, and what they stand for."""
    placeholders = Placeholders()
    objects = tuple(_plain(obj, placeholders) for obj in task.setup.objects)
    setup: Setup = msgspec.structs.replace(task.setup, objects=objects)
    environment = {}
    for name, value in task.subject.environment.items():
        if _SECRET.search(name):
            placeholders.stand_for.append(f"environment: {name}")
            environment[name] = ""
        else:
            environment[name] = value
    subject = msgspec.structs.replace(task.subject, environment=environment)
    steps = tuple(_plain_step(step, placeholders) for step in task.steps)
    plan = task.plan
    if plan.steps is not None:
        plan = msgspec.structs.replace(plan, steps=tuple(_plain_step(step, placeholders) for step in plan.steps))
    made = msgspec.structs.replace(task, setup=setup, subject=subject, steps=steps, plan=plan)
    return made, list(dict.fromkeys(placeholders.stand_for))


def with_environment(task: Task) -> Task:
    """What the file does not have of the environment, from that of this process."""
    settings = task.subject.environment
    filled = {name: value or os.environ.get(name, "") for name, value in settings.items()}
    return msgspec.structs.replace(task, subject=msgspec.structs.replace(task.subject, environment=filled))


def _plain_step(step: Step, placeholders: Placeholders) -> Step:
    actions = tuple(
        Apply(_plain(action.object, placeholders)) if isinstance(action, Apply) else action for action in step.actions
    )
    return msgspec.structs.replace(step, actions=actions)


def _plain(obj: Obj, placeholders: Placeholders) -> Obj:
    return placeholders.secret(obj) if obj.get("kind") == "Secret" else obj


def _named(obj: Obj) -> str:
    return f"{obj.get('kind', '')} {obj.get('metadata', {}).get('name', '')}"


def _digest(obj: Obj) -> str:
    return hashlib.sha256(msgspec.json.encode(obj, order="deterministic")).hexdigest()[:16]
