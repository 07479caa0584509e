"""A server of a few lines: answers from a script, and remembers what it was asked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from konverge.client import Client, RetryPolicy
from konverge.wire import Direct, Headers, Request, Response, Sink

Answer = Response | Callable[[Request], Response]


class Script:
    """Gives the answers in order; the last one again and again."""

    def __init__(self, *answers: Answer) -> None:
        self.answers = list(answers)
        self.requests: list[Request] = []

    async def __call__(self, request: Request) -> Response:
        self.requests.append(request)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        return answer if isinstance(answer, Response) else answer(request)

    def client(self, **options: Any) -> Client:
        options.setdefault("retry", RetryPolicy(retries=0))
        return Client(Direct(self), **options)

    @property
    def lines(self) -> list[str]:
        return [f"{request.method} {request.target}" for request in self.requests]


def ok(body: Any, status: int = 200, **headers: str) -> Response:
    fields = {"content-type": "application/json", **{name.replace("_", "-"): value for name, value in headers.items()}}
    return Response(status, Headers.of(fields), body if isinstance(body, bytes) else msgspec.json.encode(body))


def refused(code: int, reason: str = "", message: str = "no", *, retry_after: str = "", **more: Any) -> Response:
    body = {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "message": message,
        "reason": reason,
        "code": code,
    }
    headers = {"retry_after": retry_after} if retry_after else {}
    return ok({**body, **more}, code, **headers)


def streamed(*chunks: bytes) -> Response:
    async def produce(sink: Sink) -> None:
        for chunk in chunks:
            sink.write(chunk)
            await sink.drain()

    return Response(200, Headers.of({"content-type": "application/json"}), producer=produce)


def config_map(name: str = "a", **data: str) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "shop", "resourceVersion": "7"}
    return {"kind": "ConfigMap", "apiVersion": "v1", "metadata": metadata, "data": data}
