"""Which database a Job may work on: the one of the servers, by the status and the spec alone."""

from __future__ import annotations

from typing import Any

import pytest

from konverge.objects import Condition, ObjectMeta
from konverge.operators.nacos.backup.runs import WorkError, require_in_force
from konverge.operators.nacos.desired import read_desired
from konverge.operators.nacos.resource import ALLOW, AnyNacos, Applied, NacosStatus
from tests.operators.nacos.backup.world import EMBEDDED, MY, PG

pytestmark = pytest.mark.spec("N-83")
WANTED = "postgresql://pg:5432/nacos"
OTHER = "postgresql://pg:5432/two"


NO_POD = {**PG, "k8sWrapper": {"PodSpec": {"containers": "none"}}}


def refused(spec: dict[str, Any], present: str, *, asleep: str = "", allowed: str = "") -> str:
    """The reason; empty: the Job may begin."""
    meta = ObjectMeta(name="nacos", namespace="default", annotations={ALLOW: allowed} if allowed else {})
    conditions = [Condition(type="Hibernated", status=asleep)] if asleep else []
    status = NacosStatus(applied=Applied(database=present), kube_conditions=conditions)
    nacos = AnyNacos(metadata=meta, spec=spec, status=status)
    try:
        require_in_force(nacos, read_desired(nacos))
    except WorkError as error:
        return error.reason
    return ""


@pytest.mark.parametrize(
    ("spec", "present"),
    [(PG, WANTED), (PG, ""), (MY, "mysql://my:3306/nacos"), (EMBEDDED, "embedded"), (NO_POD, OTHER)],
    ids=["the same", "not known", "mysql", "embedded", "not to be known"],
)
def test_what_is_in_force(spec: dict[str, Any], present: str) -> None:
    assert refused(spec, present) == ""


@pytest.mark.parametrize(("spec", "present"), [(PG, OTHER), (PG, "embedded"), (MY, WANTED), (EMBEDDED, WANTED)])
def test_what_is_not(spec: dict[str, Any], present: str) -> None:
    assert refused(spec, present) == "ChangeHeld"


@pytest.mark.parametrize(
    ("asleep", "allowed", "reason"),
    [
        ("True", f"database={WANTED}", ""),
        ("True", f"type=cluster, database={WANTED}", ""),
        ("True", f"database={OTHER}", "ChangeHeld"),
        ("True", "", "ChangeHeld"),
        ("False", f"database={WANTED}", "ChangeHeld"),
        ("", f"database={WANTED}", "ChangeHeld"),
    ],
)
def test_an_allowance_counts_for_one_that_sleeps(asleep: str, allowed: str, reason: str) -> None:
    assert refused(PG, OTHER, asleep=asleep, allowed=allowed) == reason
