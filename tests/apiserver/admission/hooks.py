"""A webhook server on loopback with TLS, whose answers are functions."""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from konverge.apiserver import certificates
from konverge.wire.message import Headers, Request, Response
from konverge.wire.server import Server

Reply = Callable[[Any], Any]
"""(review request) -> the members of the response, or a whole Response; it may be awaited."""

MUTATING = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
VALIDATING = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
RULES = [{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "operations": ["*"]}]


def patch(*operations: Any) -> dict[str, Any]:
    text = base64.b64encode(json.dumps(operations).encode()).decode()
    return {"allowed": True, "patchType": "JSONPatch", "patch": text}


class WebhookServer:
    def __init__(self, url: str, bundle: bytes) -> None:
        self.url = url
        self.bundle = base64.b64encode(bundle).decode()
        self.replies: dict[str, Reply] = {}
        self.asked: list[tuple[str, Any]] = []

    def hook(self, name: str, reply: Reply, **more: Any) -> dict[str, Any]:
        """A webhook whose answer this function gives."""
        self.replies[name] = reply
        return {
            "name": f"{name}.test.io",
            "clientConfig": {"url": f"{self.url}/{name}", "caBundle": self.bundle},
            "rules": RULES,
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
            **more,
        }

    def calls(self) -> list[str]:
        return [name for name, _ in self.asked]

    async def handle(self, request: Request) -> Response:
        name = request.target.partition("?")[0].strip("/")
        review = json.loads(request.body)
        self.asked.append((name, review["request"]))
        reply = self.replies[name](review["request"])
        if isinstance(reply, Awaitable):
            reply = await reply
        if isinstance(reply, Response):
            return reply
        response = {"uid": review["request"]["uid"], **reply}
        body = {"kind": "AdmissionReview", "apiVersion": review["apiVersion"], "response": response}
        return Response(200, Headers.of({"content-type": "application/json"}), json.dumps(body).encode())


_identity: list[certificates.Certificates] = []


@asynccontextmanager
async def webhook_server() -> AsyncIterator[WebhookServer]:
    if not _identity:
        _identity.append(certificates.make(("127.0.0.1",)))
    served: list[WebhookServer] = []

    async def handle(request: Request) -> Response:
        return await served[0].handle(request)

    server = Server(handle)
    await server.start("127.0.0.1", 0, ssl=_identity[0].context())
    try:
        served.append(WebhookServer(f"https://127.0.0.1:{server.addresses[-1][1]}", _identity[0].authority))
        yield served[0]
    finally:
        await server.close(grace=1.0)
