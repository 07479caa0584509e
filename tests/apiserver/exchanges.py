"""Exchanges recorded from a real kube-apiserver, replayed on the embedded one.

A case is a list of steps (method, path, body, headers); its answers are kept in a compressed file beside it. What
differs from server to server (identities, versions, times, generated names) is masked on both sides. Record again with

    python -m tests.apiserver.exchanges tests.apiserver.admission.cases_quota <kubeconfig of a fresh kube-apiserver>
"""

from __future__ import annotations

import base64
import gzip
import http.client
import json
import re
import ssl
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml

MERGE = {"content-type": "application/merge-patch+json"}
_MASKED = ("uid", "resourceVersion", "creationTimestamp", "time", "startTime", "clusterIP", "clusterIPs", "token")
_MASKED_TEXTS = (
    (re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"), "<uuid>"),
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z"), "<time>"),
    (re.compile(r"(kube-api-access|generated)-[a-z0-9]{5}"), r"\1-<generated>"),
)


@dataclass(frozen=True)
class Step:
    method: str
    path: str
    body: Any = None
    headers: dict[str, Any] = field(default_factory=dict)
    token: str = ""
    """Use the token that an earlier step has given this name, instead of the administrator's credentials."""
    keep: str = ""
    """Remember the token in the answer under this name."""
    settle: float = 0
    """Seconds that the real server needs before it acts on what was written before."""


Answer = tuple[int, list[str], Any]
Ask = Callable[[Step, dict[str, str]], Awaitable[Answer]]


def masked(value: Any) -> Any:
    if isinstance(value, dict):
        if "managedFields" in value:  # ordered by time, and a replay is done within the second
            value = {**value, "managedFields": sorted(value["managedFields"], key=_manager)}
        return {key: "<masked>" if key in _MASKED else masked(member) for key, member in value.items()}
    if isinstance(value, list):
        return [masked(member) for member in value]
    if isinstance(value, str):
        for pattern, mask in _MASKED_TEXTS:
            value = pattern.sub(mask, value)
    return value


def _manager(entry: Any) -> str:
    return "/".join(str(entry.get(key, "")) for key in ("manager", "operation", "subresource"))


def recording(module: str) -> Path:
    package, _, name = module.rpartition(".")
    folder = Path(str(import_module(package).__file__)).parent
    return folder / "recorded" / f"{name.removeprefix('cases_')}.json.gz"


def recorded(module: str) -> list[Any]:
    answers: list[Any] = json.loads(gzip.decompress(recording(module).read_bytes()))
    return answers


async def replay(module: str, ask: Ask) -> list[str]:
    """The differences between the answers of a server and the recorded ones."""
    steps: list[Step] = import_module(module).STEPS
    answers = recorded(module)
    assert len(steps) == len(answers), "the case has changed since it was recorded"
    differences: list[str] = []
    tokens: dict[str, str] = {}
    for step, wanted in zip(steps, answers, strict=True):
        answer = await ask(step, tokens)
        if step.keep:
            tokens[step.keep] = answer[2]["status"]["token"]
        got = masked(list(answer))
        if got != wanted:
            differences += [
                f"{step.method} {step.path} {json.dumps(step.body)}",
                f"  wanted {wanted}",
                f"  got    {got}",
            ]
    return differences


# --- recording


class RealServer:
    def __init__(self, kubeconfig: str) -> None:
        config = yaml.safe_load(Path(kubeconfig).read_text())
        url = urlsplit(config["clusters"][0]["cluster"]["server"])
        self._host, self._port, self._user = url.hostname or "", url.port, config["users"][0]["user"]

    def _context(self, *, certificate: bool) -> ssl.SSLContext:
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        if certificate:
            context.load_cert_chain(self._file("client-certificate"), self._file("client-key"))
        return context

    def _file(self, name: str) -> str:
        if name in self._user:
            return str(self._user[name])
        with tempfile.NamedTemporaryFile(delete=False) as file:
            file.write(base64.b64decode(self._user[f"{name}-data"]))
        return file.name

    def ask(self, step: Step, tokens: dict[str, str]) -> Answer:
        time.sleep(step.settle)
        context = self._context(certificate=not step.token)
        connection = http.client.HTTPSConnection(self._host, self._port or 443, context=context, timeout=60)
        connection.putrequest(step.method, step.path)
        for name, value in headers_of(step, tokens):
            connection.putheader(name, value)
        data = body_of(step)
        connection.putheader("content-length", str(len(data)))
        connection.endheaders(data)
        response = connection.getresponse()
        warnings = [value for name, value in response.getheaders() if name.lower() == "warning"]
        return response.status, warnings, json.loads(response.read())


def headers_of(step: Step, tokens: dict[str, str]) -> Iterable[tuple[str, str]]:
    yield "user-agent", "test/1.0"
    if step.body is not None and "content-type" not in step.headers:
        yield "content-type", "application/json"
    if step.token:
        yield "authorization", f"Bearer {tokens.get(step.token, step.token)}"
    for name, value in step.headers.items():
        for text in value if isinstance(value, list) else [value]:
            yield name, text


def body_of(step: Step) -> bytes:
    return b"" if step.body is None else json.dumps(step.body).encode()


def record(module: str, kubeconfig: str) -> None:
    server, answers = RealServer(kubeconfig), []
    tokens: dict[str, str] = {}
    for step in import_module(module).STEPS:
        answer = server.ask(step, tokens)
        if step.keep:
            tokens[step.keep] = answer[2]["status"]["token"]
        answers.append(masked(list(answer)))
    target = recording(module)
    target.parent.mkdir(exist_ok=True)
    target.write_bytes(gzip.compress(json.dumps(answers, separators=(",", ":")).encode(), 9, mtime=0))
    print(f"{target}: {len(answers)} answers, {target.stat().st_size} bytes")


if __name__ == "__main__":
    record(sys.argv[1], sys.argv[2])
