"""Reading request bodies: which media type, which kind, and what is wrong with it.

A body may leave out its kind and version; where it names them, they must be those of the path.
"""

from __future__ import annotations

import codecs
from functools import partial

import msgspec

from konverge.apiserver import aside, field_errors, nesting, status
from konverge.apiserver.go import json_pieces
from konverge.apiserver.go.json import cannot_unmarshal, number_error, parse, summary
from konverge.apiserver.go.strconv import quote
from konverge.apiserver.http import negotiate, respond
from konverge.apiserver.http.options import Validation, WriteOptions, write_options
from konverge.apiserver.registry import Registry, Served
from konverge.apiserver.request.call import Call
from konverge.apiserver.schema import decode as schema
from konverge.apiserver.schema import lookup
from konverge.apiserver.strategy import Obj
from konverge.objects.resource import Resource

BODY_LIMIT = 3 * 1024 * 1024  # upstream: MaxRequestBodyBytes (apiserver/pkg/server/config.go)


def media_type(call: Call) -> str:
    header = call.request.headers.get("content-type")
    return header.partition(";")[0].strip().lower() if header else negotiate.JSON


def checked_body(call: Call) -> bytes:
    body = call.request.body
    if len(body) > BODY_LIMIT:
        raise status.too_large(BODY_LIMIT)
    if error := number_error(body):
        kind, version = call.resource.resource.kind, call.resource.resource.version
        raise schema.refused(kind, version, error)
    if body.isascii() or not media_type(call).endswith("json"):
        return body
    try:
        body.decode()
    except UnicodeDecodeError:
        return body.decode(errors=_PER_BYTE).encode()
    return body


_PER_BYTE = "konverge-per-byte"
"""How Go reads JSON that is not UTF-8: each invalid byte becomes a replacement character."""
codecs.register_error(_PER_BYTE, lambda error: ("\ufffd" * (error.end - error.start), error.end))  # type: ignore[attr-defined]


def check_media(call: Call, served: Served) -> None:
    """415 before anything of the body is read."""
    supported = (negotiate.JSON, negotiate.YAML) if served.custom else negotiate.BUILTIN_TYPES
    if media_type(call) not in supported:
        raise status.unsupported_media_type(
            "the body of the request was in an unknown format - accepted media types include: " + ", ".join(supported)
        )


def receive(
    call: Call, served: Served, kind: str, *, sent: Served | None = None, tables: bool = True
) -> tuple[Obj, WriteOptions]:
    """The object in the body of a write, and the write's options, which are of the kind `kind`.

    `sent` is the kind of the body where it is not that of the path: the Scale of a Deployment.
    """
    respond.settle_form(call, custom=served.custom, tables=tables)
    check_media(call, served)
    body = checked_body(call)
    options = write_options(call.query, kind)
    return read(call, sent or served, body, options.field_validation), options


async def received(
    call: Call, served: Served, kind: str, *, sent: Served | None = None, tables: bool = True
) -> tuple[Obj, WriteOptions]:
    """As `receive`, for a handler on the loop: a large body is read beside it."""
    return await aside.run(len(call.request.body), partial(receive, call, served, kind, sent=sent, tables=tables))


def read(call: Call, served: Served, body: bytes, validation: Validation) -> Obj:
    """The object in a body, with kind and apiVersion set; unknown fields are warned of or refused."""
    media = media_type(call)
    if media == negotiate.JSON:
        return decode(call, served, body, validation)
    try:
        if media == negotiate.YAML:
            return _read_yaml(call, served, body, validation)
        return decode(call, served, to_json(call, media, body, served.resource), validation)
    except UnreadableError as error:
        if not error.kind:
            raise _unrecognized(served, str(error), body) from None
        message = (
            f"{error.kind} in version {quote(error.version)} cannot be handled as a {served.resource.kind}: {error}"
        )
        raise status.bad_request(message) from None


def _read_yaml(call: Call, served: Served, body: bytes, validation: Validation) -> Obj:
    """Keys that are repeated in YAML come first among what is warned of, or refused."""
    data, repeated = _yaml_as_json(body)
    if not repeated or validation == "Ignore":
        return decode(call, served, data, validation)
    if validation == "Warn":
        obj, others = decode(call, served, data, validation), list(call.warnings)
        call.warnings, call.warned = [], 0
        call.warn_all([*repeated, *others])
        return obj
    problem = "\n".join(["yaml: unmarshal errors:", *(f"  {line}" for line in repeated)])
    try:
        decode(call, served, data, validation)
    except status.ApiError as error:
        if _STRICT not in error.message:
            raise
        head, _, unknown = error.message.partition(_STRICT)
        raise status.bad_request(f"{head}{_STRICT}{problem}, {unknown}") from None
    raise schema.refused(served.resource.kind, served.resource.version, f"{_STRICT}{problem}")


_STRICT = "strict decoding error: "


class UnreadableError(Exception):
    """A body that is not of its media type. `kind` and `version` are set if that much could be read."""

    def __init__(self, why: str, kind: str = "", version: str = "") -> None:
        super().__init__(why)
        self.kind, self.version = kind, version


def _unrecognized(served: Served, why: str, body: bytes) -> status.ApiError:  # upstream: transformDecodeError
    return status.bad_request(
        f"the object provided is unrecognized (must be of type {served.resource.kind}): {why} ({summary(body)})"
    )


