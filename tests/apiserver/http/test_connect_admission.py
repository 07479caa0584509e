"""Requests that go through to a pod are admitted first; what the real server does is in tests/real."""

from __future__ import annotations

import pytest

from konverge.apiserver.request.call import Call
from konverge.wire.message import Response
from tests.apiserver.admission.hooks import MUTATING, VALIDATING, WebhookServer, patch, webhook_server
from tests.apiserver.api import Api

GROUP = "/apis/admissionregistration.k8s.io/v1"
POD = "/api/v1/namespaces/default/pods/web"
RULES = [{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods/exec"], "operations": ["CONNECT"]}]


def plug_in(api: Api) -> list[dict[str, list[str]]]:
    """A kubelet's handler; the options that it got."""
    ran: list[dict[str, list[str]]] = []

    async def run(call: Call) -> Response:
        ran.append({name: call.query[name] for name in sorted(call.query)})
        return Response(200, body=b"{}")

    api.server.extensions.handlers["", "pods", "exec"] = run
    api.server.extensions.handlers["", "pods", "attach"] = run
    return ran


@pytest.mark.spec("S-13")
async def test_a_policy_refuses_an_exec_before_it_reaches_the_pod(api: Api) -> None:
    ran = plug_in(api)
    rule = {"expression": "object.command[0] != 'sh'", "message": "no shells"}
    policy = {"matchConstraints": {"resourceRules": RULES}, "validations": [rule]}
    await api.call("POST", f"{GROUP}/validatingadmissionpolicies", {"metadata": {"name": "no-shells"}, "spec": policy})
    binding = {"policyName": "no-shells", "validationActions": ["Deny"]}
    name = {"metadata": {"name": "no-shells"}, "spec": binding}
    await api.call("POST", f"{GROUP}/validatingadmissionpolicybindings", name)
    refused = await api.call("POST", f"{POD}/exec", query={"command": "sh"}, expect=422)
    assert "no shells" in refused["message"]
    await api.call("GET", f"{POD}/exec", query={"command": "sh"}, expect=422)
    assert not ran
    await api.call("POST", f"{POD}/exec", query={"command": "ls", "stdout": "true"})
    await api.call("POST", f"{POD}/attach", query={"stdin": "true"})
    assert ran == [{"command": ["ls"], "stdout": ["true"]}, {"stdin": ["true"]}]


@pytest.mark.spec("S-13")
async def test_what_a_webhook_changes_is_what_runs(api: Api) -> None:
    ran = plug_in(api)
    changes = [
        {"op": "replace", "path": "/command", "value": ["true"]},
        {"op": "remove", "path": "/tty"},
        {"op": "add", "path": "/container", "value": "debug"},
    ]
    async with webhook_server() as hooks:
        await _install(api, hooks, MUTATING, "tame", lambda request: patch(*changes))
        await api.call("POST", f"{POD}/exec", query={"command": "rm", "tty": "true", "stdout": "true"})
    assert ran == [{"command": ["true"], "container": ["debug"], "stdout": ["true"]}]


@pytest.mark.spec("S-13")
async def test_options_that_are_changed_to_nonsense_run_nothing(api: Api) -> None:
    ran = plug_in(api)
    async with webhook_server() as hooks:
        change = {"op": "replace", "path": "/command", "value": "ls"}
        await _install(api, hooks, MUTATING, "wrong", lambda request: patch(change))
        refused = await api.call("POST", f"{POD}/exec", query={"command": "ls"}, expect=500)
    assert "$.command" in refused["message"]
    assert not ran


@pytest.mark.spec("S-13")
async def test_a_webhook_that_is_away_lets_nobody_in(api: Api) -> None:
    ran = plug_in(api)
    async with webhook_server() as hooks:
        await _install(api, hooks, VALIDATING, "guard", lambda request: {"allowed": True})
        await api.call("POST", f"{POD}/exec", query={"command": "ls"})
    await api.call("POST", f"{POD}/exec", query={"command": "ls"}, expect=500)
    assert len(ran) == 1


async def _install(api: Api, hooks: WebhookServer, path: str, name: str, reply: object) -> None:
    hook = hooks.hook(name, reply, rules=RULES)  # type: ignore[arg-type]
    await api.call("POST", path, {"metadata": {"name": name}, "webhooks": [hook]})
