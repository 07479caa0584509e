"""The plugins in the order of the real server."""

from __future__ import annotations

from typing import TYPE_CHECKING

from konverge.apiserver.admission.chain import Chain
from konverge.apiserver.admission.grants import Grants
from konverge.apiserver.admission.mutating_policy import MutatingPolicies
from konverge.apiserver.admission.namespace_lifecycle import NamespaceLifecycle
from konverge.apiserver.admission.policy import ValidatingPolicies
from konverge.apiserver.auth.authorization import Authorization

if TYPE_CHECKING:
    from konverge.apiserver.server import ApiServer


def chain(server: ApiServer, authorization: Authorization) -> Chain:
    return Chain(
        (
            NamespaceLifecycle(),
            MutatingPolicies(server, authorization),
            Grants(authorization),
            ValidatingPolicies(server, authorization),
        )
    )
