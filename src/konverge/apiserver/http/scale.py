"""/scale: the replicas of an object, whatever kind it is, as an `autoscaling/v1` Scale.

A write changes the Scale that is made from the object; its replicas go back into the object, which is then updated as
usual. So do the managedFields: the manager who writes the Scale owns the replicas of the object.

Upstream: ScaleREST and scaleUpdatedObjectInfo (pkg/registry/apps/deployment/storage/storage.go).
"""

from __future__ import annotations

import msgspec

from konverge.apiserver import aside, field_errors, status
from konverge.apiserver.go.strconv import quote
from konverge.apiserver.http import bodies, managed_fields, negotiate, patch, reads, render, respond, writes
from konverge.apiserver.http.options import WriteOptions
from konverge.apiserver.merge import apply as applying
from konverge.apiserver.merge.scale import replicas_path, to_parent, to_scale
from konverge.apiserver.meta import system
from konverge.apiserver.meta.validate import managed_field_errors
from konverge.apiserver.registry import Served, kind_alone
from konverge.apiserver.request.call import Call
from konverge.apiserver.strategy import Obj, ScaleView
from konverge.objects.labels import SelectorError, from_selector_dict
from konverge.wire.message import Response

_UNSET = -(2**31)
"""The replicas, while a write changes a Scale, of an object that has none. Upstream: invalidSpecReplicas."""


class WorkloadScale:
    """Of the built-in workloads."""

    spec = ".spec.replicas"

    def get(self, obj: Obj) -> Obj:
        return self.read(obj)[0]

    def read(self, obj: Obj) -> tuple[Obj, bool]:
        metadata, replicas = obj["metadata"], (obj.get("spec") or {}).get("replicas")
        names = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
        scale: Obj = {
            "kind": "Scale",
            "apiVersion": "autoscaling/v1",
            "metadata": {name: metadata[name] for name in names if metadata.get(name)},
            "spec": {"replicas": replicas} if replicas else {},
            "status": {"replicas": (obj.get("status") or {}).get("replicas") or 0},
        }
        selector = _selector(obj)
        if selector:
            scale["status"]["selector"] = selector
        return scale, replicas is not None

    def write(self, obj: Obj, replicas: int | None) -> None:
        obj["spec"]["replicas"] = replicas or 0


def _selector(obj: Obj) -> str:
    """The selector as text. A ReplicationController has a map, the others a LabelSelector."""
    selector = obj["spec"].get("selector") or {}
    if not any(key in selector for key in ("matchLabels", "matchExpressions")):
        return ",".join(f"{key}={selector[key]}" for key in sorted(selector))
    try:
        return str(from_selector_dict(selector))
    except SelectorError as error:
        raise status.internal(f"failed to convert label selector to selector: {error}") from None


_WORKLOAD = WorkloadScale()


class _Lens:
    """What admission sees of a write: the Scale, and not the object behind it."""

    def __init__(self, view: ScaleView) -> None:
        self._view = view

    def show(self, obj: Obj) -> Obj:
        return self._view.read(obj)[0]

    def take(self, obj: Obj, shown: Obj) -> Obj:
        self._view.write(obj, (shown.get("spec") or {}).get("replicas") or 0)
        return obj


def view_of(call: Call, served: Served) -> ScaleView:
    if not served.custom:
        return _WORKLOAD
    scale = served.strategy.scale
    if scale is None:
        raise status.not_found(served.resource.group, served.resource.plural, call.info.name)
    return scale


async def get(call: Call) -> Response:
    served = call.resource
    respond.settle_form(call, custom=served.custom)
    view, record = view_of(call, served), reads.find(call)
    return _answered(call, served, view.get(render.restored(served, record)))


def _answered(call: Call, served: Served, scale: Obj) -> Response:
    return respond.answer(call, 200, _in_form(call, served, scale) if call.accepted.form else scale)


def _in_form(call: Call, served: Served, scale: Obj) -> Obj:
    """A Scale as a table, or its metadata alone."""
    accepted, kind = call.accepted, kind_alone("autoscaling", "v1", "Scale")
    # That of a custom resource is of the served version, that of a workload is the internal one.
    negotiate.check_form(accepted, "v1.Scale" if served.custom else kind.go_type, listed=False)
    if accepted.form != "Table":
        return render.partial(scale, accepted.version)
    metadata = {"resourceVersion": scale["metadata"]["resourceVersion"]}
    include = render.include_object(call)
    table = render.table(call.server.tables, kind, [scale], metadata, accepted.version, include)
    if served.custom:
        name, *others, age = table["columnDefinitions"]
        table["columnDefinitions"] = [{**name, "format": "name"}, *others, {**age, "type": "date"}]
    return table


