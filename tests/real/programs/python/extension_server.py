"""An extension API server in one file, as a user might write one: TLS, the front proxy's word, rights by delegation.

    python extension_server.py KUBECONFIG PORT CERTIFICATE KEY

It believes what the headers say about the user if the connection shows a certificate that
`extension-apiserver-authentication` in kube-system names, and asks the API server in front of it what that user may do.
"""

from __future__ import annotations

import base64
import hashlib
import http.client
import json
import ssl
import sys
import tempfile
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

GROUP = "wardrobe.example.com"
API = f"/apis/{GROUP}"
AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
KIND = {"group": GROUP, "version": "v1", "kind": "Coat"}
VERSION = {"groupVersion": f"{GROUP}/v1", "version": "v1"}
META = "io.k8s.apimachinery.pkg.apis.meta.v1"


def _ref(name: str, what: str = "definitions") -> dict[str, str]:
    return {"$ref": f"#/{what}/{name}"}


def _operation(kind: str, *parameters: Any) -> dict[str, Any]:
    answer = {"description": "OK", "schema": _ref(kind)}
    operation: dict[str, Any] = {"description": kind, "operationId": kind, "responses": {"200": answer}}
    return {**operation, "parameters": list(parameters)} if parameters else operation


_TIME = (
    "Time is a wrapper around time.Time which supports correct marshaling to YAML and JSON.  Wrappers are provided for "
    "many of the factory methods that the time package offers."
)
_EVENT = (
    "Object is:\n * If Type is Added or Modified: the new state of the object.\n * If Type is Deleted: the state of "
    "the object immediately before deletion.\n * If Type is Error: *Status is recommended; other types may make "
    "sense\n   depending on context."
)
_OTHER = {"group": GROUP, "version": "v1", "kind": "WatchEvent"}
_DIFFERENT = "Another one."
SWAGGER: dict[str, Any] = {
    "swagger": "2.0",
    "info": {"title": "wardrobe", "version": "v0"},
    "paths": {
        f"{API}/v1/namespaces/{{namespace}}/coats": {
            "get": _operation("com.example.CoatList", _ref("allowWatchBookmarks-HC2hJt-J", "parameters")),
            "post": _operation(
                "com.example.Coat",
                {"name": "body", "in": "body", "required": True, "schema": _ref("com.example.Coat")},
                _ref("warm", "parameters"),
            ),
            "parameters": [_ref("pretty-tJGM1-ng", "parameters")],
        },
        f"{API}/v1/watch": {"get": _operation(f"{META}.WatchEvent")},
        f"{API}/v2/coats": {"get": _operation("com.example.OtherCoat")},
        "/apis/apps/v1/deployments": {"get": _operation("com.example.Stranger")},
        "/version/": {"get": _operation("com.example.Stranger")},
    },
    "definitions": {
        "com.example.Coat": {
            "type": "object",
            "description": "Coat keeps warm.",
            "required": ["size"],
            "properties": {
                "apiVersion": {"type": "string"},
                "kind": {"type": "string"},
                "metadata": _ref(f"{META}.ObjectMeta"),
                "made": _ref(f"{META}.Time"),
                "size": {"type": "integer", "format": "int32", "default": 3},
                "pockets": {"type": "array", "items": _ref("com.example.Pocket")},
            },
            "x-kubernetes-group-version-kind": [KIND],
        },
        "com.example.CoatList": {
            "type": "object",
            "properties": {"items": {"type": "array", "items": _ref("com.example.Coat")}},
        },
        "com.example.Pocket": {"type": "object", "properties": {"inner": _ref("com.example.Pocket")}},
        "com.example.OtherCoat": {"type": "object"},
        "com.example.Stranger": {"type": "object"},
        "com.example.Unused": {"type": "object", "properties": {"made": _ref(f"{META}.Time")}},
        f"{META}.ObjectMeta": {"type": "object", "description": _DIFFERENT, "properties": {"name": {"type": "string"}}},
        f"{META}.Time": {"description": _TIME, "type": "string", "format": "date-time"},
        f"{META}.WatchEvent": {
            "type": "object",
            "description": "Event represents a single event to a watched resource.",
            "required": ["type", "object"],
            "properties": {
                "object": {
                    "$ref": "#/definitions/io.k8s.apimachinery.pkg.runtime.RawExtension",
                    "description": _EVENT,
                },
                "type": {"type": "string"},
            },
            "x-kubernetes-group-version-kind": [_OTHER],
        },
        "io.k8s.apimachinery.pkg.runtime.RawExtension": {"type": "object", "description": _DIFFERENT},
    },
    "parameters": {
        "allowWatchBookmarks-HC2hJt-J": {"name": "other", "in": "query", "type": "string"},
        "pretty-tJGM1-ng": {"name": "pretty", "in": "query", "type": "string"},
        "warm": {"name": "warm", "in": "query", "type": "boolean"},
        "unused": {"name": "unused", "in": "query", "type": "boolean"},
    },
}
DOCUMENTS: dict[str, Any] = {
    "/apis": {"kind": "APIGroupList", "apiVersion": "v1", "groups": []},
    API: {"kind": "APIGroup", "apiVersion": "v1", "name": GROUP, "versions": [VERSION], "preferredVersion": VERSION},
    f"{API}/v1": {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": f"{GROUP}/v1",
        "resources": [
            {"name": "coats", "singularName": "coat", "namespaced": True, "kind": "Coat", "verbs": ["get", "list"]},
            {"name": "coats/brush", "singularName": "", "namespaced": True, "kind": "Coat", "verbs": ["get"]},
        ],
    },
    "/openapi/v3": {"paths": {f"apis/{GROUP}/v1": {"serverRelativeURL": f"/openapi/v3/apis/{GROUP}/v1?hash=C0A7"}}},
    f"/openapi/v3/apis/{GROUP}/v1": {"openapi": "3.0.0", "info": {"title": "wardrobe"}, "paths": {}},
    "/openapi/v2": SWAGGER,
}
DISCOVERY = {
    "kind": "APIGroupDiscoveryList",
    "apiVersion": "apidiscovery.k8s.io/v2",
    "metadata": {},
    "items": [
        {
            "metadata": {"name": GROUP},
            "versions": [
                {
                    "version": "v1",
                    "resources": [
                        {
                            "resource": "coats",
                            "responseKind": KIND,
                            "scope": "Namespaced",
                            "singularResource": "coat",
                            "verbs": ["get", "list"],
                            "shortNames": ["ct"],
                            "categories": ["all"],
                            "subresources": [
                                {
                                    "subresource": "brush",
                                    "responseKind": KIND,
                                    "acceptedTypes": [KIND],
                                    "verbs": ["get"],
                                }
                            ],
                        }
                    ],
                    "freshness": "Current",
                }
            ],
        }
    ],
}


