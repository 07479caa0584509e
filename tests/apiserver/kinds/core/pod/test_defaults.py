"""Defaults of pods and templates."""

from __future__ import annotations

import pytest

from konverge.apiserver import kinds
from tests.apiserver.kinds.core.pod.pods import pod
from tests.apiserver.kinds.harness import World


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
def test_the_pull_policy_follows_the_tag(image: str, policy: str) -> None:
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
