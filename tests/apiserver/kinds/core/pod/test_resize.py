"""/resize of a pod."""

from __future__ import annotations

from typing import Any

import pytest

from konverge.apiserver.strategy import Obj
from tests.apiserver.kinds.core.pod.pods import pod, stored_pod


def sized(cpu: str, **more: Any) -> Obj:
    return {"name": "c", "image": "app:1", "resources": {"limits": {"cpu": cpu}, "requests": {"cpu": "1"}}, **more}


@pytest.mark.spec("S-03", "S-09")
def test_resize_changes_sizes_within_the_quality_of_service() -> None:
    world = stored_pod(pod(containers=[sized("2")]))
    grown = world.patch("", "Pod", "p", {"spec": {"containers": [sized("3")], "hostname": "h"}}, subresource="resize")
    assert not grown.errors
    assert grown.obj["spec"]["containers"][0]["resources"]["limits"] == {"cpu": "3"}
    assert "hostname" not in grown.obj["spec"]
    bare = {"name": "c", "image": "app:1"}
    lost = world.patch("", "Pod", "p", {"spec": {"containers": [bare]}}, subresource="resize")
    assert 'spec: Invalid value: "Burstable": Pod QOS Class may not change as a result of resizing' in lost.texts
    assert "spec.containers[0].resources.requests: Forbidden: resource requests cannot be removed" in lost.texts
