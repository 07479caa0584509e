"""Warnings about pods."""

from __future__ import annotations

import pytest

from tests.apiserver.kinds.core.pod.pods import pod
from tests.apiserver.kinds.harness import World


@pytest.mark.spec("S-09", "S-10")
def test_repeated_ports_and_variables_are_warned_about() -> None:
    ports = [{"containerPort": 80, "name": "a"}, {"containerPort": 80}]
    env = [{"name": "A", "value": "1"}, {"name": "A", "value": "2"}]
    outcome = World().create("", "Pod", pod(containers=[{"name": "c", "image": "i", "ports": ports, "env": env}]))
    assert outcome.warnings == [
        'spec.containers[0].env[1]: hides previous definition of "A", which may be dropped when using apply',
        "spec.containers[0].ports[1]: duplicate port definition with spec.containers[0].ports[0]",
    ]
