"""Creates, updates, patches and applies in random order, on the real server and on ours: the same answers.

Compared are code, message and the whole object, with managedFields as sets of paths; names that a server makes up (uid,
resourceVersion, times) are taken out.
"""

from __future__ import annotations

import http.client
import json
import ssl
import subprocess
import sys
from collections.abc import Iterator
from itertools import count
from typing import Any
from urllib.parse import urlencode, urlsplit

import pytest
import yaml
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tools.control_plane import ControlPlane

Obj = dict[str, Any]
NAMESPACE = "apply-real"
NAMES = count()


class Side:
    """One of the two servers."""

    def __init__(self, url: str, token: str, ca_file: str | None = None) -> None:
        parts = urlsplit(url)
        assert parts.hostname
        if parts.scheme == "https":
            context = ssl.create_default_context(cafile=ca_file)
            self.connection = http.client.HTTPSConnection(parts.hostname, parts.port, context=context)
        else:
            self.connection = http.client.HTTPConnection(parts.hostname, parts.port)
        self.headers = {"Authorization": f"Bearer {token}", "User-Agent": "differ/1"}

    def send(self, method: str, path: str, body: Any = None, media: str = "application/json", **query: str) -> Any:
        headers = {**self.headers, "Content-Type": media}
        target = f"{path}?{urlencode(query)}" if query else path
        self.connection.request(method, target, None if body is None else json.dumps(body), headers)
        response = self.connection.getresponse()
        data = response.read()
        return response.status, json.loads(data) if data[:1] == b"{" else data.decode()


@pytest.fixture(scope="module")
def sides(real_server: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Side, Side]]:
    kubeconfig = tmp_path_factory.mktemp("ours") / "kubeconfig"
    command = [sys.executable, "-m", "konverge.cli.main", "apiserver", "--kubeconfig", str(kubeconfig)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        url = process.stdout.readline().split()[1]
        token = yaml.safe_load(kubeconfig.read_text())["users"][0]["user"]["token"]
        pair = Side(real_server.url, real_server.token, str(real_server.ca_file)), Side(url, token)
        try:
            for side in pair:
                prepare(side)
            yield pair
        finally:
            process.terminate()
            for side in pair:
                side.connection.close()


def prepare(side: Side) -> None:
    side.send("POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
    code, answer = side.send("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", CRD)
    assert code == 201, answer
    while True:
        code, _ = side.send("GET", f"/apis/differ.example.com/v1/namespaces/{NAMESPACE}/stacks")
        if code == 200:
            break
    # The first creation of a custom resource may still be refused while the definition settles.
    while True:
        probe = {"apiVersion": "differ.example.com/v1", "kind": "Stack", "metadata": {"name": "probe"}}
        code, _ = side.send("POST", f"/apis/differ.example.com/v1/namespaces/{NAMESPACE}/stacks", probe)
        if code in (201, 409):
            break


STRING = {"type": "string"}
PORT = {
    "type": "object",
    "required": ["port"],
    "properties": {"port": {"type": "integer"}, "proto": {"type": "string", "default": "TCP"}, "name": STRING},
}
SPEC = {
    "type": "object",
    "properties": {
        "ports": {
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["port", "proto"],
            "items": PORT,
        },
        "tags": {"type": "array", "x-kubernetes-list-type": "set", "items": STRING},
        "args": {"type": "array", "items": STRING},
        "env": {"type": "object", "additionalProperties": STRING},
        "atom": {"type": "object", "x-kubernetes-map-type": "atomic", "properties": {"a": STRING, "b": STRING}},
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        "n": {"type": "integer"},
    },
}
CRD: Obj = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "stacks.differ.example.com"},
    "spec": {
        "group": "differ.example.com",
        "scope": "Namespaced",
        "names": {"plural": "stacks", "kind": "Stack"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": SPEC,
                            "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                        },
                    }
                },
            }
        ],
    },
}


def some(**members: st.SearchStrategy[Any]) -> st.SearchStrategy[Obj]:
    """An object with any of these members."""
    return st.fixed_dictionaries({}, optional=members)


small = st.sampled_from(["1", "2", "3"])
numbers = st.integers(1, 3)
maps = st.dictionaries(st.sampled_from(["a", "b", "c"]), small, max_size=3)
metadata = some(labels=maps, annotations=maps)


def unique(key: Any, items: st.SearchStrategy[Any]) -> st.SearchStrategy[list[Any]]:
    return st.lists(items, max_size=3, unique_by=key)


config_maps = some(metadata=metadata, data=maps, immutable=st.just(False))
stacks = some(
    metadata=metadata,
    spec=some(
        ports=unique(
            lambda port: (port["port"], port.get("proto", "TCP")),
            st.fixed_dictionaries(
                {"port": numbers}, optional={"proto": st.sampled_from(["TCP", "UDP"]), "name": small}
            ),
        ),
        tags=unique(lambda tag: tag, small),
        args=st.lists(small, max_size=2),
        env=maps,
        atom=some(a=small, b=small),
        free=st.dictionaries(st.sampled_from(["x", "y"]), st.one_of(small, numbers, maps, st.lists(small)), max_size=2),
        n=numbers,
    ),
    status=some(phase=small, more=maps),
)
containers = st.fixed_dictionaries(
    {"name": st.sampled_from(["a", "b"]), "image": small},
    optional={
        "args": st.lists(small, max_size=2),
        "env": unique(lambda env: env["name"], st.fixed_dictionaries({"name": small}, optional={"value": small})),
        "ports": unique(
            lambda port: (port["containerPort"], port.get("protocol", "TCP")),
            st.fixed_dictionaries({"containerPort": numbers}, optional={"protocol": st.sampled_from(["TCP", "UDP"])}),
        ),
        "resources": some(limits=st.fixed_dictionaries({}, optional={"cpu": st.sampled_from(["1", "2", "500m"])})),
    },
)
deployments = st.builds(
    lambda meta, replicas, items, grace: {
        "metadata": meta,
        "spec": {
            **({"replicas": replicas} if replicas else {}),
            "selector": {"matchLabels": {"app": "x"}},
            "template": {
                "metadata": {"labels": {"app": "x"}},
                "spec": {"containers": items, **({"terminationGracePeriodSeconds": grace} if grace else {})},
            },
        },
    },
    metadata,
    st.one_of(st.none(), numbers),
    st.lists(containers, min_size=1, max_size=2, unique_by=lambda item: item["name"]),
    st.one_of(st.none(), numbers),
)

