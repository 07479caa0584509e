"""autoscaling/v1: what a client of it reads and writes back loses nothing of v2."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from konverge.apiserver.kinds.autoscaling.v1 import from_v2, to_v2

AMOUNTS = st.sampled_from(("1", "500m", "2k", "1Gi"))
NAMES = st.sampled_from(("cpu", "memory", "packets"))
SELECTORS = st.sampled_from(({}, {"matchLabels": {"a": "b"}}))


def averages() -> st.SearchStrategy[Any]:
    value = AMOUNTS.map(lambda amount: {"type": "AverageValue", "averageValue": amount})
    share = st.integers(1, 100).map(lambda percent: {"type": "Utilization", "averageUtilization": percent})
    return st.one_of(value, share)


def identified() -> st.SearchStrategy[Any]:
    return st.builds(lambda name, selector: {"name": name, "selector": selector}, NAMES, SELECTORS)


METRICS = st.one_of(
    st.builds(
        lambda name, target: {"type": "Resource", "resource": {"name": name, "target": target}}, NAMES, averages()
    ),
    st.builds(
        lambda metric, amount: {
            "type": "Pods",
            "pods": {"metric": metric, "target": {"type": "AverageValue", "averageValue": amount}},
        },
        identified(),
        AMOUNTS,
    ),
    st.builds(
        lambda metric, amount: {
            "type": "Object",
            "object": {
                "describedObject": {"kind": "K", "name": "n", "apiVersion": "v1"},
                "metric": metric,
                "target": {"type": "Value", "value": amount},
            },
        },
        identified(),
        AMOUNTS,
    ),
    st.builds(
        lambda metric, amount: {
            "type": "External",
            "external": {"metric": metric, "target": {"type": "Value", "value": amount}},
        },
        identified(),
        AMOUNTS,
    ),
    st.builds(
        lambda target: {
            "type": "ContainerResource",
            "containerResource": {"name": "cpu", "container": "c", "target": target},
        },
        averages(),
    ),
)


def is_cpu_share(metric: Any) -> bool:
    resource = metric.get("resource") or {}
    return resource.get("name") == "cpu" and resource["target"]["type"] == "Utilization"


@pytest.mark.spec("S-09")
@given(metrics=st.lists(METRICS, min_size=1, max_size=4), note=st.booleans())
def test_an_autoscaler_is_converted_to_v1_and_back(metrics: list[Any], note: bool) -> None:
    shares = [metric for metric in metrics if is_cpu_share(metric)]
    others = [metric for metric in metrics if not is_cpu_share(metric)]
    stored = others + shares[:1]  # v1 has room for one share of the CPU, and puts it last
    metadata: dict[str, Any] = {"name": "x", **({"annotations": {"kept": "1"}} if note else {})}
    spec = {"maxReplicas": 3, "minReplicas": 1, "metrics": stored}
    obj = {
        "metadata": metadata,
        "spec": spec,
        "status": {"desiredReplicas": 0, "currentReplicas": 0, "currentMetrics": None},
    }
    seen = from_v2(copy.deepcopy(obj))
    assert "metrics" not in seen["spec"]
    assert to_v2(seen) == obj


@pytest.mark.spec("S-09")
def test_behaviour_is_kept_in_an_annotation_as_the_internal_struct() -> None:
    behavior = {"scaleDown": {"selectPolicy": "Max", "policies": [{"type": "Pods", "value": 1, "periodSeconds": 5}]}}
    obj = {"metadata": {"name": "x"}, "spec": {"maxReplicas": 1, "behavior": copy.deepcopy(behavior)}, "status": {}}
    seen = from_v2(obj)
    text = seen["metadata"]["annotations"]["autoscaling.alpha.kubernetes.io/behavior"]
    assert text.startswith('{"ScaleUp":null,"ScaleDown":{"StabilizationWindowSeconds":null,"SelectPolicy":"Max"')
    assert to_v2(seen)["spec"]["behavior"] == behavior


@pytest.mark.spec("S-15")
@pytest.mark.parametrize("text", ["", "{", "[1]", "7", '{"a":1}', "null"])
def test_annotations_that_cannot_be_read_are_ignored(text: str) -> None:
    kinds = ("metrics", "behavior", "conditions", "current-metrics")
    notes = {f"autoscaling.alpha.kubernetes.io/{kind}": text for kind in kinds}
    autoscaler = to_v2({"metadata": {"annotations": notes}, "spec": {"maxReplicas": 1}})
    assert autoscaler["spec"]["metrics"][0]["resource"]["target"]["averageUtilization"] == 80
    assert "annotations" not in autoscaler["metadata"]
