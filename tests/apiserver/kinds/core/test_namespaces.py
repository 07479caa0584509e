"""Namespaces."""

from __future__ import annotations

import pytest

from tests.apiserver.kinds.harness import Change, named, stored


@pytest.mark.spec("S-09")
@pytest.mark.parametrize(
    "change",
    [
        Change("Namespace", named(), {"spec": {"finalizers": []}, "metadata": {"labels": None}}, []),
        Change(
            "Namespace",
            named(),
            {"spec": {"finalizers": ["x"]}},
            [
                'spec.finalizers[0]: Invalid value: "x": '
                "name is neither a standard finalizer name nor is it fully qualified"
            ],
            "finalize",
        ),
        Change(
            "Namespace",
            named(),
            {"status": {"phase": "Terminating"}},
            ["status.Phase: Invalid value: \"Terminating\": may only be 'Active' if `deletionTimestamp` is empty"],
            "status",
        ),
    ],
)
def test_finalizers_and_phase_are_checked_on_update(change: Change) -> None:
    change.check()


@pytest.mark.spec("S-09")
def test_a_namespace_keeps_its_label_and_its_finalizers() -> None:
    change = {"spec": {"finalizers": []}, "metadata": {"labels": None}, "status": {"phase": "Terminating"}}
    obj = stored("Namespace", named()).patch("", "Namespace", "x", change).obj
    assert obj["metadata"]["labels"] == {"kubernetes.io/metadata.name": "x"}
    assert obj["spec"]["finalizers"] == ["kubernetes"]
    assert obj["status"] == {"phase": "Active"}
