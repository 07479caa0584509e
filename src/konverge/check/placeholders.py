"""Placeholders for values of Secrets, in files of findings: they keep what a finding may depend on.

Equal values have equal placeholders wherever they stand, other values have others, and what is empty stays so: a Secret
that is rotated or emptied is another one in the file as well. No placeholder is a part of another: operators put values
amid other texts. What is a JSON object stays one, which the API server asks of the credentials of registries.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from typing import Any

import msgspec

from konverge.check.model import Obj
from konverge.check.redaction import repeating, without_annotations


class Placeholders:
    """Of the Secrets of one file, in the order in which they are given."""

    def __init__(self) -> None:
        self.stand_for: list[str] = []
        """What was left out, by object and key."""
        self._known: dict[bytes, str] = {}

    def secret(self, obj: Obj) -> Obj:
        """A Secret without its values."""
        name, repeats = obj["metadata"].get("name", ""), repeating(obj)
        self.stand_for += [f"Secret {name}: {annotation}" for annotation in repeats]
        plain: dict[str, Any] = dict(without_annotations(obj, repeats))
        for field in ("data", "stringData"):
            if isinstance(obj.get(field), dict):
                self.stand_for += [
                    f"Secret {name}: {key}" for key, value in obj[field].items() if value not in (None, "")
                ]
                plain[field] = {
                    key: self._entry(f"{name}-{key}", value, encoded=field == "data")
                    for key, value in obj[field].items()
                }
        return plain

    def _entry(self, place: str, value: Any, *, encoded: bool) -> Any:
        text = "" if value is None else str(value)
        decoded = _decoded(text) if encoded else None
        content = text.encode() if decoded is None else decoded
        if not content:
            return value
        if content not in self._known:
            word = f"redacted-{len(self._known) + 1}-{place}"
            self._known[content] = f'{{"redacted": "{word}"}}' if _is_json_object(content) else word
        made = self._known[content]
        return made if decoded is None else b64encode(made.encode()).decode()


def _decoded(text: str) -> bytes | None:
    """What base64 stands for; None for what is none, which the API server refuses: it has to go on being none."""
    try:
        return b64decode("".join(text.split()), validate=True)
    except ValueError:
        return None


def _is_json_object(content: bytes) -> bool:
    try:
        return isinstance(msgspec.json.decode(content), dict)
    except ValueError:
        return False
