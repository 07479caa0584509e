"""Evaluation of the CEL rules of a schema on objects."""

from __future__ import annotations

from konverge.apiserver.crd.structural import Structural
from konverge.apiserver.fielderrors import FieldError
from konverge.apiserver.strategy import Obj


class RuleValidator:
    @classmethod
    def of(cls, root: Structural) -> RuleValidator | None:
        return None

    def validate(self, obj: Obj, old: Obj | None) -> list[FieldError]:
        return []
