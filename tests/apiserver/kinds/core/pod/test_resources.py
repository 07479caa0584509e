"""Sums of resources, quality of service."""

from __future__ import annotations

import pytest

from konverge.apiserver.kinds.core.pod.resources import quality_of_service, total_of_containers
from konverge.apiserver.strategy import Obj


@pytest.mark.spec("S-09")
@pytest.mark.parametrize(
    ("resources", "quality"),
    [
        ({}, "BestEffort"),
        ({"requests": {"cpu": "1"}}, "Burstable"),
        ({"requests": {"cpu": "1", "memory": "1"}, "limits": {"cpu": "1000m", "memory": "1"}}, "Guaranteed"),
        ({"limits": {"ephemeral-storage": "1Gi"}}, "BestEffort"),
    ],
)
def test_quality_of_service_follows_requests_and_limits(resources: Obj, quality: str) -> None:
    assert quality_of_service({"containers": [{"resources": resources}]}) == quality


def test_init_containers_count_one_at_a_time_and_sidecars_always() -> None:
    def asks(cpu: str, **more: str) -> Obj:
        return {"resources": {"requests": {"cpu": cpu}}, **more}

    spec = {"containers": [asks("1")], "initContainers": [asks("1", restartPolicy="Always"), asks("3"), asks("2")]}
    assert total_of_containers(spec, "requests") == {"cpu": "4"}
