"""The answers of a real kube-apiserver in matters of access, admission and validation, compared with ours."""

from __future__ import annotations

import json

import pytest

from konverge.wire.message import Headers, Request
from tests.apiserver.api import Api
from tests.apiserver.exchanges import Answer, Step, body_of, headers_of, replay

# All of a replay is done within one second, as it was recorded: entries of managedFields are ordered by their time.
pytestmark = pytest.mark.virtual


async def _replayed(api: Api, module: str) -> list[str]:
    async def ask(step: Step, tokens: dict[str, str]) -> Answer:
        headers = Headers()
        for name, value in headers_of(step, tokens):
            headers.add(name, value)
        if not step.token:
            headers.add("authorization", f"Bearer {api.server.token}")
        request = Request(step.method, step.path, headers, body_of(step))
        response = await api.server.transport.send(request)
        return response.status, response.headers.get_all("warning"), json.loads(response.body)

    return await replay(f"tests.apiserver.{module}", ask)


@pytest.mark.spec("S-12")
async def test_access_is_decided_as_by_the_real_server(api: Api) -> None:
    assert await _replayed(api, "auth.cases_access") == []


@pytest.mark.spec("S-13")
@pytest.mark.parametrize("case", ["security", "quota", "pods", "classes"])
async def test_admission_answers_as_the_real_server(api: Api, case: str) -> None:
    assert await _replayed(api, f"admission.cases_{case}") == []


@pytest.mark.spec("S-09", "S-04")
async def test_resource_kinds_are_validated_as_by_the_real_server(api: Api) -> None:
    assert await _replayed(api, "kinds.cases_resource") == []
