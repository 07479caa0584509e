"""Admission webhooks over HTTPS: what they see, what they may do, and what happens when they fail."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from konverge.wire.message import Headers, Response
from tests.apiserver.admission.hooks import MUTATING, VALIDATING, WebhookServer, patch, webhook_server
from tests.apiserver.api import APPLY, CONFIG_MAPS, Api


@pytest.fixture
async def hooks() -> AsyncIterator[WebhookServer]:
    async with webhook_server() as server:
        yield server


def _allow(request: Any) -> Any:
    return {"allowed": True}


def _deny(request: Any) -> Any:
    return {"allowed": False, "status": {"message": "no way", "code": 403, "reason": "Forbidden"}}


async def _configure(api: Api, path: str, *webhooks: Any, name: str = "w") -> None:
    await api.call("POST", path, {"metadata": {"name": name}, "webhooks": list(webhooks)})


@pytest.mark.spec("S-13")
async def test_a_webhook_sees_the_write_that_it_allows(api: Api, hooks: WebhookServer) -> None:
    await _configure(api, VALIDATING, hooks.hook("allow", _allow))
    await api.create("one", data={"a": "b"})
    [(_, seen)] = hooks.asked
    assert seen["kind"] == {"group": "", "version": "v1", "kind": "ConfigMap"}
    assert (seen["name"], seen["namespace"], seen["operation"]) == ("one", "default", "CREATE")
    assert seen["object"]["data"] == {"a": "b"}
    assert seen["object"]["kind"] == "ConfigMap"
    assert seen["oldObject"] is None
    assert seen["options"] == {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1"}
    assert seen["userInfo"]["username"] == "admin"
    await api.patch(f"{CONFIG_MAPS}/one", {"data": {"a": "c"}})
    await api.call("DELETE", f"{CONFIG_MAPS}/one")
    operations = [(seen["operation"], seen["oldObject"]["data"]["a"]) for _, seen in hooks.asked[1:]]
    assert operations == [("UPDATE", "b"), ("DELETE", "c")]


@pytest.mark.spec("S-13")
async def test_a_refusal_of_a_webhook_has_its_message(api: Api, hooks: WebhookServer) -> None:
    await _configure(api, VALIDATING, hooks.hook("deny", _deny))
    refused = await api.call("POST", CONFIG_MAPS, {"metadata": {"name": "one"}}, expect=403)
    assert refused["message"] == 'admission webhook "deny.test.io" denied the request: no way'
    assert refused["reason"] == "Forbidden"
    assert api.server.objects.get("", "configmaps", "default", "one") is None


async def test_a_refusal_without_a_message_keeps_its_warnings(api: Api, hooks: WebhookServer) -> None:
    await _configure(api, VALIDATING, hooks.hook("mute", lambda request: {"allowed": False, "warnings": ["beware"]}))
    response = await api.send("POST", CONFIG_MAPS, {"metadata": {"name": "one"}})
    assert response.status == 400
    assert b"denied the request without explanation" in response.body
    assert response.headers.get_all("warning") == ['299 - "beware"']


@pytest.mark.spec("S-13")
async def test_a_webhook_sees_the_changes_of_those_before_it(api: Api, hooks: WebhookServer) -> None:
    first = hooks.hook("first", lambda request: patch({"op": "add", "path": "/data", "value": {"n": "1"}}))
    second = hooks.hook("second", lambda request: patch({"op": "add", "path": "/data/m", "value": "2"}))
    await _configure(api, MUTATING, first, second)
    await _configure(api, VALIDATING, hooks.hook("last", _allow))
    created = await api.create("one")
    assert created["data"] == {"n": "1", "m": "2"}
    assert hooks.calls() == ["first", "second", "last"]
    assert hooks.asked[1][1]["object"]["data"] == {"n": "1"}
    assert hooks.asked[2][1]["object"]["data"] == {"n": "1", "m": "2"}


@pytest.mark.spec("S-13")
async def test_a_webhook_is_reinvoked_after_a_later_change(api: Api, hooks: WebhookServer) -> None:
    def note(request: Any) -> Any:
        labels = request["object"]["metadata"].get("labels") or {}
        value = {**labels, "seen": "again" if "touched" in labels else "once"}
        return patch({"op": "add", "path": "/metadata/labels", "value": value})

    def touch(request: Any) -> Any:
        return patch({"op": "add", "path": "/metadata/labels/touched", "value": "x"})

    await _configure(api, MUTATING, hooks.hook("note", note, reinvocationPolicy="IfNeeded"), hooks.hook("touch", touch))
    created = await api.create("one")
    assert hooks.calls() == ["note", "touch", "note"]
    assert created["metadata"]["labels"] == {"seen": "again", "touched": "x"}


async def test_no_webhook_is_called_again_when_nothing_changed(api: Api, hooks: WebhookServer) -> None:
    same = hooks.hook("same", lambda request: patch({"op": "replace", "path": "/metadata/name", "value": "one"}))
    await _configure(api, MUTATING, hooks.hook("first", _allow, reinvocationPolicy="IfNeeded"), same)
    await api.create("one")
    assert hooks.calls() == ["first", "same"]


@pytest.mark.spec("S-13")
async def test_plugins_see_what_webhooks_changed(api: Api, hooks: WebhookServer) -> None:
    """All mutating plugins run in the second pass: a pod gets the priority of the class that a webhook gave it."""
    rules = [{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"], "operations": ["CREATE"]}]

    def promote(request: Any) -> Any:
        change = [{"op": "add", "path": "/spec/priorityClassName", "value": "system-node-critical"}]
        return patch(*change, {"op": "remove", "path": "/spec/priority"})

    await api.create("default", "/api/v1/namespaces/default/serviceaccounts")
    await _configure(api, MUTATING, hooks.hook("promote", promote, rules=rules))
    spec = {"containers": [{"name": "c", "image": "i"}]}
    pod = await api.create("p", "/api/v1/namespaces/default/pods", spec=spec)
    assert pod["spec"]["priority"] == 2_000_001_000


async def _slow(request: Any) -> Any:
    await asyncio.sleep(60)
    return {"allowed": True}


@pytest.mark.spec("S-13")
@pytest.mark.parametrize(("policy", "status"), [("Fail", 500), ("Ignore", 201)])
async def test_the_failure_policy_decides_about_a_failing_webhook(
    api: Api, hooks: WebhookServer, policy: str, status: int
) -> None:
    def broken(request: Any) -> Any:
        return Response(500, body=b"boom")

    await _configure(api, VALIDATING, hooks.hook("broken", broken, failurePolicy=policy))
    answer = await api.call("POST", CONFIG_MAPS, {"metadata": {"name": "one"}}, expect=status)
    if status == 500:
        why = 'failed to call webhook: an error on the server ("boom") has prevented the request from succeeding'
        assert answer["message"] == f'Internal error occurred: failed calling webhook "broken.test.io": {why}'


@pytest.mark.spec("S-13")
@pytest.mark.parametrize(("policy", "status"), [("Fail", 500), ("Ignore", 201)])
async def test_the_failure_policy_decides_about_an_unreachable_webhook(
    api: Api, hooks: WebhookServer, policy: str, status: int
) -> None:
    gone = hooks.hook("gone", _allow, failurePolicy=policy, timeoutSeconds=3)
    gone["clientConfig"] = {"url": "https://127.0.0.1:1/gone", "caBundle": hooks.bundle}
    await _configure(api, VALIDATING, gone)
    answer = await api.call("POST", CONFIG_MAPS, {"metadata": {"name": "one"}}, expect=status)
    if status == 500:
        why = 'Post "https://127.0.0.1:1/gone?timeout=3s": dial tcp 127.0.0.1:1: connect: connection refused'
        failure = f'failed calling webhook "gone.test.io": failed to call webhook: {why}'
        assert answer["message"] == f"Internal error occurred: {failure}"


@pytest.mark.spec("S-13")
@pytest.mark.parametrize(("policy", "status"), [("Fail", 500), ("Ignore", 201)])
async def test_the_failure_policy_decides_about_a_slow_webhook(
    api: Api, hooks: WebhookServer, policy: str, status: int
) -> None:
    await _configure(api, VALIDATING, hooks.hook("slow", _slow, failurePolicy=policy, timeoutSeconds=1))
    answer = await api.call("POST", CONFIG_MAPS, {"metadata": {"name": "one"}}, expect=status)
    if status == 500:
        assert answer["message"].endswith("context deadline exceeded")


@pytest.mark.spec("S-13")
@pytest.mark.parametrize(
    ("path", "asked"), [("//gone/", "/gone"), ("/a//b/../c", "/a/c"), ("", "/"), ("/a%20b/", "/a%20b")]
)
async def test_paths_are_cleaned_as_the_real_server_does(api: Api, hooks: WebhookServer, path: str, asked: str) -> None:
    """envtest writes two slashes, and webhooks in Go redirect those."""
    gone = hooks.hook("gone", _allow, timeoutSeconds=3)
    gone["clientConfig"] = {"url": f"https://127.0.0.1:1{path}", "caBundle": hooks.bundle}
    await _configure(api, VALIDATING, gone)
    refused = await api.call("POST", CONFIG_MAPS, {"metadata": {"name": "one"}}, expect=500)
    assert f'Post "https://127.0.0.1:1{asked}?timeout=3s"' in refused["message"]


async def test_an_untrusted_certificate_of_a_webhook_is_refused(api: Api, hooks: WebhookServer) -> None:
    hook = hooks.hook("allow", _allow)
    del hook["clientConfig"]["caBundle"]
    await _configure(api, VALIDATING, hook)
    refused = await api.call("POST", CONFIG_MAPS, {"metadata": {"name": "one"}}, expect=500)
    assert refused["message"].endswith("x509: certificate signed by unknown authority")
    assert hooks.asked == []


@pytest.mark.spec("S-13")
async def test_a_dry_run_needs_a_webhook_without_side_effects(api: Api, hooks: WebhookServer) -> None:
    await _configure(api, VALIDATING, hooks.hook("allow", _allow, sideEffects="NoneOnDryRun"))
    await api.call("POST", CONFIG_MAPS, {"metadata": {"name": "one"}}, query={"dryRun": "All"})
    assert hooks.asked[0][1]["dryRun"] is True


@pytest.mark.spec("S-13")
async def test_selectors_and_conditions_choose_the_webhooks(api: Api, hooks: WebhookServer) -> None:
    condition = [{"name": "only-x", "expression": "object.metadata.name.startsWith('x')"}]
    await _configure(
        api,
        VALIDATING,
        hooks.hook("labelled", _deny, objectSelector={"matchLabels": {"a": "b"}}),
        hooks.hook("elsewhere", _deny, namespaceSelector={"matchLabels": {"a": "b"}}),
        hooks.hook("named", _deny, matchConditions=condition),
    )
    await api.create("one")
    assert hooks.calls() == []
    await api.call("POST", CONFIG_MAPS, {"metadata": {"name": "two", "labels": {"a": "b"}}}, expect=403)
    await api.call("POST", CONFIG_MAPS, {"metadata": {"name": "x"}}, expect=403)
    await api.create("old", "/api/v1/namespaces", labels={"a": "b"})
    await api.call("POST", "/api/v1/namespaces/old/configmaps", {"metadata": {"name": "one"}}, expect=403)
    assert hooks.calls() == ["labelled", "named", "elsewhere"]


@pytest.mark.spec("S-13")
async def test_a_webhook_sees_the_version_of_its_rule(api: Api, hooks: WebhookServer) -> None:
    """A rule about autoscaling/v1 meets a write of autoscaling/v2: the webhook sees the version that it knows."""
    rules = [{"apiGroups": ["autoscaling"], "apiVersions": ["v1"], "resources": ["*"], "operations": ["*"]}]
    await _configure(
        api,
        MUTATING,
        hooks.hook("v1", lambda r: patch({"op": "add", "path": "/spec/maxReplicas", "value": 7}), rules=rules),
        hooks.hook("exact", _deny, rules=rules, matchPolicy="Exact"),
    )
    target = {"kind": "Deployment", "name": "d", "apiVersion": "apps/v1"}
    spec = {"scaleTargetRef": target, "maxReplicas": 3}
    path = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers"
    created = await api.create("one", path, spec=spec)
    assert created["spec"]["maxReplicas"] == 7
    [(_, seen)] = hooks.asked
    assert seen["object"]["apiVersion"] == "autoscaling/v1"
    assert (seen["resource"]["version"], seen["requestResource"]["version"]) == ("v1", "v2")


@pytest.mark.spec("S-13")
async def test_a_webhook_behind_a_service_is_resolved(api: Api, hooks: WebhookServer) -> None:
    hook = hooks.hook("allow", _allow)
    hook["clientConfig"] = {"service": {"namespace": "default", "name": "hooks", "path": "/allow"}}
    await _configure(api, VALIDATING, hook)
    refused = await api.call("POST", CONFIG_MAPS, {"metadata": {"name": "one"}}, expect=500)
    assert refused["message"].endswith(
        'Post "https://hooks.default.svc:443/allow?timeout=10s": service "hooks" not found'
    )
    port = int(hooks.url.rpartition(":")[2])
    ports = [{"port": 443, "targetPort": port}]
    await api.create("hooks", "/api/v1/namespaces/default/services", spec={"ports": ports})
    assert api.server.webhooks.resolve("default", "hooks", 443) == f"127.0.0.1:{port}"


async def test_a_deleted_configuration_calls_no_webhooks(api: Api, hooks: WebhookServer) -> None:
    await _configure(api, VALIDATING, hooks.hook("deny", _deny))
    await api.call("POST", CONFIG_MAPS, {"metadata": {"name": "one"}}, expect=403)
    await api.call("DELETE", f"{VALIDATING}/w")
    await api.create("one")


@pytest.mark.spec("S-13")
async def test_a_webhook_sees_and_changes_a_scale_as_a_scale(api: Api, hooks: WebhookServer) -> None:
    rules = [{"apiGroups": ["apps"], "apiVersions": ["v1"], "resources": ["deployments/scale"], "operations": ["*"]}]

    def cap(request: Any) -> Any:
        return patch({"op": "replace", "path": "/spec/replicas", "value": 2})

    await _configure(api, MUTATING, hooks.hook("cap", cap, rules=rules))
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    spec = {"replicas": 1, "selector": {"matchLabels": {"a": "b"}}, "template": template}
    path = "/apis/apps/v1/namespaces/default/deployments"
    await api.create("d", path, spec=spec)
    patched = await api.patch(f"{path}/d/scale", {"spec": {"replicas": 9}})
    [(_, seen)] = hooks.asked
    assert seen["kind"] == {"group": "autoscaling", "version": "v1", "kind": "Scale"}
    assert (seen["oldObject"]["spec"]["replicas"], seen["object"]["spec"]["replicas"]) == (1, 9)
    assert patched["spec"]["replicas"] == 2
    assert (await api.call("GET", f"{path}/d"))["spec"]["replicas"] == 2


# --- what kube-apiserver says of an apply whose webhook fails, recorded side by side


@pytest.mark.parametrize(
    ("media", "shown"),
    [("text/plain", "boom"), ("", "boom"), ("application/json", "unknown"), ("application/text/", "unknown")],
)
@pytest.mark.spec("S-32")
async def test_only_a_text_is_shown_of_an_answer_that_fails(
    api: Api, hooks: WebhookServer, media: str, shown: str
) -> None:
    headers = Headers.of({"content-type": media} if media else {})
    await _configure(api, MUTATING, hooks.hook("broken", lambda request: Response(500, headers, b"boom")))
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "one"}}
    query = {"fieldManager": "me"}
    answer = await api.call("PATCH", f"{CONFIG_MAPS}/one", body, content_type=APPLY, query=query, expect=500)
    why = f'an error on the server ("{shown}") has prevented the request from succeeding'
    assert answer["message"].endswith(f'failed calling webhook "broken.test.io": failed to call webhook: {why}')


@pytest.mark.spec("S-32")
async def test_a_webhook_that_renames_is_refused_under_the_new_name(api: Api, hooks: WebhookServer) -> None:
    await api.create("one")
    renamed = patch({"op": "replace", "path": "/metadata/name", "value": "other"})
    await _configure(api, MUTATING, hooks.hook("rename", lambda request: renamed))
    answer = await api.call("PATCH", f"{CONFIG_MAPS}/one", {}, content_type="application/merge-patch+json", expect=422)
    assert answer["details"]["name"] == "other"
    assert answer["message"].startswith('ConfigMap "other" is invalid: metadata.name: Invalid value: "other"')


@pytest.mark.parametrize("exists", [True, False])
@pytest.mark.spec("S-32")
async def test_managed_fields_that_a_webhook_breaks_are_as_before(api: Api, hooks: WebhookServer, exists: bool) -> None:
    if exists:
        await api.create("one", data={"a": "1"})
    entry = {"manager": "x", "operation": "Nope", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": {}}
    broken = patch({"op": "add", "path": "/metadata/managedFields", "value": [entry]})
    await _configure(api, MUTATING, hooks.hook("old", lambda request: broken))
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "one"}, "data": {"b": "2"}}
    query = {"fieldManager": "me"}
    response = await api.send("PATCH", f"{CONFIG_MAPS}/one", body, content_type=APPLY, query=query)
    assert response.headers.get_all("warning") == [
        '299 - ".metadata.managedFields was in an invalid state after admission; this could be caused by an outdated '
        'mutating admission controller; please fix your requests: operation must be `Apply` or `Update`"'
    ]
    stored = await api.call("GET", f"{CONFIG_MAPS}/one")
    managers = [entry["manager"] for entry in stored["metadata"]["managedFields"]]
    assert managers == (["me", "test"] if exists else ["me"])


@pytest.mark.spec("S-32")
async def test_managed_fields_that_a_webhook_changes_or_drops_stay_so(api: Api, hooks: WebhookServer) -> None:
    fields = {"f:data": {"f:b": {}}}
    entry = {"manager": "x", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": fields}
    changed = patch({"op": "add", "path": "/metadata/managedFields", "value": [entry]})
    await _configure(api, MUTATING, hooks.hook("other", lambda request: changed))
    made = await api.create("one", data={"b": "2"})
    assert [entry["manager"] for entry in made["metadata"]["managedFields"]] == ["x"]
    await api.call("DELETE", f"{MUTATING}/w")
    dropped = patch({"op": "remove", "path": "/metadata/managedFields"})
    await _configure(api, MUTATING, hooks.hook("none", lambda request: dropped))
    response = await api.send("POST", CONFIG_MAPS, {"metadata": {"name": "two"}, "data": {"b": "2"}})
    assert (response.status, response.headers.get("warning")) == (201, "")
    assert b"managedFields" not in response.body
