"""One reconcile of a WebApp without a cluster: what is sent, what is said, and when it looks again."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from konverge.client import (
    BadRequest,
    ClientError,
    Conflict,
    Forbidden,
    InternalError,
    Invalid,
    MethodNotAllowed,
    NotFound,
    Unavailable,
)
from konverge.objects import Object, to_dict
from konverge.objects.kinds.apps_v1 import Deployment
from konverge.objects.kinds.core_v1 import Service
from konverge.objects.meta import StatusCause
from konverge.operators.webapp import WebApp, WebAppReconciler
from konverge.operators.webapp.children import deployment_for, service_for
from konverge.operators.webapp.reconciler import controllers
from konverge.runtime import Context, Result
from tests.operators.shown import OLD, Shown, controlled_by, made, refused

pytestmark = [pytest.mark.virtual, pytest.mark.spec("A-02", "A-09")]

SPACE, NAME = "team", "shop"
AGAIN = Result(requeue_after=30.0)
OWNER = controlled_by("WebApp", NAME) | {"apiVersion": "apps.konverge.dev/v1", "blockOwnerDeletion": True}
SYNCED = {"type": "Synced", "status": "True", "reason": "ResourcesSynced", "message": "", "lastTransitionTime": OLD}


def webapp(*, observed: int = 1, phase: str = "Running", meta: dict[str, Any] | None = None, **status: Any) -> WebApp:
    status = {"phase": phase, "observedGeneration": observed, **status}
    spec = {"image": "nginx:1", "replicas": 2, "port": 80}
    metadata = {"generation": 1, "finalizers": ["apps.konverge.dev/webapp"], **(meta or {})}
    return made(WebApp, NAME, SPACE, meta=metadata, spec=spec, status=status)


def child(of: Any, kind: type[Any], *, owners: Any = (OWNER,), meta: Any = None, **changed: Any) -> Any:
    """A child as it is desired, but for what is changed."""
    desired = to_dict(of(webapp()))
    ready = {"readyReplicas": changed.pop("ready", 2)} if kind is Deployment else {}
    more = {"labels": desired["metadata"]["labels"], **(meta or {})}
    return made(kind, NAME, SPACE, owners=owners, meta=more, spec=desired["spec"] | changed, status=ready)


def deployment(**more: Any) -> Deployment:
    result: Deployment = child(deployment_for, Deployment, **more)
    return result


def service(**more: Any) -> Service:
    result: Service = child(service_for, Service, **more)
    return result


async def run(app: WebApp, *objects: Object, errors: Any = None, answers: Any = None) -> tuple[Shown, Any]:
    shown = Shown("webapp-operator", app, *objects)
    shown.errors |= errors or {}
    shown.answers |= answers or {}
    ctx: Context[WebApp] = shown.context(app)
    result = await WebAppReconciler().reconcile(ctx)
    assert result == AGAIN
    return shown, ctx.obj.status


def said(status: Any, type: str) -> tuple[str, str, int | None]:
    condition = next(entry for entry in status.conditions if entry.type == type)
    return condition.status, condition.reason, condition.observed_generation


FIXED = {("patch", "Deployment"): deployment(), ("patch", "Service"): service()}


async def test_a_new_one_is_accepted_and_its_two_objects_are_made() -> None:
    shown, status = await run(webapp(phase="", observed=0))
    assert [(sent.verb, sent.kind, sent.name) for sent in shown.sent] == [
        ("create", "Deployment", NAME),
        ("create", "Service", NAME),
    ]
    for sent in shown.sent:
        (owner,) = sent.body["metadata"]["ownerReferences"]
        assert (owner["uid"], owner["controller"]) == (OWNER["uid"], True)
    assert shown.events == [
        ("Normal", "DeploymentCreated"),
        ("Normal", "ServiceCreated"),
        ("Normal", "ResourcesSynced"),
    ]
    assert (status.phase, status.observed_generation, status.message) == ("Creating", 1, "resources synced")
    assert status.last_reconcile_time
    assert said(status, "Synced") == ("True", "ResourcesSynced", 1)
    assert said(status, "Ready") == ("False", "ReplicasNotReady", 1)
    assert [call.subresource for call in shown.calls] == ["status", "status", "", "", "status"], "each phase is seen"


async def test_one_that_is_as_desired_needs_no_request() -> None:
    app = webapp(readyReplicas=2, conditions=[SYNCED])
    shown, status = await run(app, deployment(), service())
    assert [call.verb for call in shown.calls if call.subresource != "status"] == []
    assert (shown.events, status.phase, status.message) == ([], "Running", "")
    assert said(status, "Ready") == ("True", "ReplicasReady", 1)


async def test_a_new_spec_is_synced_and_the_first_time_that_all_are_ready_it_runs() -> None:
    shown, status = await run(
        webapp(observed=0, phase="Creating"), deployment(replicas=5), service(type="NodePort"), answers=FIXED
    )
    assert [(sent.verb, sent.kind) for sent in shown.sent] == [("patch", "Deployment"), ("patch", "Service")]
    reasons = ["DeploymentSynced", "ServiceSynced", "ResourcesSynced"]
    assert shown.events == [("Normal", reason) for reason in reasons]
    assert (status.phase, status.observed_generation, status.ready_replicas) == ("Running", 1, 2)


async def test_what_drifted_is_put_back_and_said() -> None:
    for objects, what in (
        ((deployment(replicas=5), service()), "Deployment was changed: replicas 5 → 2"),
        ((deployment(), service(type="NodePort")), "Service was changed: type NodePort → ClusterIP"),
        ((deployment(),), "Service was deleted and is made again"),
    ):
        shown, status = await run(webapp(), *objects, answers=FIXED)
        assert len(shown.sent) == 1
        assert shown.events == [("Normal", "DriftRepaired")]
        assert status.message == f"drift repaired: {what}"
        assert status.last_reconcile_time


@pytest.mark.parametrize("error", [Invalid, Forbidden, BadRequest, MethodNotAllowed, InternalError])
@pytest.mark.parametrize("observed", [0, 1], ids=["sync", "repair"])
async def test_a_refusal_is_a_condition_and_one_event(error: Any, observed: int) -> None:
    errors = {("create", "Deployment"): refused(error)}
    app = webapp(observed=observed, phase="Creating")
    shown, status = await run(app, errors=errors)
    assert [sent.kind for sent in shown.sent] == ["Deployment", "Service"], "the other one is made all the same"
    assert said(status, "Ready") == ("False", error.default_reason, 1)
    assert shown.events.count(("Warning", error.default_reason)) == 1
    assert (status.phase, status.observed_generation) == ("Creating", 1)
    word = "synced" if observed == 0 else "repaired"
    assert status.message == f"Deployment cannot be {word}: no"
    if observed == 0:
        assert said(status, "Synced") == ("False", error.default_reason, 1)
    again = webapp(observed=observed, **{key: value for key, value in to_dict(status).items() if key != "phase"})
    await asyncio.sleep(60)
    shown, later = await run(again, service(), errors=errors)
    assert (shown.events, later.last_reconcile_time) == ([], status.last_reconcile_time)


async def test_a_refusal_of_both_names_both() -> None:
    errors = {("create", kind): refused(Invalid) for kind in ("Deployment", "Service")}
    _, status = await run(webapp(), errors=errors)
    assert status.message == "Deployment cannot be repaired: no; Service cannot be repaired: no"


async def test_what_was_refused_is_tried_again_as_a_sync() -> None:
    refused_before = [SYNCED | {"status": "False", "reason": "Invalid"}]
    shown, status = await run(webapp(conditions=refused_before), deployment())
    assert ("Normal", "ServiceCreated") in shown.events
    assert said(status, "Synced")[0] == "True"
    shown, _ = await run(webapp(conditions=[SYNCED]), deployment())
    assert shown.events == [("Normal", "DriftRepaired")]


async def test_what_passes_by_itself_is_the_runtimes_business_in_a_sync_and_waited_for_in_a_repair() -> None:
    for error in (refused(Unavailable), ClientError("gone")):
        errors = {("create", "Deployment"): error}
        with pytest.raises(type(error)):
            await run(webapp(observed=0), errors=errors)
        shown, status = await run(webapp(), errors=errors)
        assert [sent.kind for sent in shown.sent] == ["Deployment", "Service"]
        assert said(status, "Ready")[1] == "ReplicasNotReady"
    cause = StatusCause(reason="NamespaceTerminating")
    with pytest.raises(Forbidden):
        await run(webapp(), errors={("create", "Deployment"): refused(Forbidden, causes=[cause])})


@pytest.mark.spec("A-10")
async def test_an_object_of_another_owner_is_left_and_its_replicas_do_not_count() -> None:
    for owners in ([controlled_by("X", "x")], []):
        shown, status = await run(webapp(), deployment(owners=owners, replicas=5), service())
        assert (shown.sent, status.ready_replicas) == ([], 0)
        assert said(status, "Ready") == ("False", "NotOwned", 1)
        assert shown.events == [("Warning", "NotOwned")]


@pytest.mark.spec("A-10")
async def test_one_that_asks_for_it_is_adopted_as_it_was_seen() -> None:
    asks = {"annotations": {"konverge.dev/adopt-by": f"WebApp/{NAME}"}}
    bystander = controlled_by("X", "x") | {"controller": False}
    shown, status = await run(webapp(), deployment(owners=[bystander], meta=asks), service())
    (sent,) = shown.sent
    metadata = sent.body["metadata"]
    assert (sent.verb, metadata["uid"], metadata["resourceVersion"]) == ("patch", f"uid-of-{NAME}", "7")
    assert [owner["uid"] for owner in metadata["ownerReferences"]] == ["uid-of-x", OWNER["uid"]]
    assert status.message == ""
    shown, _ = await run(webapp(), deployment(), service(owners=(), meta=asks, type="NodePort"))
    assert [list(sent.body) for sent in shown.sent] == [["metadata"], ["metadata", "spec"]], "and then repaired"


async def test_a_write_that_the_server_undoes_is_no_repair() -> None:
    still = {("patch", "Deployment"): deployment(replicas=5)}
    shown, status = await run(webapp(), deployment(replicas=5), service(), answers=still)
    assert said(status, "Ready") == ("False", "NotKept", 1)
    assert shown.events == [("Warning", "NotKept")]


async def test_an_object_that_took_the_name_in_the_meantime_is_a_conflict() -> None:
    other = refused(Invalid, causes=[StatusCause(field="metadata.uid")])
    errors = {("patch", "Deployment"): other}
    with pytest.raises(Conflict):
        await run(webapp(observed=0), deployment(replicas=5), service(), errors=errors)
    shown, status = await run(webapp(), deployment(replicas=5), service(), errors=errors)
    assert (shown.events, status.message) == ([], "")
    for causes in ([], [StatusCause(field="spec.replicas")]):
        errors = {("patch", "Deployment"): refused(Invalid, causes=causes)}
        _, status = await run(webapp(), deployment(replicas=5), service(), errors=errors)
        assert said(status, "Ready") == ("False", "Invalid", 1), "what is refused is no conflict"


@pytest.mark.parametrize(
    ("ready", "before", "phase", "condition"),
    [
        (2, "Creating", "Running", ("True", "ReplicasReady")),
        (3, "Creating", "Running", ("True", "ReplicasReady")),
        (1, "Creating", "Creating", ("False", "ReplicasNotReady")),
        (None, "Running", "Running", ("False", "ReplicasNotReady")),
    ],
)
async def test_how_the_replicas_are(ready: int | None, before: str, phase: str, condition: tuple[str, str]) -> None:
    _, status = await run(webapp(phase=before, conditions=[SYNCED]), deployment(ready=ready), service())
    assert (status.phase, said(status, "Ready")[:2], status.ready_replicas) == (phase, condition, ready or 0)
    message = next(entry.message for entry in status.conditions if entry.type == "Ready")
    assert message == f"{ready or 0} of 2 replicas are ready"


# ------------------------------------------------------------------ clean-up


async def clean(app: WebApp, *objects: Object, errors: Any = None) -> tuple[Shown, Result | None]:
    shown = Shown("webapp-operator", app, *objects)
    shown.errors |= errors or {}
    return shown, await WebAppReconciler().cleanup(shown.context(app))


@pytest.mark.spec("A-10")
async def test_children_are_deleted_as_they_were_seen_and_waited_for() -> None:
    shown, result = await clean(webapp(), deployment(), service())
    assert (shown.deleted(), result) == ([("Deployment", NAME), ("Service", NAME)], AGAIN)
    for sent in shown.sent:
        assert sent.body["preconditions"] == {"uid": f"uid-of-{NAME}", "resourceVersion": "7"}
        assert (sent.body["propagationPolicy"], sent.namespace) == ("Background", SPACE)
    going = deployment(meta={"deletionTimestamp": OLD})
    shown, result = await clean(webapp(), going)
    assert (shown.sent, result) == ([], AGAIN)
    assert (await clean(webapp(), deployment(owners=())))[1] is None
    gone = {("delete", "Deployment"): refused(NotFound)}
    assert (await clean(webapp(), deployment(), errors=gone))[1] == AGAIN
    changed = {("delete", "Deployment"): refused(Conflict)}
    with pytest.raises(Conflict):
        await clean(webapp(), deployment(), errors=changed)


@pytest.mark.spec("A-10")
async def test_a_deletion_that_orphans_leaves_the_children() -> None:
    shown, result = await clean(webapp(meta={"finalizers": ["orphan"]}), deployment(), service())
    assert (shown.calls, result) == ([], None)


def test_what_the_controller_declares() -> None:
    (controller,) = controllers()
    assert (controller.kind, list(controller.owns)) == (WebApp, [Deployment, Service])
    assert isinstance(controller.reconciler, WebAppReconciler)
