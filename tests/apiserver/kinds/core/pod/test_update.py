"""What may change in a pod."""

from __future__ import annotations

import pytest

from tests.apiserver.kinds.core.pod.pods import pod, stored_pod


@pytest.mark.spec("S-09")
def test_images_may_change_and_little_else() -> None:
    world = stored_pod(pod())
    assert not world.patch("", "Pod", "p", {"spec": {"containers": [{"name": "c", "image": "app:2"}]}}).errors
    refused = world.patch("", "Pod", "p", {"spec": {"hostname": "h"}})
    (error,) = refused.errors
    assert error.path == "spec"
    assert error.detail.startswith("pod updates may not change fields other than")
    assert '\n- "Hostname": "",\n+ "Hostname": "h",\n' in error.detail
    more = world.patch(
        "", "Pod", "p", {"spec": {"containers": [{"name": "c", "image": "a"}, {"name": "d", "image": "b"}]}}
    )
    assert "spec.containers: Forbidden: pod updates may not add or remove containers" in more.texts


@pytest.mark.spec("S-09")
def test_a_gated_pod_may_narrow_its_placement() -> None:
    world = stored_pod(pod(schedulingGates=[{"name": "a/b"}], nodeSelector={"a": "b"}))
    assert not world.patch("", "Pod", "p", {"spec": {"nodeSelector": {"c": "d"}}}).errors
    refused = world.patch("", "Pod", "p", {"spec": {"nodeSelector": {"a": "x"}}})
    assert refused.texts == [
        'spec.nodeSelector: Invalid value: {"a":"x","c":"d"}: '
        "only additions to spec.nodeSelector are allowed (no mutations or deletions)"
    ]


@pytest.mark.spec("S-03", "S-09")
def test_debuggers_are_added_and_never_changed() -> None:
    world = stored_pod(pod())
    path = {"subresource": "ephemeralcontainers"}
    added = world.patch("", "Pod", "p", {"spec": {"ephemeralContainers": [{"name": "d", "image": "x:1"}]}}, **path)
    assert not added.errors
    assert added.obj["metadata"]["generation"] == 1
    changed = world.patch("", "Pod", "p", {"spec": {"ephemeralContainers": [{"name": "d", "image": "x:2"}]}}, **path)
    assert changed.texts[0].startswith(
        'spec.ephemeralContainers: Forbidden: existing ephemeral containers "d" may not be changed\n@@'
    )
    gone = world.patch("", "Pod", "p", {"spec": {"ephemeralContainers": None}}, **path)
    assert "may not be removed" in gone.texts[0]
