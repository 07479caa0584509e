"""Reading request bodies: which media type, which kind, and what is wrong with it.

A body may leave out its kind and version; where it names them, they must be those of the path.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from konverge.apiserver import fielderrors, status
from konverge.apiserver.fielderrors import quote
from konverge.apiserver.http import negotiate
from konverge.apiserver.http.options import Validation
from konverge.apiserver.registry import Served
from konverge.apiserver.schema import decode as schema
from konverge.apiserver.strategy import Obj

if TYPE_CHECKING:
    from konverge.apiserver.http.call import Call

BODY_LIMIT = 3 * 1024 * 1024
SCHEME = "pkg/runtime/scheme.go:111"


def media_type(call: Call) -> str:
    return call.request.headers.get("content-type").partition(";")[0].strip().lower() or negotiate.JSON


def checked_body(call: Call) -> bytes:
    if len(call.request.body) > BODY_LIMIT:
        raise status.too_large(BODY_LIMIT)
    return call.request.body


def check_media(call: Call, served: Served) -> None:
    """415 before anything of the body is read."""
    supported = (negotiate.JSON, negotiate.YAML) if served.custom else negotiate.BUILTIN_TYPES
    if media_type(call) not in supported:
        raise status.unsupported_media_type(
            "the body of the request was in an unknown format - accepted media types include: " + ", ".join(supported)
        )


def read(call: Call, served: Served, body: bytes, validation: Validation) -> Obj:
    """The object in a body, with kind and apiVersion set; unknown fields are warned of or refused."""
    media = media_type(call)
    if media != negotiate.JSON:
        body = to_json(call, media, body)
    return decode(call, served, body, validation)


def to_json(call: Call, media: str, body: bytes) -> bytes:
    """A YAML or protobuf body as JSON."""
    if media == negotiate.YAML:
        return yaml_to_json(body)
    decoder = call.server.body_decoders.get(media)
    if decoder is None:
        raise status.unsupported_media_type(
            "the body of the request was in an unknown format - accepted media types include: "
            f"{negotiate.JSON}, {negotiate.YAML}"
        )
    return msgspec.json.encode(decoder(body))


def yaml_to_json(body: bytes, prefix: str = "") -> bytes:
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        return msgspec.json.encode(yaml.load(body, Loader=loader))  # noqa: S506 - a safe loader
    except (yaml.YAMLError, TypeError, ValueError, RecursionError) as error:
        raise status.bad_request(f"{prefix}error converting YAML to JSON: {error}") from None


def decode(call: Call, served: Served, body: bytes, validation: Validation) -> Obj:
    """Check the kind of a JSON body and decode it by its type."""
    obj, error = parse(body)
    kind = served.resource.kind
    if error:
        raise status.bad_request(
            f"the object provided is unrecognized (must be of type {kind}): couldn't get version/kind; "
            f"json parse error: {error} ({summary(body)})"
        )
    api_version = obj.get("apiVersion") or served.resource.api_version
    given = obj.get("kind") or kind
    if api_version.count("/") > 1:
        raise status.bad_request(
            f"the object provided is unrecognized (must be of type {kind}): "
            f"unexpected GroupVersion string: {api_version} ({summary(body)})"
        )
    if (given, api_version) != (kind, served.resource.api_version):
        _wrong_kind(call, served, given, api_version, obj)
    obj = typed(call, served, body, obj, validation)
    obj["kind"], obj["apiVersion"] = kind, served.resource.api_version
    if not isinstance(obj.get("metadata"), dict):
        obj["metadata"] = {}
    return obj


def typed(call: Call, served: Served, body: bytes, obj: Obj, validation: Validation) -> Obj:
    """The object as its type has it, with warnings of what the type does not have."""
    if served.reader is not None:
        decoded = served.reader(body, validation)
    elif served.typing is not None:
        resource = served.resource
        decoded = schema.strict(
            served.typing, body, kind=resource.kind, version=resource.version, validation=validation
        )
    else:
        return obj
    for text in decoded.strict:
        call.warn(text)
    return decoded.obj


def by_type(served: Served, body: bytes, obj: Obj) -> schema.Decoded:
    """As `typed`, for a patched object: what is odd about it is told, not judged. Raises DecodeError."""
    if served.reader is not None:
        return served.reader(body, "Warn")
    if served.typing is not None:
        return schema.from_json(served.typing, body)
    return schema.Decoded(obj, ())


def yaml_object(body: bytes) -> schema.Decoded:
    """The object that is applied: YAML, of which JSON is a part."""
    try:
        obj = msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError):
        body = yaml_to_json(body, "error decoding patch: ")
        obj = msgspec.json.decode(body)
    if obj is None:
        return schema.Decoded({}, ())
    if not isinstance(obj, dict):
        wrong = f"json: cannot unmarshal {json_type(obj)} into Go value of type map[string]interface {{}}"
        raise status.bad_request(f"error decoding patch: error unmarshaling JSON: while decoding JSON: {wrong}")
    return schema.Decoded(obj, schema.duplicates(body))


_TYPE_OF_HEAD = (
    'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }'
)


def parse(body: bytes) -> tuple[Obj, str]:
    """A JSON object, or what Go would say about it."""
    try:
        obj: Any = msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError):
        return {}, syntax_error(body)
    if obj is None:
        return {}, ""
    if not isinstance(obj, dict):
        return {}, f"json: cannot unmarshal {json_type(obj)} into Go value of type {_TYPE_OF_HEAD}"
    for key, name in (("apiVersion", ".apiVersion"), ("kind", ".kind")):
        if not isinstance(obj.get(key, ""), str) and obj[key] is not None:
            return {}, f"json: cannot unmarshal {json_type(obj[key])} into Go struct field {name} of type string"
    return obj, ""


def json_type(value: Any) -> str:
    if isinstance(value, bool):
        return "bool"
    return {"str": "string", "list": "array", "dict": "object"}.get(type(value).__name__, "number")


def syntax_error(body: bytes) -> str:
    """What Go's JSON scanner says about a broken body."""
    import json

    text = body.decode("utf-8", "replace")
    if not text.strip():
        return "unexpected end of JSON input"
    try:
        json.loads(text)
    except RecursionError:
        return "exceeded max depth"
    except json.JSONDecodeError as error:
        if error.pos >= len(text.rstrip()) or error.msg.startswith("Unterminated string"):
            return "unexpected end of JSON input"
        character = "'\\\\''" if text[error.pos] == "'" else quote(text[error.pos]).replace('"', "'", 2)
        return f"invalid character {character} {_expectation(error.msg)}"
    return "invalid character"


