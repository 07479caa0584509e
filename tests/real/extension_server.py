"""An extension API server (tests/real/programs/python/extension_server.py) behind our server, or behind a real one.

The Service in front of it is an ExternalName: no pod network is needed, and a real server accepts no loopback address
in an EndpointSlice.
"""

from __future__ import annotations

import base64
import json
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from konverge.wire import x509
from tests.real.clients.programs import SOURCES
from tests.real.sides import Side, side_of
from tools.control_plane import free_port

GROUP, NAMESPACE, NAME = "wardrobe.example.com", "wardrobe", "wardrobe-server"
SERVICES = "/apis/apiregistration.k8s.io/v1/apiservices"
REGISTERED = f"v1.{GROUP}"
AUTHORITY = x509.authority("wardrobe-ca")
LIMIT = 120.0
_CHANGING = re.compile(
    r"[0-9a-f]{8}-[0-9a-f-]{27}|20\d\d-\d\d-\d\dT[0-9:]+(\.\d+)?Z|(?<=localhost:)\d+|(?<=127\.0\.0\.1:)\d+|(?<=X509SHA256=)[0-9a-f]+"
)


def front_proxy(folder: Path) -> list[str]:
    """The flags of a kube-apiserver that passes requests on, as an authority of its own says."""
    issuer = x509.authority("front-proxy-ca")
    own = x509.issue(issuer, "front-proxy-client", x509.FOR_CLIENTS)
    names = ("ca.crt", "proxy.crt", "proxy.key")
    for name, data in zip(names, (issuer.pem[0], *own.pem), strict=True):
        (folder / name).write_bytes(data)
    return [
        *("--requestheader-client-ca-file", str(folder / "ca.crt"), "--requestheader-allowed-names=front-proxy-client"),
        *("--requestheader-username-headers=X-Remote-User", "--requestheader-group-headers=X-Remote-Group"),
        "--requestheader-extra-headers-prefix=X-Remote-Extra-",
        *("--proxy-client-cert-file", str(folder / "proxy.crt"), "--proxy-client-key-file", str(folder / "proxy.key")),
    ]


@dataclass
class Extended:
    """A server, and the extension server behind it."""

    kubeconfig: Path
    side: Side
    folder: Path
    port: int
    process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        own = x509.issue(AUTHORITY, NAME, x509.FOR_SERVERS, hosts=(f"{NAME}.{NAMESPACE}.svc",))
        files = [self.folder / name for name in ("serving.crt", "serving.key")]
        for path, data in zip(files, own.pem, strict=True):
            path.write_bytes(data)
        program = SOURCES / "python" / "extension_server.py"
        command = [sys.executable, program, self.kubeconfig, str(self.port), *files]
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def stop(self) -> None:
        if self.process is not None:
            self.process.kill()  # as a node that is gone: without a word
            self.process.wait()
            self.process = None

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, dict[str, str], Any]:
        """Status, some header fields and answer, without what must differ."""
        fields = {name.replace("_", "-"): text for name, text in headers.items()}
        if body is not None:
            fields.setdefault("Content-Type", "application/json")
        sent = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        self.side.connection.request(method, path, sent, {**self.side.headers, **fields})
        response = self.side.connection.getresponse()
        text = _CHANGING.sub("?", response.read().decode(errors="replace"))
        names = ("Content-Type", "Location", "Warning", "X-Odd", "Retry-After")
        shown = {name: response.headers[name] for name in names if name in response.headers}
        is_json = text[:1] == "{" and "json" in shown.get("Content-Type", "")
        return response.status, shown, json.loads(text) if is_json else text

    def register(self, version: str = "v1", **spec: Any) -> None:
        whole = {
            "group": GROUP,
            "version": version,
            "groupPriorityMinimum": 1000,
            "versionPriority": 15,
            "service": {"namespace": NAMESPACE, "name": NAME, "port": self.port},
            "caBundle": base64.b64encode(AUTHORITY.pem[0]).decode(),
            **spec,
        }
        body = {"metadata": {"name": f"{version}.{whole['group']}"}, "spec": whole}
        status, _, answer = self.ask("POST", SERVICES, body)
        assert status == 201, answer

    def condition(self, name: str, accepted: Callable[[Any], bool]) -> Any:
        """The condition of an APIService as soon as it is accepted."""
        end = time.monotonic() + LIMIT
        while True:
            answer = self.ask("GET", f"{SERVICES}/{name}")[2]
            conditions = (answer.get("status") or {}).get("conditions") or [{}]
            if accepted(conditions[0]):
                return conditions[0]
            assert time.monotonic() < end, f"{conditions}\n{(self.folder / 'log').read_text()}"
            time.sleep(0.05)

    def change(self, **spec: Any) -> None:
        """Change the APIService; whoever follows it looks at the server again."""
        body = {"metadata": {"labels": {"changed": str(time.monotonic_ns())}}, "spec": spec}
        status, _, answer = self.ask(
            "PATCH", f"{SERVICES}/{REGISTERED}", body, Content_Type="application/merge-patch+json"
        )
        assert status == 200, answer

    def is_available(self, expected: bool = True) -> Any:
        written = self.condition(REGISTERED, lambda entry: entry.get("status") == str(expected))
        coats = f"/apis/{GROUP}/v1/namespaces/default/coats"
        while (self.ask("GET", coats)[2] == "service unavailable\n") is expected:  # it is acted upon a moment later
            time.sleep(0.05)
        return written


@contextmanager
def extended(kubeconfig: Path, folder: Path) -> Iterator[Extended]:
    """A server with an extension server that is available."""
    folder.mkdir()
    with closing(side_of(kubeconfig)) as side:
        made = Extended(kubeconfig, side, folder, free_port())
        made.ask("POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
        service = {"metadata": {"name": NAME}, "spec": {"type": "ExternalName", "externalName": "localhost"}}
        status, _, answer = made.ask("POST", f"/api/v1/namespaces/{NAMESPACE}/services", service)
        assert status == 201, answer
        made.start()  # before it is registered: it has to know whom to believe
        try:
            made.register()
            yield made
        finally:
            made.stop()
