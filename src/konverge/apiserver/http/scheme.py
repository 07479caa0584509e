"""Whether a body is of the kind of its path. Errors have the text of the real server's scheme.

Upstream: apimachinery/pkg/runtime/scheme.go and error.go.
"""

from __future__ import annotations

import msgspec

from konverge.apiserver import field_errors, schema, status
from konverge.apiserver.go.json import cannot_unmarshal
from konverge.apiserver.go.strconv import quote
from konverge.apiserver.registry import Served
from konverge.apiserver.request.call import Call
from konverge.apiserver.strategy import Obj

SCHEME = "pkg/runtime/scheme.go:111"
"""The name of its scheme in messages: the line of scheme.go that made it."""


class WrongKind(Exception):
    """A body of another kind; the text is that of the real server's scheme."""


def same_kind(call: Call, served: Served, obj: Obj) -> None:
    """Raises WrongKind for an object of another kind; kind and version may be absent."""
    resource = served.resource
    kind, api_version = obj.get("kind") or resource.kind, obj.get("apiVersion") or resource.api_version
    for name, value in (("apiVersion", api_version), ("kind", kind)):
        if not isinstance(value, str):
            wrong = cannot_unmarshal(value, f"struct field .{name} of type string")
            raise WrongKind(f"couldn't get version/kind; json parse error: {wrong}")
    if (kind, api_version) == (resource.kind, resource.api_version):
        return
    group, _, version = api_version.rpartition("/")
    if not _is_registered(call, group, version, kind):
        raise WrongKind(
            f"no kind {quote(kind)} is registered for version {quote(api_version)} in scheme {quote(SCHEME)}"
        )
    if kind != resource.kind or group != resource.group:
        package = INTERNAL_PACKAGES.get(resource.group, resource.group.partition(".")[0])
        raise WrongKind(f"converting ({version}.{kind}) to ({package}.{resource.kind}): unknown conversion")


# Kinds that every group-version of the real server knows, or the core group alone.
_COMMON_KINDS = frozenset(
    {"ListOptions", "GetOptions", "DeleteOptions", "CreateOptions", "UpdateOptions", "PatchOptions"}
)
_COMMON_KINDS |= {"WatchEvent"}
_CORE_KINDS = frozenset(
    {"List", "Status", "APIVersions", "APIGroupList", "APIGroup", "APIResourceList", "PodLogOptions"}
)
_CORE_KINDS |= {"PodExecOptions", "PodAttachOptions", "PodPortForwardOptions", "PodProxyOptions", "NodeProxyOptions"}
_CORE_KINDS |= {"ServiceProxyOptions", "PodStatusResult", "RangeAllocation", "SerializedReference"}


def _is_registered(call: Call, group: str, version: str, kind: str) -> bool:
    """Whether the real server's scheme knows a kind, served or not."""
    registry = call.server.registry
    if schema.lookup(group, version, kind) is not None:
        return True
    if version not in registry.versions(group):
        return False
    if kind in _COMMON_KINDS or (not group and kind in _CORE_KINDS):
        return True
    names = (kind, kind.removesuffix("List"))
    return any(registry.by_kind(group, version, name) is not None for name in names)


def refuse_kind(call: Call, served: Served, given: str, api_version: str, obj: Obj) -> None:
    if served.custom:
        _wrong_custom_kind(served, given, api_version, obj)
    version = api_version.rpartition("/")[2]
    try:
        if not version:
            raise WrongKind(f"Object 'apiVersion' is missing in '{msgspec.json.encode(obj).decode()}'")
        same_kind(call, served, obj)
    except WrongKind as error:
        version = api_version.rpartition("/")[2]
        raise status.bad_request(
            f"{given} in version {quote(version)} cannot be handled as a {served.resource.kind}: {error}"
        ) from None
    raise _wrong_version(served, api_version)


def _wrong_version(served: Served, given: str) -> status.ApiError:
    wanted = served.resource.api_version
    return status.bad_request(
        f"the API version in the data ({given}) does not match the expected API version ({wanted})"
    )


def _wrong_custom_kind(served: Served, given: str, api_version: str, obj: Obj) -> None:
    """A custom resource is in no scheme: its validation says what kind it must be."""
    resource = served.resource
    if api_version != resource.api_version:
        raise _wrong_version(served, api_version)
    name = str((obj.get("metadata") or {}).get("name", ""))
    raise status.invalid(resource.group, given, name, [field_errors.invalid("kind", given, f"must be {resource.kind}")])


INTERNAL_PACKAGES = {"": "core", "rbac.authorization.k8s.io": "rbac"}
