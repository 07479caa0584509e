"""Requests that go through to a pod are admitted first; what the real server does is in tests/real."""

from __future__ import annotations

import json

import pytest

from konverge.apiserver.request.call import Call
from konverge.wire.message import Response
from tests.apiserver.admission.hooks import MUTATING, VALIDATING, WebhookServer, patch, webhook_server
from tests.apiserver.api import Api

GROUP = "/apis/admissionregistration.k8s.io/v1"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
POD = "/api/v1/namespaces/default/pods/web"
SESSIONS = ["exec", "attach", "portforward"]
RULES = [{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods/exec"], "operations": ["CONNECT"]}]


def plug_in(api: Api) -> list[dict[str, list[str]]]:
    """A kubelet's handler; the options that it got."""
    ran: list[dict[str, list[str]]] = []

    async def run(call: Call) -> Response:
        ran.append({name: call.query[name] for name in sorted(call.query)})
        return Response(200, body=b"{}")

    for subresource in ("exec", "attach", "portforward", "proxy"):
        api.server.extensions.handlers["", "pods", subresource] = run
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


async def _grant(api: Api, role: str, resources: list[str], verbs: list[str]) -> None:
    """To the user gina."""
    rules = [{"apiGroups": [""], "resources": [f"pods/{name}" for name in resources], "verbs": verbs}]
    await api.create(role, f"{RBAC}/clusterroles", rules=rules)
    await _bind(api, role)


async def _bind(api: Api, role: str) -> None:
    ref = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role}
    subjects = [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "gina"}]
    await api.create(role, f"{RBAC}/clusterrolebindings", roleRef=ref, subjects=subjects)


@pytest.mark.spec("S-65")
@pytest.mark.parametrize("session", SESSIONS)
async def test_a_session_by_get_needs_create_too(api: Api, session: str) -> None:
    ran = plug_in(api)
    await _grant(api, "reads", [*SESSIONS, "proxy"], ["get"])
    refused = await api.send("GET", f"{POD}/{session}", impersonate_user="gina")
    answer = json.loads(refused.body)
    assert (refused.status, answer["message"]) == (403, 'pods "web" is forbidden: ')
    assert answer["details"] == {"name": "web", "kind": "pods"}
    assert not refused.headers.get("x-content-type-options"), "only the first check says so"
    await _bind(api, "lost")
    answer = await api.call("GET", f"{POD}/{session}", impersonate_user="gina", expect=403)
    why = 'rbac: RBAC: clusterrole.rbac.authorization.k8s.io "lost" not found'
    assert answer["message"] == f'pods "web" is forbidden: {why}'
    await _grant(api, "others", [name for name in SESSIONS if name != session], ["create"])
    await api.call("GET", f"{POD}/{session}", impersonate_user="gina", expect=403)
    assert not ran
    await _grant(api, "creates", [session], ["create"])
    await api.call("GET", f"{POD}/{session}", impersonate_user="gina")
    assert len(ran) == 1


@pytest.mark.spec("S-65")
async def test_a_session_by_post_needs_create_alone_and_a_proxy_by_get_needs_get_alone(api: Api) -> None:
    ran = plug_in(api)
    await _grant(api, "creates", SESSIONS, ["create"])
    await _grant(api, "reads", ["proxy"], ["get"])
    for session in SESSIONS:
        await api.call("POST", f"{POD}/{session}", impersonate_user="gina")
        await api.call("GET", f"{POD}/{session}", impersonate_user="gina", expect=403)
    await api.call("GET", f"{POD}/proxy/x", impersonate_user="gina")
    assert len(ran) == 4


@pytest.mark.spec("S-65")
async def test_admission_is_asked_before_the_second_right(api: Api) -> None:
    plug_in(api)
    await _grant(api, "reads", ["exec"], ["get"])
    async with webhook_server() as hooks:
        await _install(api, hooks, VALIDATING, "guard", lambda request: {"allowed": False})
        refused = await api.call("GET", f"{POD}/exec", impersonate_user="gina", expect=400)
    assert "guard" in refused["message"]


async def _install(api: Api, hooks: WebhookServer, path: str, name: str, reply: object) -> None:
    hook = hooks.hook(name, reply, rules=RULES)  # type: ignore[arg-type]
    await api.call("POST", path, {"metadata": {"name": name}, "webhooks": [hook]})
