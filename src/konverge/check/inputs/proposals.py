"""A proposal: values for one field, in turn, before the schema and the rules have had their say."""

from __future__ import annotations

from typing import Any

import msgspec

from konverge.check.inputs.paths import ABSENT
from konverge.check.model import Obj


class Proposal(msgspec.Struct, frozen=True, kw_only=True):
    """Values that a user sets one after the other. Afterwards the field is as in the sample again."""

    name: str
    """What it is, as a user would call it: "scale up", "a selector that no node has"."""
    values: tuple[Any, ...]
    worth: int = 50
    """What comes first when time is short."""
    bad: bool = False
    """A mistake: it should be refused or reported, and going back should repair it."""
    lasting: bool = False
    """What it does cannot be undone (a volume that grew): the way back is not compared."""
    objects: tuple[Obj, ...] = ()
    """What has to be there too: the Secret that a name refers to."""


def given(value: Any, otherwise: Any) -> Any:
    """The present value, or what is usual."""
    return otherwise if value is ABSENT or value is None else value
