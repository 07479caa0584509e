"""What an operator copies from a Secret or ConfigMap of the user follows it when that is rotated.

An object of the operator that had the old value has the new one at the next rest, or the custom resource says why not.

Which texts are copies is a guess. A plain word, or what an object, a label or an image is called, is there by itself
(`postgres` is a user, an image and a label); so is what stands in the middle of another word. Passwords and
certificates are not.
"""

from __future__ import annotations

import re
from base64 import b64decode
from binascii import Error as Base64Error
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from konverge.check.folding import folded
from konverge.check.inputs.references import texts
from konverge.check.model import Alarm, Apply, Checkpoint, Obj, Run
from konverge.check.oracles.desired import Rested, rests, says_refused
from konverge.check.oracles.history import resources_at
from konverge.check.reference import Reference

_SHORTEST = 6
"""Characters of a value that is no copy by chance."""
_LONGEST_WORD = 15
"""Letters of a plain word, or digits of a plain number: what is longer was generated."""
_CONTENTS = ("spec", "data", "stringData")
_RUN_ONCE = ("batch/jobs ", "pods ")
"""What cannot follow: it has been started with what there was."""


def copies(run: Run, reference: Reference) -> Iterator[Alarm]:
    """One alarm per object that keeps an old value."""
    if run is reference.run or run.plan.perturbations:
        return
    added = (item for item in run.changes if item.moment.type == "ADDED" and item.writer == "operator")
    made = {name for name in (str(item.ref) for item in added) if not name.startswith(_RUN_ONCE)}
    said: set[str] = set()
    for before, now in pairwise(rests(run)):
        if now.step.expect or now.checkpoint.refused or not now.checkpoint.rested:
            continue
        if any(says_refused(obj) for _, obj in resources_at(run, now.checkpoint)):
            continue
        for source, key, old, new in _rotated(before, now):
            if _is_given_elsewhere(run, source, old) or _is_called(before.checkpoint, old):
                continue  # it may be that one's
            for name in sorted(made - said):
                if _has(before.checkpoint, name, old) and _lacks(now.checkpoint, name, new):
                    said.add(name)
                    yield _alarm(now, name, source, key)


def _rotated(before: Rested, now: Rested) -> Iterator[tuple[str, str, str, str]]:
    """Secrets and ConfigMaps that the user gives another content: its name, the key, and the values."""
    for action in now.step.actions:
        if not isinstance(action, Apply) or action.object["kind"] not in ("Secret", "ConfigMap"):
            continue
        for name, obj in before.checkpoint.state.items():
            if (obj.get("kind"), obj["metadata"]["name"]) != (action.object["kind"], action.object["metadata"]["name"]):
                continue
            earlier, later = _contents(obj), _contents(now.checkpoint.state.get(name, {}))
            for key, old in earlier.items():
                if len(old) >= _SHORTEST and not _is_word(old) and later.get(key, old) != old:
                    yield name, key, old, later[key]


def _is_given_elsewhere(run: Run, source: str, value: str) -> bool:
    """Whether another object of the user has the same value."""
    given = (action.object for step in run.steps for action in step.actions if isinstance(action, Apply))
    named = source.rpartition("/")[2]
    others = (obj for obj in given if obj["kind"] not in ("Secret", "ConfigMap") or obj["metadata"]["name"] != named)
    return any(value in text for obj in others for text in _texts(obj))


def _is_word(value: str) -> bool:
    return len(value) <= _LONGEST_WORD and (value.isalpha() or value.isdigit())


def _is_called(checkpoint: Checkpoint, value: str) -> bool:
    """Whether an object, a label or an image is called so."""
    return any(value in name for obj in checkpoint.state.values() for name in _names(obj))


def _names(obj: Obj) -> Iterator[str]:
    yield obj["metadata"]["name"]
    for part in ("metadata", "spec"):
        yield from _labels_and_images(obj.get(part))


def _labels_and_images(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from texts(inner) if key in ("labels", "image") else _labels_and_images(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _labels_and_images(inner)


def _contents(obj: Obj) -> dict[str, str]:
    return {key: _plain(value, secret=obj["kind"] == "Secret") for key, value in (obj.get("data") or {}).items()}


def _plain(value: str, *, secret: bool) -> str:
    if not secret:
        return value
    try:
        return b64decode(value, validate=True).decode()
    except (Base64Error, ValueError):
        return value


def _has(checkpoint: Checkpoint, name: str, value: str) -> bool:
    """Whether it stands there as a word of its own; names with hyphens are one word."""
    start = r"(?<![\w-])" if value[0].isalnum() else ""
    end = r"(?![\w-])" if value[-1].isalnum() else ""
    word = re.compile(f"{start}{re.escape(value)}{end}")
    obj = checkpoint.state.get(name)
    return obj is not None and any(word.search(text) for text in _texts(obj))


def _lacks(checkpoint: Checkpoint, name: str, value: str) -> bool:
    """Whether it is not there, not even as a part of a word: what follows it may be joined to it."""
    obj = checkpoint.state.get(name)
    return obj is not None and not any(value in text for text in _texts(obj))


def _texts(obj: Obj) -> Iterator[str]:
    for part in _CONTENTS:
        for text in texts(obj.get(part)):
            yield _plain(text, secret=obj.get("kind") == "Secret")


def _alarm(now: Rested, name: str, source: str, key: str) -> Alarm:
    return Alarm(
        oracle="copies",
        severity="medium",
        object=folded(name),
        field="data",
        sentence=f"{folded(name)} keeps the old value of {key} of {source}, which was rotated",
        step=now.step.name,
    )
