"""A reference that was taken to be at rest while pods were replaced."""

from __future__ import annotations

from typing import Any

import pytest

from konverge.check.oracles.state import state
from tests.check.oracles.histories import History, obj, reference

SET, POD = "apps/statefulsets default/db", "pods default/db-0"


def replaced(updated: int, image: str = "b", *, replicas: int = 3, ready: int = 3, template: str = "b") -> History:
    """A StatefulSet with three pods, some of which have the new template."""
    owner = obj(
        "StatefulSet",
        "db",
        spec={"replicas": replicas, "template": template},
        status={"replicas": 3, "readyReplicas": ready, "updatedReplicas": updated},
    )
    owners = [{"kind": "StatefulSet", "name": "db", "uid": owner["metadata"]["uid"]}]
    pod: dict[str, Any] = obj("Pod", "db-0", metadata={"ownerReferences": owners}, spec={"image": image})
    return History().change("ADDED", SET).change("ADDED", POD, by="cluster").rest({SET: owner, POD: pod})


def said(run: History, beside: History) -> list[str]:
    return [f"{alarm.object} {alarm.field}" for alarm in state(run.run, reference(beside))]


@pytest.mark.spec("K-101")
def test_what_a_run_has_beyond_an_unfinished_reference_is_no_alarm() -> None:
    assert said(replaced(3), replaced(1, "a")) == []
    assert said(replaced(2), replaced(1, "a")) == []


@pytest.mark.spec("K-101")
def test_a_run_that_is_behind_the_reference_is_said() -> None:
    images, counts = f"{POD} spec.image", f"{SET} status.updatedReplicas"
    assert said(replaced(1, "a"), replaced(3)) == [counts, images]
    assert said(replaced(0, "a"), replaced(1)) == [counts, images]
    assert said(replaced(3, ready=1), replaced(1, "a", ready=3)) == [f"{SET} status.readyReplicas", counts, images]


@pytest.mark.spec("K-101")
def test_what_is_asked_of_the_workload_is_compared_all_the_same() -> None:
    assert f"{SET} spec.template" in said(replaced(3, template="c"), replaced(1, "a"))
    assert f"{SET} spec.replicas" in said(replaced(3, replicas=5), replaced(1, "a"))
    assert said(replaced(3), replaced(3, "a")) == [f"{POD} spec.image"], "the reference was done"
