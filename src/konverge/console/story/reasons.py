"""Why a reconcile ran, as a sentence that can be said in other languages. Pure.

A reason comes as text, often from another process (`konverge.runtime.reasons` writes it). What it was written from is
read back here; a text of an unknown form, such as that of an operator of another release, is shown as it is.
"""

from __future__ import annotations

import re

from konverge.explain.sentences import Sentence, say
from konverge.explain.texts import shorten
from konverge.runtime.story.model import Cause

SHOWN = 2
"""Reasons that a sentence names."""
LONGEST = 80
"""Characters of a name, a list of fields, or an error in it."""
_TIMER = re.compile(r"asked to come back after (\S+) s")
_RETRY = re.compile(r"retry (\d+)(?: after: (.*))?", re.DOTALL)
_MORE = re.compile(r"(.*) and (\d+) more", re.DOTALL)
_NOT_KEPT = " (its fields were too large to keep)"


def why_it_ran(reasons: list[Cause]) -> str:
    """The first reasons.

    >>> why_it_ran([Cause(type="resync", text="resync"), Cause(type="timer", text="asked to come back after 30 s")])
    'resync; asked to come back after 30 s'
    """
    texts = [because(reason) for reason in reasons[:SHOWN]]
    if not texts:
        return say("no reason is known")
    return texts[0] if len(texts) == 1 else say("{first}; {second}", first=texts[0], second=texts[1])


def because(cause: Cause) -> str:
    """One reason: a sentence, or the text itself where it is none of ours.

    >>> because(Cause(type="added", text="Pod shop/web-0 added", kind="Pod", namespace="shop", name="web-0"))
    'Pod shop/web-0 added'
    """
    text = cause.text.removesuffix(_NOT_KEPT)
    sentence = _of_change(cause, text) if cause.kind else _of_queue(cause.text)
    if sentence is None:
        return shorten(cause.text, LONGEST)
    return sentence if text == cause.text else say("{text} (its fields were too large to keep)", text=sentence)


def _of_change(cause: Cause, text: str) -> Sentence | None:
    """An object that was watched."""
    whole = f"{cause.namespace}/{cause.name}" if cause.namespace else cause.name
    kind, name = shorten(cause.kind, LONGEST), shorten(whole, LONGEST)
    what = f"{cause.kind} {whole} {cause.type}"
    rest = text.removeprefix(what)
    if not text.startswith(what) or rest[:2] not in ("", ": "):
        return None
    fields = rest[2:]
    match cause.type:
        case "added":
            return say("{kind} {name} added", kind=kind, name=name)
        case "updated" if fields:
            return say("{kind} {name} updated: {fields}", kind=kind, name=name, fields=_fields(fields))
        case "updated":
            return say("{kind} {name} updated", kind=kind, name=name)
        case "deleted":
            return say("{kind} {name} deleted", kind=kind, name=name)
        case "listed":
            return say("{kind} {name} listed", kind=kind, name=name)
    return None


def _fields(text: str) -> str:
    """Paths, which are the same in every language."""
    if match := _MORE.fullmatch(text):
        return say("{names} and {count} more", names=shorten(match[1], LONGEST), count=int(match[2]))
    return shorten(text, LONGEST)


def _of_queue(text: str) -> Sentence | None:
    """What the queue itself brings back."""
    if text == "resync":
        return say("resync")
    if text == "taken over from another process":
        return say("taken over from another process")
    if match := _TIMER.fullmatch(text):
        return say("asked to come back after {seconds} s", seconds=match[1])
    if (match := _RETRY.fullmatch(text)) is None:
        return None
    if match[2]:
        return say("retry {attempt} after: {detail}", attempt=match[1], detail=shorten(match[2], LONGEST))
    return say("retry {attempt}", attempt=match[1])
