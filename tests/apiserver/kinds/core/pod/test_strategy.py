"""Creation and deletion of pods."""

from __future__ import annotations

import pytest

from konverge.apiserver import kinds
from konverge.apiserver.strategy import Obj
from tests.apiserver.kinds.core.pod.pods import pod
from tests.apiserver.kinds.harness import World


@pytest.mark.spec("S-09")
def test_scheduling_gates_show_in_the_status() -> None:
    outcome = World().create("", "Pod", pod(schedulingGates=[{"name": "example.com/a"}]))
    assert outcome.obj["status"]["conditions"][0]["reason"] == "SchedulingGated"
    both = World().create("", "Pod", pod(schedulingGates=[{"name": "example.com/a"}], nodeName="n"))
    assert both.texts == ["spec.nodeName: Forbidden: cannot be set until all schedulingGates have been cleared"]


@pytest.mark.spec("S-09")
def test_label_keys_become_expressions_once() -> None:
    term = {"topologyKey": "z", "labelSelector": {"matchLabels": {"a": "b"}}, "matchLabelKeys": ["app"]}
    affinity = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    body = pod(affinity=affinity)
    body["metadata"]["labels"] = {"app": "x"}
    spec = World().create("", "Pod", body).obj["spec"]
    made = spec["affinity"]["podAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][0]["labelSelector"]
    assert made["matchExpressions"] == [{"key": "app", "operator": "In", "values": ["x"]}]


@pytest.mark.spec("S-10")
def test_the_grace_period_of_a_deletion() -> None:
    period = kinds.lookup("", "Pod").grace_period
    assert period is not None
    running: Obj = {"spec": {"nodeName": "n", "terminationGracePeriodSeconds": 30}, "status": {"phase": "Running"}}
    assert (period(running, None), period(running, 5), period(running, -1)) == (30, 5, 1)
    assert period({**running, "status": {"phase": "Failed"}}, None) == 0
    assert period({**running, "spec": {}}, 30) == 0