managers = st.sampled_from(["one", "two", "three"])
JSON, APPLY = "application/json", "application/apply-patch+yaml"
MERGE, STRATEGIC = "application/merge-patch+json", "application/strategic-merge-patch+json"


def steps(objects: st.SearchStrategy[Obj], patches: list[str]) -> st.SearchStrategy[list[Any]]:
    step = st.tuples(
        st.sampled_from(["POST", "PUT", *patches, APPLY, APPLY, APPLY]), managers, st.booleans(), objects, st.booleans()
    )
    return st.lists(step, min_size=3, max_size=8)


def perform(side: Side, collection: str, kind: Obj, name: str, step: Any) -> Any:
    verb, manager, force, obj, status = step
    where = f"{collection}/{name}" + ("/status" if status and "status" in obj else "")
    meta = {**obj.get("metadata", {}), "name": name}
    body = {**kind, **obj, "metadata": meta}
    if verb == "POST":
        return side.send("POST", collection, body, fieldManager=manager)
    if verb == "PUT":
        code, live = side.send("GET", f"{collection}/{name}")
        version = live["metadata"].get("resourceVersion", "") if code == 200 else ""
        return side.send("PUT", where, {**body, "metadata": {**meta, "resourceVersion": version}}, fieldManager=manager)
    if verb == APPLY:
        forced = {"force": "true"} if force else {}
        return side.send("PATCH", where, body, APPLY, fieldManager=manager, **forced)
    return side.send("PATCH", where, obj, verb, fieldManager=manager)


def normal(answer: Any) -> Any:
    """An answer without what each server makes up."""
    code, body = answer
    if not isinstance(body, dict):
        return answer
    meta = dict(body.get("metadata") or {})
    for name in ("uid", "resourceVersion", "creationTimestamp"):
        meta.pop(name, None)
    entries = [{**entry, "time": bool(entry.get("time"))} for entry in meta.get("managedFields", [])]
    meta["managedFields"] = sorted(entries, key=lambda entry: json.dumps(entry, sort_keys=True))
    details = body.get("details")
    if isinstance(details, dict) and "causes" in details:
        details = {**details, "causes": sorted(details["causes"], key=str)}
    message = sorted(str(body.get("message")).split("\n")) if code == 409 else body.get("message")
    return code, {**body, "metadata": meta, "details": details, "message": message}


def differences(ours: Any, real: Any, path: str = "") -> list[str]:
    """Where two answers differ, a line each: a failure is read by people."""
    if isinstance(ours, dict) and isinstance(real, dict):
        return [line for key in {**real, **ours} for line in differences(ours.get(key), real.get(key), f"{path}.{key}")]
    if isinstance(ours, list | tuple) and isinstance(real, list | tuple) and len(ours) == len(real):
        pairs = zip(ours, real, strict=True)
        return [line for i, (a, b) in enumerate(pairs) for line in differences(a, b, f"{path}[{i}]")]
    return [] if ours == real else [f"{path}: ours {json.dumps(ours)}, real {json.dumps(real)}"]


def compared(sides: tuple[Side, Side], collection: str, kind: Obj, sequence: list[Any]) -> None:
    name = f"o{next(NAMES)}"
    done = []
    for step in sequence:
        real, ours = (perform(side, collection, kind, name, step) for side in sides)
        done.append(step)
        assert differences(normal(ours), normal(real)) == [], f"after {json.dumps(done)}"


thorough = settings(
    max_examples=60,
    deadline=None,
    derandomize=True,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@pytest.mark.spec("S-07")
@thorough
@given(sequence=steps(config_maps, [MERGE, STRATEGIC]))
def test_config_maps(sides: tuple[Side, Side], sequence: list[Any]) -> None:
    compared(sides, f"/api/v1/namespaces/{NAMESPACE}/configmaps", {"apiVersion": "v1", "kind": "ConfigMap"}, sequence)


@pytest.mark.spec("S-07")
@thorough
@given(sequence=steps(stacks, [MERGE]))
def test_custom_resources(sides: tuple[Side, Side], sequence: list[Any]) -> None:
    kind = {"apiVersion": "differ.example.com/v1", "kind": "Stack"}
    compared(sides, f"/apis/differ.example.com/v1/namespaces/{NAMESPACE}/stacks", kind, sequence)


@pytest.mark.spec("S-07")
@thorough
@given(sequence=steps(deployments, [MERGE, STRATEGIC]))
def test_deployments(sides: tuple[Side, Side], sequence: list[Any]) -> None:
    kind = {"apiVersion": "apps/v1", "kind": "Deployment"}
    compared(sides, f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments", kind, sequence)
