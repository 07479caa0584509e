"""What names one timer or daemon of one object."""

from __future__ import annotations

from typing import NamedTuple

from konverge.cache.record import Key


class ObjectTask(NamedTuple):
    """One timer or daemon of one object. Its writes are not those of the reconcile, which they lead to."""

    key: Key
    name: str

    @property
    def namespace(self) -> str:
        return self.key.namespace

    def __str__(self) -> str:
        return f"{self.key} {self.name}"