class Front:
    """The API server in front, asked by the client certificate of a kubeconfig in JSON."""

    def __init__(self, kubeconfig: Path) -> None:
        config = json.loads(kubeconfig.read_text())
        cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        self._url = urlsplit(cluster["server"])
        self._tls = ssl.create_default_context(cadata=_text(cluster["certificate-authority-data"]))
        with tempfile.NamedTemporaryFile("w") as file:
            file.write(_text(user["client-certificate-data"]) + _text(user["client-key-data"]))
            file.flush()
            self._tls.load_cert_chain(file.name)

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        connection = http.client.HTTPSConnection(str(self._url.hostname), self._url.port, context=self._tls)
        connection.request(method, path, json.dumps(body) if body else None, {"Content-Type": "application/json"})
        try:
            return json.loads(connection.getresponse().read())
        finally:
            connection.close()

    def allows(self, user: dict[str, Any], verb: str, path: str, resource: dict[str, str]) -> tuple[bool, str]:
        about = {"resourceAttributes": {**resource, "verb": verb}} if resource else {}
        about = about or {"nonResourceAttributes": {"path": path, "verb": verb}}
        review = self.ask("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", {"spec": {**user, **about}})
        return review["status"]["allowed"], review["status"].get("reason", "")


def _text(data: str) -> str:
    return base64.b64decode(data).decode()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    front: Front
    proxies: list[str]
    more = threading.Semaphore(0)

    def user(self) -> dict[str, Any] | None:
        """Who asks: the front proxy knows, or the API server knows their token."""
        shown = dict(part[0] for part in (self.connection.getpeercert() or {}).get("subject", ()))  # type: ignore[attr-defined]
        if shown.get("commonName") in self.proxies:
            prefix = "x-remote-extra-"
            extra: dict[str, list[str]] = {}
            for name, value in self.headers.items():
                if name.lower().startswith(prefix):
                    extra.setdefault(name.lower().removeprefix(prefix), []).append(value)
            groups = {*(self.headers.get_all("X-Remote-Group") or ()), "system:authenticated"}
            return {"user": self.headers["X-Remote-User"], "groups": sorted(groups), "extra": extra}
        token = (self.headers["Authorization"] or "").removeprefix("Bearer ")
        review = self.front.ask(
            "POST", "/apis/authentication.k8s.io/v1/tokenreviews", {"spec": {"token": token or "-"}}
        )
        known = review["status"].get("user")
        return {"user": known["username"], "groups": known.get("groups", [])} if known else None

    def do_GET(self) -> None:
        self.body = self.rfile.read(int(self.headers["Content-Length"] or 0))
        user, url = self.user(), urlsplit(self.path)
        if user is None:
            self.answer(401, {"kind": "Status", "message": "Unauthorized", "code": 401})
            return
        parts = url.path.removeprefix(f"{API}/v1/namespaces/").split("/") if "/namespaces/" in url.path else []
        resource = {"group": GROUP, "resource": "coats", "namespace": parts[0]} if parts else {}
        if "system:masters" not in user["groups"]:
            allowed, why = self.front.allows(user, "get", url.path, resource)
            if not allowed:
                self.answer(403, {"kind": "Status", "message": f"{user['user']} may not: {why}", "code": 403})
                return
        if url.path == "/apis" and "APIGroupDiscoveryList" in (self.headers["Accept"] or ""):
            self.answer(200, DISCOVERY, AGGREGATED)
        elif url.path in DOCUMENTS:
            self.answer(200, DOCUMENTS[url.path])
        elif parts[1:2] == ["coats"]:
            self.coats(user, "/".join(parts[2:]), parse_qs(url.query))
        else:
            self.answer(404, {"kind": "Status", "message": f"no {self.path} here", "code": 404})

    do_POST = do_PUT = do_PATCH = do_DELETE = do_GET  # noqa: N815 - the names that the library looks for

    def coats(self, user: dict[str, Any], what: str, query: dict[str, list[str]]) -> None:
        if query.get("watch"):
            self.stream()
        elif what == "me":
            sent = {name: self.headers.get_all(name) for name in ("X-Mine", "Authorization", "Impersonate-User")}
            self.answer(200, {"user": user, "sent": sent, "path": self.path, "body": self.body.decode()})
        elif what == "next":
            self.more.release()
            self.answer(200, {})
        elif what == "held":
            self.more.acquire()
            self.answer(200, {})
        elif what == "slow":
            time.sleep(3)
            self.answer(200, {})
        elif what == "redirect":
            self.answer(302, {}, Location="/elsewhere")
        elif what == "odd":
            self.answer(
                418, {"kind": "Teapot"}, "application/x-odd+json", X_Odd="1", Retry_After="7", Warning='299 - "tea"'
            )
        elif what == "nothing":
            self.send_response(204)
            self.end_headers()
        elif what == "gone":
            self.close_connection = True  # without a word
        elif what == "brush":
            self.upgrade()
        else:
            self.answer(200, {"kind": "CoatList", "apiVersion": f"{GROUP}/v1", "metadata": {}, "items": []})

    def answer(self, code: int, document: Any, media: str = "application/json", **headers: str) -> None:
        data = json.dumps(document).encode()
        self.send_response(code)
        for name, value in {"Content-Type": media, "Content-Length": str(len(data)), **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(data)

    def stream(self) -> None:
        """Three events, each in a chunk of its own; whoever has got one asks for `coats/next`."""
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for number in range(3):
            line = json.dumps({"type": "ADDED", "object": {"number": number}}).encode() + b"\n"
            self.wfile.write(f"{len(line):x}\r\n".encode() + line + b"\r\n")
            self.more.acquire()
        self.wfile.write(b"0\r\n\r\n")

    def upgrade(self) -> None:
        """A WebSocket that says one word, and echoes the first frame that it gets."""
        key = (self.headers["Sec-WebSocket-Key"] or "") + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
        self.send_response(101)
        for name, value in (("Upgrade", "websocket"), ("Connection", "Upgrade")):
            self.send_header(name, value)
        self.send_header("Sec-WebSocket-Accept", base64.b64encode(hashlib.sha1(key.encode()).digest()).decode())
        self.end_headers()
        self.wfile.write(b"\x81\x05hello")
        head = self.rfile.read(6)
        data = bytes(byte ^ head[2 + i % 4] for i, byte in enumerate(self.rfile.read(head[1] & 0x7F)))
        self.wfile.write(b"\x81" + bytes((len(data),)) + data)
        self.close_connection = True

    def log_message(self, format: str, *args: Any) -> None:
        pass


def main() -> None:
    kubeconfig, port, certificate, key = sys.argv[1:]
    front = Front(Path(kubeconfig))
    path = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication"
    trusted = front.ask("GET", path)["data"]
    if not trusted.get("requestheader-client-ca-file") or not trusted.get("client-ca-file"):
        sys.exit("extension-apiserver-authentication does not say whom to believe")  # as servers by k8s.io/apiserver do
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificate, key)
    tls.load_verify_locations(cadata=trusted["requestheader-client-ca-file"])
    tls.verify_mode = ssl.CERT_OPTIONAL
    Handler.front, Handler.proxies = front, json.loads(trusted["requestheader-allowed-names"])
    server = ThreadingHTTPServer(("127.0.0.1", int(port)), Handler)
    server.daemon_threads = True
    server.socket = tls.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    threading.Thread(target=server.serve_forever).start()


if __name__ == "__main__":
    main()
