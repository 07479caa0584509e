"""The handlers: create, delete, modify and query instances. Each is one request to the API server as the caller."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode, urlsplit

from konverge.client import BadRequest, Conflict, Invalid, MergePatch
from konverge.objects.kinds.authentication_v1 import SelfSubjectReview
from konverge.objects.kinds.core_v1 import Event
from konverge.operators.nacos.resource import Nacos
from konverge.service.access import AGENT
from konverge.service.call import Call, answer
from konverge.service.models import MOST_LABELS, Change, Happenings, Identity, Instance, Instances, NewInstance, Offers
from konverge.service.options import Catalogue
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
    await _reviewed(call)  # only callers whom the cluster accepts may see the offers
    return answer(Offers(items=call.options.catalogue.offers()))


async def query(call: Call) -> Response:
    """One page, of a namespace or of all."""
    call.only("limit", "continue", "labelSelector")
    resources = await call.client.list(
        NACOS,
        call.namespace,
        limit=call.number("limit", call.options.page, call.options.largest_page),
        continue_token=call.query.get("continue", ""),
        label_selector=call.query.get("labelSelector", ""),
        timeout=call.options.request_time,
    )
    page = Instances(
        items=[instance(resource) for resource in resources],
        continue_token=resources.metadata.continue_,
        remaining=resources.metadata.remaining_item_count or 0,
        resource_version=resources.metadata.resource_version,
    )
    return answer(page, Link=_next(call, page.continue_token)) if page.continue_token else answer(page)


async def get(call: Call) -> Response:
    call.only()
    return _answer_with_etag(instance(await _read(call)))


async def manifest(call: Call) -> Response:
    """The resource as YAML, without its secrets: for reading, not for applying."""
    from konverge.go_yaml import dump  # only this page needs it

    call.only()
    resource = shown(await _read(call))
    return Response(200, Headers.of({"Content-Type": YAML}), dump(resource).encode())


async def events(call: Call) -> Response:
    call.only()
    selector = f"involvedObject.kind={NACOS.kind},involvedObject.name={call.name}"
    events = await call.client.list(
        Event.resource, call.namespace, field_selector=selector, limit=_EVENTS, timeout=call.options.request_time
    )
    items = sorted((happening(event) for event in events), key=lambda item: item.last, reverse=True)
    return answer(Happenings(items=items))


async def create(call: Call) -> Response:
    call.only("dryRun")
    new = call.body(NewInstance)
    if len(new.labels) > MOST_LABELS:
        raise wrong_field("labels", f"are more than {MOST_LABELS}")
    body = {
        "apiVersion": NACOS.api_version,
        "kind": NACOS.kind,
        "metadata": {"name": new.name, "namespace": call.namespace, "labels": new.labels},
        "spec": {**new.spec, "image": _image(new, call.options.catalogue)},
    }
    created = instance(
        await call.client.create(
            body,
            resource=NACOS,
            field_validation="Strict",
            field_manager=AGENT,
            dry_run=call.flag("dryRun"),
            timeout=call.options.request_time,
        )
    )
    location = f"/api/v1/namespaces/{created.namespace}/instances/{created.name}"
    return answer(created, 201, Location=location, ETag=_etag(created))


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
        raise _precondition(error, seen) from error
    except (BadRequest, Invalid) as error:
        raise from_client(error).inside("spec.") from error
    return _answer_with_etag(instance(changed))


async def delete(call: Call) -> Response:
    """202 while it is being deleted, 204 when it is gone at once."""
    call.only("dryRun")
    seen = call.if_match
    try:
        remaining = await call.client.delete(
            NACOS,
            call.name,
            call.namespace,
            if_version=seen,
            dry_run=call.flag("dryRun"),
            timeout=call.options.request_time,
        )
    except Conflict as error:
        raise _precondition(error, seen) from error
    return answer(instance(remaining), 202) if remaining is not None else Response(204)


# ---------------------------------------------------------------------------------------------- helpers


async def _reviewed(call: Call) -> Identity:
    """The user that the cluster sees in the caller's token. Raises 401 for an unknown token."""
    review = await call.client.create(_REVIEW, resource=_REVIEWS, timeout=call.options.request_time)
    user = review.get("status", {}).get("userInfo", {})
    return Identity(username=user.get("username", ""), groups=user.get("groups") or [])


async def _read(call: Call) -> Obj:
    return await call.client.get(NACOS, call.name, call.namespace, timeout=call.options.request_time)


def _answer_with_etag(item: Instance) -> Response:
    return answer(item, ETag=_etag(item))


def _etag(item: Instance) -> str:
    return f'"{item.resource_version}"'


def _next(call: Call, token: str) -> str:
    parts = urlsplit(call.request.target)
    return f'<{parts.path}?{urlencode({**call.query, "continue": token})}>; rel="next"'


def _image(new: NewInstance, catalogue: Catalogue) -> Any:
    if "image" in new.spec:
        if new.version:
            raise wrong_field("version", "give either the version or spec.image")
        return new.spec["image"]
    if new.spec.get("version"):  # it would go before the tag of the image that is chosen here
        if new.version:
            raise wrong_field("version", "give either the version or spec.version")
        raise wrong_field("spec.version", "is that of spec.image: give the image too, or version in place of both")
    return _offered(new.version or catalogue.default, catalogue)


def _offered(version: str, catalogue: Catalogue) -> str:
    image = catalogue.image(version)
    if image is None:
        known = ", ".join(offer.version for offer in catalogue.offers())
        raise wrong_field("version", f"is not offered; choose one of {known}", reason="FieldValueNotSupported")
    return image


def _changes(call: Call) -> Obj:
    change = call.body(Change, MERGE_PATCH)
    spec: Obj = {"replicas": change.replicas, "hibernate": change.hibernate, "resources": change.resources}
    spec = {name: value for name, value in spec.items() if value is not None}
    if change.version:
        spec["image"] = _offered(change.version, call.options.catalogue)
        spec["version"] = None  # what the spec declares is of the image before, and goes before the tag of this one
    if not spec:
        raise Problem(422, "nothing to change: give replicas, hibernate, resources or version", reason="Invalid")
    return spec


def _precondition(error: Conflict, seen: str) -> Exception:
    """For a request with If-Match, a Conflict is a failed precondition."""
    if not seen:
        return error
    return Problem(412, f"{error.message}; read the instance again", reason="Conflict")