async def update(call: Call) -> Response:
    served, scale_kind = call.resource, kind_alone("autoscaling", "v1", "Scale")
    try:
        body, options = await bodies.received(call, served, "UpdateOptions", sent=scale_kind)
    except status.ApiError as error:
        raise _untyped() if served.custom and error.code == 400 else error from None
    system.match_namespace(body["metadata"], call.info.namespace)
    system.match_name(body["metadata"], call.info.name)
    sent = msgspec.json.encode(body)

    def change(old: Obj) -> Obj:
        new: Obj = msgspec.json.decode(sent)
        managed_fields.track(call, scale_kind, old, new, options)
        return new

    return await _write(call, served, change, options)


def _untyped() -> status.ApiError:
    """The scheme of custom resources has no Scale, so the real server cannot say what is wrong with one."""
    return status.bad_request(f"no kind is registered for the type v1.Scale in scheme {quote(bodies.SCHEME)}")


async def patch_scale(call: Call) -> Response:
    served, scale_kind = call.resource, kind_alone("autoscaling", "v1", "Scale")
    media, body, options = patch.receive(call, served)
    if media == patch.APPLY_PATCH:
        return await _apply(call, served, scale_kind, body, options)
    sent = await aside.run(len(body), patch.read, scale_kind, media, body, options)

    def change(old: Obj) -> Obj:
        new = patch.decoded(call, scale_kind, sent, old, options)
        patch.check_identity(call, served, new, old)
        managed_fields.track(call, scale_kind, old, new, options)
        return new

    return await _write(call, served, change, options)


async def _apply(call: Call, served: Served, scale_kind: Served, body: bytes, options: WriteOptions) -> Response:
    configuration = await aside.run(len(body), patch.Configuration, body)
    owner = managed_fields.owner_of(call, scale_kind, options)
    assert owner is not None

    def change(old: Obj) -> Obj:
        applied = configuration.as_sent()
        if served.custom:
            applying.check_kind(applied.obj, owner)
            raise _unappliable()
        new = applying.apply(old, applied.obj, owner, force=bool(options.force))
        call.warn_all(applying.warnings(applied, options.field_validation))
        patch.check_identity(call, served, new, old)
        return new

    return await _write(call, served, change, options)


def _unappliable() -> status.ApiError:
    """The Scale of a custom resource cannot be applied to: the real server converts by the definition alone."""
    live, version = (
        "(/; autoscaling/v1, Kind=Scale)",
        "request to convert CR to an invalid group/version: autoscaling/v1",
    )
    why = f"failed to convert live object {live} to proper version: {version}"
    return status.plain_500(f"failed to create manager for existing fields: {why}")


async def _write(call: Call, served: Served, change: patch.ChangeObject, options: WriteOptions) -> Response:
    """Change the Scale of an object, and so the object."""
    view = view_of(call, served)
    path, api_version = replicas_path(view.spec), served.resource.api_version

    def through(live: Obj | None) -> Obj:
        assert live is not None
        old, is_set = view.read(live)
        if not is_set:
            old["spec"]["replicas"] = _UNSET
        entries = live["metadata"].get("managedFields")
        if entries and (own := to_scale(entries, path)):
            old["metadata"]["managedFields"] = own
        new = change(old)
        replicas = (new.get("spec") or {}).get("replicas") or 0
        view.write(live, None if replicas == _UNSET else replicas)
        _check(call, served, new, live)
        version = new["metadata"].get("resourceVersion", "")
        if version or not served.custom:  # custom resources know no unconditional update, but their scale does
            live["metadata"]["resourceVersion"] = version
        merged = to_parent(entries, new["metadata"].get("managedFields"), path, api_version)
        live["metadata"]["managedFields"] = merged
        if not merged:
            del live["metadata"]["managedFields"]
        return live

    written = await writes.update(call, served, through, options, lens=_Lens(view))
    return _answered(call, served, view.read(render.restored(served, written.record))[0])


def _check(call: Call, served: Served, scale: Obj, live: Obj) -> None:
    metadata, name = scale["metadata"], call.info.name
    errors = managed_field_errors(metadata.get("managedFields"))
    replicas = (scale.get("spec") or {}).get("replicas") or 0
    if replicas < 0 and not served.custom:
        errors.append(field_errors.invalid("spec.replicas", replicas, "must be greater than or equal to 0"))
    if errors:
        raise status.invalid("autoscaling", "Scale", name, errors)
    uid, wanted = metadata.get("uid"), live["metadata"].get("uid")
    if uid and uid != wanted:
        if call.info.method == "PUT":
            raise writes.uid_conflict(call, served, uid, wanted)
        why = f"Precondition failed: UID in precondition: {uid}, UID in object meta: {wanted}"
        raise status.conflict(served.resource.group, f"{served.resource.plural}/scale", name, why)