def to_json(call: Call, media: str, body: bytes, expected: Resource) -> bytes:
    """A YAML or protobuf body as JSON; `expected` is its kind where the body does not name one."""
    if media == negotiate.YAML:
        return _yaml_as_json(body)[0]
    from konverge.apiserver import protobuf  # most servers never see protobuf

    try:
        return msgspec.json.encode(protobuf.decode(body, expected))
    except protobuf.ProtobufError as error:
        raise UnreadableError(str(error), error.kind, error.version) from None


def _yaml_as_json(body: bytes) -> tuple[bytes, list[str]]:
    """YAML as JSON, its keys in order as upstream has them, and the keys that are repeated."""
    from konverge.apiserver.go import yaml  # most servers never see YAML

    try:
        value, repeated = yaml.parse(body)
        return msgspec.json.encode(value, order="sorted"), repeated
    except (yaml.YamlError, OverflowError, TypeError) as error:
        raise UnreadableError(str(error)) from None


async def yaml_parsed_in_thread(body: bytes) -> bytes:
    """The same body, with its value at hand for `go.yaml.parse`: a megabyte of YAML takes seconds."""
    return await aside.run(aside.FROM, _yaml_parsed, body)


def _yaml_parsed(body: bytes) -> bytes:
    from konverge.apiserver.go import yaml  # most servers never see YAML

    return body if body.startswith(b"{") and is_json(body) else yaml.parse_ahead(body)


def is_json(body: bytes) -> bool:
    try:
        json_pieces.decode(body)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return False
    return True


def decode(call: Call, served: Served, body: bytes, validation: Validation) -> Obj:
    """Check the kind of a JSON body and decode it by its type."""
    obj, error = parse(body)
    kind = served.resource.kind
    if error == nesting.TOO_DEEP and (number := number_error(body, refused=True)):
        raise schema.refused(kind, served.resource.version, number)
    if error:
        raise _unrecognized(served, f"couldn't get version/kind; json parse error: {error}", body)
    api_version = obj.get("apiVersion") or served.resource.api_version
    given = obj.get("kind") or kind
    if api_version.count("/") > 1:
        raise _unrecognized(served, f"unexpected GroupVersion string: {api_version}", body)
    if (given, api_version.removeprefix("/")) != (kind, served.resource.api_version):
        refuse_kind(call, served, given, api_version, obj)
    raw, obj = obj, typed(call, served, body, obj, validation)
    obj["kind"], obj["apiVersion"] = kind, served.resource.api_version
    if not isinstance(obj.get("metadata"), dict):
        obj["metadata"] = {}
    if wants_reset(raw):
        obj["metadata"]["managedFields"] = [{}]
    return obj


def wants_reset(raw: Obj) -> bool:
    """An empty list of managedFields asks to reset them; the typed object cannot tell it from an absent one."""
    metadata = raw.get("metadata")
    return isinstance(metadata, dict) and metadata.get("managedFields") == []


def typed(call: Call, served: Served, body: bytes, obj: Obj, validation: Validation) -> Obj:
    """The object as its type has it, with warnings of what the type does not have."""
    if served.reader is not None:
        decoded = served.reader(body, validation)
    elif served.typing is not None:
        resource = served.resource
        decoded = schema.strict(
            served.typing, body, kind=resource.kind, version=resource.version, validation=validation, parsed=obj
        )
    else:
        return obj
    call.warn_all(decoded.strict)
    return decoded.obj


def by_type(served: Served, body: bytes, obj: Obj) -> schema.Decoded:
    """As `typed`, for a patched object: unknown fields are only listed. Raises DecodeError."""
    if served.reader is not None:
        return served.reader(body, "Warn")
    if served.typing is not None:
        return schema.from_json(served.typing, body)
    return schema.Decoded(obj, ())


# --- whether a body is of the kind of its path, with the errors of the real server's scheme
# Upstream: apimachinery/pkg/runtime/scheme.go and error.go.

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
    if _scheme(group) != _scheme(resource.group) or not _is_registered(call, group, version, kind):
        raise WrongKind(
            f"no kind {quote(kind)} is registered for version {quote(api_version)} in scheme {quote(SCHEME)}"
        )
    if kind != resource.kind or not _are_one(kind, group, resource.group):
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


_OTHER_SCHEMES = frozenset({"apiextensions.k8s.io", "apiregistration.k8s.io", "apidiscovery.k8s.io"})


def _scheme(group: str) -> str:
    """The parts of the real server that serve these groups know no kinds but their own."""
    return group if group in _OTHER_SCHEMES else ""


def _are_one(kind: str, group: str, other: str) -> bool:
    """Whether a kind of two groups is one kind to the real server: `extensions` is where some groups began."""
    return group in (other, "extensions") or (kind == "Event" and {group, other} == {"", "events.k8s.io"})


def _is_registered(call: Call, group: str, version: str, kind: str) -> bool:
    """Whether the real server's scheme knows a kind, served or not, also in versions that are long gone."""
    if lookup(group, version, kind) is not None:
        return True
    if aside.on_loop(_is_served, call.server.registry, group, version, kind):
        return True
    return _was_served(f"{group}/{version}", kind)


def _was_served(api_version: str, kind: str) -> bool:
    from konverge.apiserver import protobuf  # its tables have the kinds of all versions, and few requests ask

    return protobuf.is_known(api_version, kind)


def _is_served(registry: Registry, group: str, version: str, kind: str) -> bool:
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
    metadata = obj.get("metadata")
    name = str(metadata.get("name", "")) if isinstance(metadata, dict) else ""
    raise status.invalid(resource.group, given, name, [field_errors.invalid("kind", given, f"must be {resource.kind}")])


INTERNAL_PACKAGES = {"": "core", "rbac.authorization.k8s.io": "rbac"}
