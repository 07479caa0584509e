"""Pods: what is filled in, what may change, and through which subresource."""

from __future__ import annotations

from typing import Any

import pytest

from konverge.apiserver import kinds
from konverge.apiserver.kinds.core.pod.resources import quality_of_service, total_of_containers
from konverge.apiserver.strategy import Obj
from tests.apiserver.kinds.harness import World


def pod(name: str = "p", **spec: Any) -> Obj:
    containers = [{"name": "c", "image": "app:1"}]
    return {"metadata": {"name": name}, "spec": {"containers": containers, **spec}}


def sized(cpu: str, **more: Any) -> Obj:
    return {"name": "c", "image": "app:1", "resources": {"limits": {"cpu": cpu}, "requests": {"cpu": "1"}}, **more}


def stored(body: Obj) -> World:
    world = World()
    outcome = world.create("", "Pod", body)
    assert not outcome.errors, outcome.texts
    return world


@pytest.mark.spec("S-09")
@pytest.mark.parametrize(
    ("image", "policy"),
    [
        ("app", "Always"),
        ("app:latest", "Always"),
        ("app:1", "IfNotPresent"),
        ("reg.example.com:5000/a/b", "Always"),
        ("app@sha256:" + "a" * 64, "IfNotPresent"),
        ("Not A Reference", "IfNotPresent"),
        ("x" * 300, "IfNotPresent"),
    ],
)
def test_pull_policy(image: str, policy: str) -> None:
    obj = pod(containers=[{"name": "c", "image": image}])
    kinds.lookup("", "Pod").defaults(obj)
    assert obj["spec"]["containers"][0]["imagePullPolicy"] == policy


@pytest.mark.spec("S-09")
def test_requests_default_to_limits_in_pods_but_not_in_templates() -> None:
    container = {"name": "c", "image": "a", "resources": {"limits": {"cpu": "1"}}}
    outcome = World().create("", "Pod", pod(containers=[container]))
    assert outcome.obj["spec"]["containers"][0]["resources"]["requests"] == {"cpu": "1"}
    template = {"metadata": {"name": "t"}, "template": {"spec": {"containers": [container]}}}
    made = World().create("", "PodTemplate", template)
    assert "requests" not in made.obj["template"]["spec"]["containers"][0]["resources"]


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
def test_quality_of_service(resources: Obj, quality: str) -> None:
    assert quality_of_service({"containers": [{"resources": resources}]}) == quality


def test_init_containers_count_one_at_a_time_and_sidecars_always() -> None:
    def asks(cpu: str, **more: str) -> Obj:
        return {"resources": {"requests": {"cpu": cpu}}, **more}

    spec = {"containers": [asks("1")], "initContainers": [asks("1", restartPolicy="Always"), asks("3"), asks("2")]}
    assert total_of_containers(spec, "requests") == {"cpu": "4"}


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


@pytest.mark.spec("S-09")
def test_images_may_change_and_little_else() -> None:
    world = stored(pod())
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
    world = stored(pod(schedulingGates=[{"name": "a/b"}], nodeSelector={"a": "b"}))
    assert not world.patch("", "Pod", "p", {"spec": {"nodeSelector": {"c": "d"}}}).errors
    refused = world.patch("", "Pod", "p", {"spec": {"nodeSelector": {"a": "x"}}})
    assert refused.texts == [
        'spec.nodeSelector: Invalid value: {"a":"x","c":"d"}: '
        "only additions to spec.nodeSelector are allowed (no mutations or deletions)"
    ]


@pytest.mark.spec("S-03", "S-09")
def test_debuggers_are_added_and_never_changed() -> None:
    world = stored(pod())
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


@pytest.mark.spec("S-03", "S-09")
def test_resize_changes_sizes_within_the_quality_of_service() -> None:
    world = stored(pod(containers=[sized("2")]))
    grown = world.patch("", "Pod", "p", {"spec": {"containers": [sized("3")], "hostname": "h"}}, subresource="resize")
    assert not grown.errors
    assert grown.obj["spec"]["containers"][0]["resources"]["limits"] == {"cpu": "3"}
    assert "hostname" not in grown.obj["spec"]
    bare = {"name": "c", "image": "app:1"}
    lost = world.patch("", "Pod", "p", {"spec": {"containers": [bare]}}, subresource="resize")
    assert 'spec: Invalid value: "Burstable": Pod QOS Class may not change as a result of resizing' in lost.texts
    assert "spec.containers[0].resources.requests: Forbidden: resource requests cannot be removed" in lost.texts


@pytest.mark.spec("S-03", "S-09")
def test_an_ended_container_stays_ended_unless_its_policy_says_otherwise() -> None:
    for policy, refused in (("Never", True), ("Always", False), ("OnFailure", False)):
        world = stored(pod(restartPolicy=policy))
        ended = {"status": {"containerStatuses": [{"name": "c", "state": {"terminated": {"exitCode": 1}}}]}}
        assert not world.patch("", "Pod", "p", ended, subresource="status").errors
        again = {"status": {"containerStatuses": [{"name": "c", "state": {"running": {}}}]}}
        assert bool(world.patch("", "Pod", "p", again, subresource="status").errors) == refused


@pytest.mark.spec("S-10")
def test_grace_period() -> None:
    period = kinds.lookup("", "Pod").grace_period
    assert period is not None
    running: Obj = {"spec": {"nodeName": "n", "terminationGracePeriodSeconds": 30}, "status": {"phase": "Running"}}
    assert (period(running, None), period(running, 5), period(running, -1)) == (30, 5, 1)
    assert period({**running, "status": {"phase": "Failed"}}, None) == 0
    assert period({**running, "spec": {}}, 30) == 0


@pytest.mark.spec("S-09", "S-10")
def test_warnings() -> None:
    ports = [{"containerPort": 80, "name": "a"}, {"containerPort": 80}]
    env = [{"name": "A", "value": "1"}, {"name": "A", "value": "2"}]
    outcome = World().create("", "Pod", pod(containers=[{"name": "c", "image": "i", "ports": ports, "env": env}]))
    assert outcome.warnings == [
        'spec.containers[0].env[1]: hides previous definition of "A", which may be dropped when using apply',
        "spec.containers[0].ports[1]: duplicate port definition with spec.containers[0].ports[0]",
    ]


@pytest.mark.spec("S-09")
def test_fields_of_features_that_are_off_are_dropped() -> None:
    container = {
        "name": "c",
        "image": "i",
        "lifecycle": {"stopSignal": "SIGTERM"},
        "livenessProbe": {"httpGet": {"port": 80, "protocol": "HTTP2"}},
        "volumeMounts": [{"name": "v", "mountPath": "/v", "bindMountOptions": ["noexec"]}],
    }
    volumes = [
        {"name": "v", "secret": {"secretName": "s", "defaultUser": 1, "items": [{"key": "k", "path": "p", "user": 1}]}}
    ]
    spec = World().create("", "Pod", pod(containers=[container], volumes=volumes)).obj["spec"]
    kept = spec["containers"][0]
    assert "lifecycle" not in kept
    assert kept["livenessProbe"]["httpGet"] == {"port": 80, "path": "/", "scheme": "HTTP"}
    assert kept["volumeMounts"] == [{"name": "v", "mountPath": "/v"}]
    assert spec["volumes"][0]["secret"] == {"secretName": "s", "defaultMode": 420, "items": [{"key": "k", "path": "p"}]}
