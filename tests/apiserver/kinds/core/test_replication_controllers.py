"""ReplicationControllers."""

from __future__ import annotations

import pytest

from tests.apiserver.kinds.harness import Change, named

CONTROLLER = named(
    spec={
        "selector": {"a": "b"},
        "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i:1"}]}},
    }
)


@pytest.mark.spec("S-09")
@pytest.mark.parametrize(
    "change",
    [
        Change(
            "ReplicationController",
            CONTROLLER,
            {"spec": {"replicas": -1, "minReadySeconds": -1, "selector": {"a": "c"}}},
            [
                'spec.template.metadata.labels: Invalid value: {"a":"b"}: `selector` does not match template `labels`',
                "spec.replicas: Invalid value: -1: must be greater than or equal to 0",
                "spec.minReadySeconds: Invalid value: -1: must be greater than or equal to 0",
            ],
        ),
        Change(
            "ReplicationController",
            CONTROLLER,
            {"status": {"replicas": 1, "readyReplicas": 2}},
            ["status.readyReplicas: Invalid value: 2: cannot be greater than status.replicas"],
            "status",
        ),
    ],
)
def test_counts_and_selector_are_checked_on_update(change: Change) -> None:
    change.check()
