"""The real server and ours side by side: the same request to both, and the differences of their answers."""

from __future__ import annotations

import base64
import http.client
import json
import ssl
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

from hypothesis import HealthCheck, Phase, settings

from konverge.wire.tls import TlsOptions
from tests.real.embedded import embedded_server
from tools.control_plane import ControlPlane

Obj = dict[str, Any]
NAMESPACE = "side-by-side"


class Side:
    """One of the two servers."""

    def __init__(self, url: str, token: str = "", tls: ssl.SSLContext | None = None) -> None:
        parts = urlsplit(url)
        assert parts.hostname
        self.host, self.port, self.tls = parts.hostname, parts.port, tls
        if parts.scheme == "https":
            self.connection: http.client.HTTPConnection = http.client.HTTPSConnection(
                parts.hostname, parts.port, context=tls
            )
        else:
            self.connection = http.client.HTTPConnection(parts.hostname, parts.port)
        self.headers = {"User-Agent": "differ/1"} | ({"Authorization": f"Bearer {token}"} if token else {})

    def send(self, method: str, path: str, body: Any = None, media: str = "application/json", **query: str) -> Any:
        headers = {**self.headers, "Content-Type": media}
        target = f"{path}?{urlencode(query)}" if query else path
        self.connection.request(method, target, None if body is None else json.dumps(body), headers)
        response = self.connection.getresponse()
        self.warnings = response.headers.get_all("Warning") or []
        data = response.read()
        return response.status, json.loads(data) if data[:1] == b"{" else data.decode()

    def close(self) -> None:
        self.connection.close()


def real_side_of(plane: ControlPlane) -> Side:
    return Side(plane.url, plane.token, ssl.create_default_context(cafile=str(plane.ca_file)))


def side_of(kubeconfig: Path) -> Side:
    """A server by the client certificate of a kubeconfig in JSON."""
    config = json.loads(kubeconfig.read_text())
    cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
    tls = TlsOptions(
        ca_data=base64.b64decode(cluster["certificate-authority-data"]),
        certificate_data=base64.b64decode(user["client-certificate-data"]),
        key_data=base64.b64decode(user["client-key-data"]),
    )
    return Side(cluster["server"], tls=tls.context())


@contextmanager
def our_side(folder: Path) -> Iterator[Side]:
    """Ours in plain HTTP with a token: the kubeconfig of a TLS server has a certificate in its place."""
    with embedded_server(folder, tls=False) as path:
        kubeconfig = json.loads(path.read_text())
        url, token = kubeconfig["clusters"][0]["cluster"]["server"], kubeconfig["users"][0]["user"]["token"]
        with closing(Side(url, token)) as side:
            yield side


def prepare(side: Side) -> None:
    side.send("POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
    code, answer = side.send("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", CRD)
    assert code in (201, 409), answer
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
        "mixed": {
            "type": "object",
            "x-kubernetes-preserve-unknown-fields": True,
            "properties": {
                "closed": {"type": "object", "properties": {"a": STRING, "b": STRING}},
                "list": {"type": "array", "items": {"type": "object", "properties": {"a": STRING}}},
            },
        },
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


def normal(answer: Any) -> Any:
    """An answer without what each server generates."""
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
    """Where two answers differ, a line each, so that a person can read the failure."""
    if isinstance(ours, dict) and isinstance(real, dict):
        return [line for key in {**real, **ours} for line in differences(ours.get(key), real.get(key), f"{path}.{key}")]
    if isinstance(ours, list | tuple) and isinstance(real, list | tuple) and len(ours) == len(real):
        pairs = zip(ours, real, strict=True)
        return [line for i, (a, b) in enumerate(pairs) for line in differences(a, b, f"{path}[{i}]")]
    return [] if ours == real else [f"{path}: ours {json.dumps(ours)}, real {json.dumps(real)}"]


def thorough(examples: int) -> Callable[[Any], Any]:
    """So many examples, the same in every run, without shrinking: each costs requests to a real server."""
    return settings(
        max_examples=examples,
        deadline=None,
        derandomize=True,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.filter_too_much],
    )
