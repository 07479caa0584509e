"""What users do with the Secrets and ConfigMaps that a custom resource refers to: rotate, empty, delete, put back."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Sequence
from typing import Any

from konverge.check.model import Action, Apply, Delete, Obj

_CONTENTS = ("data", "stringData")


def references(objects: Sequence[Obj], sample: Obj) -> Iterator[tuple[str, Action, Action, bool]]:
    """Name, what is done, how it is put back, and whether it is a mistake; for each that the sample names."""
    named = set(texts(sample.get("spec")))
    for obj in objects:
        if obj["kind"] not in ("Secret", "ConfigMap") or obj["metadata"]["name"] not in named:
            continue
        what = f"{obj['kind']} {obj['metadata']['name']}"
        back = Apply(obj)
        yield f"{what} rotated", Apply(_with_contents(obj, _rotated)), back, False
        yield f"{what} empty", Apply(_with_contents(obj, lambda key, text: "")), back, True
        metadata = obj["metadata"]
        gone = Delete(obj["apiVersion"], obj["kind"], metadata.get("namespace", ""), metadata["name"])
        yield f"{what} missing", gone, back, True


def texts(value: Any) -> Iterator[str]:
    """All texts in a value: names of other objects are among them."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for inner in value.values():
            yield from texts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from texts(inner)


def _with_contents(obj: Obj, change: Any) -> Obj:
    contents = {
        part: {key: change(f"{obj['kind']}.{part}", text or "") for key, text in obj[part].items()}
        for part in _CONTENTS
        if obj.get(part)  # null, as templates write it where there is nothing, is none
    }
    return {**obj, **contents}


def _rotated(part: str, text: str) -> str:
    if part != "Secret.data":
        return f"{text}2"
    return base64.b64encode(base64.b64decode(text) + b"2").decode()
