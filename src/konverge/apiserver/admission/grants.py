"""The escalation check of `auth`, as the last of the mutating plugins: there the real server makes it."""

from __future__ import annotations

from konverge.apiserver.admission.plugin import Kind, Mutating, Step
from konverge.apiserver.auth.authorization import Authorization
from konverge.apiserver.auth.escalation import Escalation
from konverge.apiserver.auth.rbac import GROUP


class Grants(Mutating):
    def __init__(self, authorization: Authorization) -> None:
        self._escalation = Escalation(authorization)

    def admit(self, kind: Kind) -> Step | None:
        return self._escalation.check if kind.group == GROUP and kind.operation in ("CREATE", "UPDATE") else None
