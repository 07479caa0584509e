"""The CEL rules of a definition: do they compile, and what may they cost?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from konverge.apiserver.crd.schema_rules import Place
from konverge.apiserver.crd.structural import Schema, Structural
from konverge.apiserver.fielderrors import FieldError


class Budget:
    def __init__(self, *, hold: bool) -> None:
        self.hold = hold

    def exceeded(self, path: str) -> Iterator[FieldError]:
        return iter(())


def root_context(raw: Schema, budget: Budget) -> Any:
    return None


def check_rules(raw: Schema, place: Place, context: Any) -> list[FieldError]:
    return []


def check_default(node: Structural, value: Any, path: str, root: bool) -> list[FieldError]:
    return []