def _expectation(message: str) -> str:
    if message.startswith("Expecting property name"):
        return "looking for beginning of object key string"
    if message.startswith("Expecting ':'"):
        return "after object key"
    if message.startswith("Expecting ','"):
        return "after object key:value pair"
    if message.startswith("Extra data"):
        return "after top-level value"
    return "looking for beginning of value"


def summary(body: bytes) -> str:
    """The beginning of a body for a message: as text when it looks like JSON, else as hex."""
    if not body:
        return "<empty>"
    cut = body[:30]
    shown = cut.decode("utf-8", "replace") if body[:1] == b"{" else cut.hex()
    return shown + " ..." if len(body) > 30 else shown


class WrongKind(Exception):
    """A body of another kind, in the words of the real server's scheme."""


def same_kind(call: Call, served: Served, obj: Obj) -> None:
    """Raises WrongKind for an object of another kind; kind and version may be absent."""
    resource = served.resource
    kind, api_version = obj.get("kind") or resource.kind, obj.get("apiVersion") or resource.api_version
    if (kind, api_version) == (resource.kind, resource.api_version):
        return
    group, _, version = api_version.rpartition("/")
    if call.server.registry.by_kind(group, version, kind) is None:
        raise WrongKind(
            f"no kind {quote(kind)} is registered for version {quote(api_version)} in scheme {quote(SCHEME)}"
        )
    if kind != resource.kind or group != resource.group:
        package = INTERNAL_PACKAGES.get(resource.group, resource.group.partition(".")[0])
        raise WrongKind(f"converting ({version}.{kind}) to ({package}.{resource.kind}): unknown conversion")


def _wrong_kind(call: Call, served: Served, given: str, api_version: str, obj: Obj) -> None:
    if served.custom:
        _wrong_custom_kind(served, given, api_version, obj)
    try:
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
    """A custom resource has no scheme to be looked up in: its validation says what it must be."""
    resource = served.resource
    if api_version != resource.api_version:
        raise _wrong_version(served, api_version)
    name = str((obj.get("metadata") or {}).get("name", ""))
    raise status.invalid(
        resource.group, resource.kind, name, [fielderrors.invalid("kind", given, f"must be {resource.kind}")]
    )


INTERNAL_PACKAGES = {"": "core", "rbac.authorization.k8s.io": "rbac"}
