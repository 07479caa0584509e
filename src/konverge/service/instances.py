"""The handlers: create, delete, modify and query instances. Each is one call to the API server, made as the caller."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode, urlsplit

from konverge.client import BadRequest, Conflict, Invalid, MergePatch
from konverge.objects.kinds.authentication_v1 import SelfSubjectReview
from konverge.objects.kinds.core_v1 import Event
from konverge.operators.nacos.resource import Nacos
from konverge.service.access import AGENT
from konverge.service.call import Call, answer
from konverge.service.catalogue import Catalogue
from konverge.service.models import (
    MOST_LABELS,
    Change,
    Happenings,
    Identity,
    Instance,
    Instances,
    NewInstance,
    Offers,
)
from konverge.service.problems import Problem, from_client, wrong_field
from konverge.service.redaction import Obj, shown
from konverge.service.views import happening, instance
from konverge.wire.message import Headers, Response

NACOS = Nacos.resource
MERGE_PATCH = "application/merge-patch+json"
YAML = "application/yaml"
_EVENTS = 500
_REVIEWS = SelfSubjectReview.resource
_REVIEW: Obj = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}


async def identity(call: Call) -> Response:
    call.only()
    return answer(await _reviewed(call))


async def versions(call: Call) -> Response:
    call.only()
    await _reviewed(call)  # the offers are for those whom the cluster knows
    return answer(Offers(items=call.options.catalogue.offers()))


async def query(call: Call) -> Response:
    """One page, of a namespace or of all."""
    call.only("limit", "continue", "labelSelector")
    found = await call.client.list(
        NACOS,
        call.namespace,
        limit=call.number("limit", call.options.page, call.options.largest_page),
        continue_token=call.query.get("continue", ""),
        label_selector=call.query.get("labelSelector", ""),
        timeout=call.options.request_time,
    )
    page = Instances(
        items=[instance(one) for one in found],
        continue_token=found.metadata.continue_,
        remaining=found.metadata.remaining_item_count or 0,
        resource_version=found.metadata.resource_version,
    )
    return answer(page, Link=_next(call, page.continue_token)) if page.continue_token else answer(page)


async def get(call: Call) -> Response:
    call.only()
    return _one(instance(await _read(call)))


async def manifest(call: Call) -> Response:
    """The resource as YAML, without its secrets: to look at, not to apply."""
    import yaml  # only this page needs it

    call.only()
    resource = shown(await _read(call))
    text = yaml.safe_dump(resource, sort_keys=False, allow_unicode=True)
    return Response(200, Headers.of({"Content-Type": YAML}), text.encode())


async def events(call: Call) -> Response:
    call.only()
    chosen = f"involvedObject.kind={NACOS.kind},involvedObject.name={call.name}"
    found = await call.client.list(
        Event.resource, call.namespace, field_selector=chosen, limit=_EVENTS, timeout=call.options.request_time
    )
    items = sorted((happening(one) for one in found), key=lambda one: one.last, reverse=True)
    return answer(Happenings(items=items))


async def create(call: Call) -> Response:
    call.only("dryRun")
    wish = call.body(NewInstance)
    if len(wish.labels) > MOST_LABELS:
        raise wrong_field("labels", f"are more than {MOST_LABELS}")
    body = {
        "apiVersion": NACOS.api_version,
        "kind": NACOS.kind,
        "metadata": {"name": wish.name, "namespace": call.namespace, "labels": wish.labels},
        "spec": {**wish.spec, "image": _image(wish, call.options.catalogue)},
    }
    made = instance(
        await call.client.create(
            body,
            resource=NACOS,
            field_validation="Strict",
            field_manager=AGENT,
            dry_run=call.flag("dryRun"),
            timeout=call.options.request_time,
        )
    )
    where = f"/api/v1/namespaces/{made.namespace}/instances/{made.name}"
    return answer(made, 201, Location=where, ETag=_tag(made))


async def modify(call: Call) -> Response:
    call.only("dryRun")
    seen = call.if_match
    body: Obj = {"spec": _changes(call)}
    if seen:
        body["metadata"] = {"resourceVersion": seen}
    try:
        changed = await call.client.patch(
            NACOS,
            call.name,
            MergePatch(body),
            call.namespace,
            field_validation="Strict",
            field_manager=AGENT,
            dry_run=call.flag("dryRun"),
            timeout=call.options.request_time,
        )
    except Conflict as error:
        raise _lost(error, seen) from error
    except (BadRequest, Invalid) as error:
        raise from_client(error).inside("spec.") from error
    return _one(instance(changed))


async def delete(call: Call) -> Response:
    """202 while the operator is still taking it down, 204 when it is gone at once."""
    call.only("dryRun")
    seen = call.if_match
    try:
        left = await call.client.delete(
            NACOS,
            call.name,
            call.namespace,
            if_version=seen,
            dry_run=call.flag("dryRun"),
            timeout=call.options.request_time,
        )
    except Conflict as error:
        raise _lost(error, seen) from error
    return answer(instance(left), 202) if left is not None else Response(204)


# ---------------------------------------------------------------------------------------------- what they share


async def _reviewed(call: Call) -> Identity:
    """Whom the cluster takes the caller for. Raises 401 when for nobody."""
    found = await call.client.create(_REVIEW, resource=_REVIEWS, timeout=call.options.request_time)
    user = found.get("status", {}).get("userInfo", {})
    return Identity(username=user.get("username", ""), groups=user.get("groups") or [])


async def _read(call: Call) -> Obj:
    return await call.client.get(NACOS, call.name, call.namespace, timeout=call.options.request_time)


def _one(found: Instance) -> Response:
    return answer(found, ETag=_tag(found))


def _tag(found: Instance) -> str:
    return f'"{found.resource_version}"'


def _next(call: Call, token: str) -> str:
    parts = urlsplit(call.request.target)
    return f'<{parts.path}?{urlencode({**call.query, "continue": token})}>; rel="next"'


def _image(wish: NewInstance, offered: Catalogue) -> Any:
    if "image" in wish.spec:
        if wish.version:
            raise wrong_field("version", "give either the version or spec.image")
        return wish.spec["image"]
    return _offered(wish.version or offered.default, offered)


def _offered(version: str, offered: Catalogue) -> str:
    image = offered.image(version)
    if image is None:
        known = ", ".join(one.version for one in offered.offers())
        raise wrong_field("version", f"is not offered; choose one of {known}", reason="FieldValueNotSupported")
    return image


def _changes(call: Call) -> Obj:
    wish = call.body(Change, MERGE_PATCH)
    spec: Obj = {"replicas": wish.replicas, "resources": wish.resources}
    if wish.version:
        spec["image"] = _offered(wish.version, call.options.catalogue)
    spec = {name: value for name, value in spec.items() if value is not None}
    if not spec:
        raise Problem(422, "nothing to change: give replicas, resources or version", reason="Invalid")
    return spec


def _lost(error: Conflict, seen: str) -> Exception:
    """A Conflict is a failed precondition for those who made one."""
    if not seen:
        return error
    return Problem(412, f"{error.message}; read the instance again", reason="Conflict")
