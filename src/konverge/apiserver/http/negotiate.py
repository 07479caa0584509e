"""In which form the client wants its answer: JSON or YAML, the object itself, a table of it, or its metadata alone.

The result depends on the Accept header and on what the resource supports, so it is cached by these: a client always
sends the same header. Upstream: apiserver/pkg/endpoints/handlers/negotiation/negotiate.go.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from konverge.apiserver import status
from konverge.apiserver.request.call import PLAIN_JSON, Accepted

JSON = "application/json"
YAML = "application/yaml"
PROTOBUF = "application/vnd.kubernetes.protobuf"
BUILTIN_TYPES = (JSON, YAML, PROTOBUF)
CUSTOM_TYPE = "unstructured.Unstructured"
"""The Go type of every custom resource."""
STREAM_TYPES = (f"{JSON};stream=watch", f"{PROTOBUF};stream=watch")


class Clause(NamedTuple):
    media: str
    params: dict[str, str]


def clauses(header: str) -> list[Clause]:
    """The alternatives of an Accept header, best first (by q, then by their order)."""
    ranked: list[tuple[float, int, Clause]] = []
    for index, part in enumerate(header.split(",")):
        media, *fields = (piece.strip() for piece in part.split(";"))
        params = {key.strip(): value.strip().strip('"') for key, _, value in (f.partition("=") for f in fields)}
        try:
            quality = float(params.pop("q", "1"))
        except ValueError:
            quality = 0.0
        ranked.append((-quality, index, Clause(media.lower(), params)))
    return [clause for _, _, clause in sorted(ranked, key=lambda entry: entry[:2])]


@lru_cache(maxsize=512)
def negotiate(header: str, *, custom: bool = False, streams: bool = False, tables: bool = True) -> Accepted:
    """Choose a form, or raise 406. A client that asks for protobuf gets JSON: all such clients read both.

    Kinds that are not stored, such as reviews, have no tables.
    """
    if not header:
        return PLAIN_JSON
    parsed = clauses(header)
    # Custom resources are not behind the part of the real server that has a message of its own.
    if not custom and not any(clause.media in BUILTIN_TYPES or clause.media == "*/*" for clause in parsed):
        shown = ", ".join(BUILTIN_TYPES + STREAM_TYPES if streams else BUILTIN_TYPES)
        raise status.not_acceptable(f"406: Not Acceptable\n\nAvailable representations: {shown}", details={})
    for clause in parsed:
        accepted = _accept(clause, custom)
        if accepted is not None and (tables or accepted.form != "Table"):
            return accepted
    raise status.not_acceptable(f"only the following media types are accepted: {', '.join(BUILTIN_TYPES)}")


def _accept(clause: Clause, custom: bool) -> Accepted | None:  # upstream: acceptMediaTypeOptions
    media = JSON if clause.media in ("*/*", "application/*") else clause.media
    if media not in BUILTIN_TYPES:
        return None
    params = clause.params
    form, version = params.get("as", ""), params.get("v", "")
    if form or version or "g" in params:
        if params.get("g", "") != "meta.k8s.io" or version not in ("v1", "v1beta1"):
            return None
        if form == "Table":
            if media == PROTOBUF:
                return None
        elif form not in ("PartialObjectMetadata", "PartialObjectMetadataList"):
            return None
    elif media == PROTOBUF and custom:
        return None
    if media == PROTOBUF:
        media = JSON
    return Accepted(media, form, version or "v1", params.get("pretty") == "1")  # type: ignore[arg-type]


def check_form(accepted: Accepted, kind: str, *, listed: bool) -> None:
    """A list cannot be shown as one object's metadata, nor an object as a list of metadata."""
    wrong, what = ("PartialObjectMetadata", "a list") if listed else ("PartialObjectMetadataList", "not a list")
    if accepted.form == wrong:
        if not listed and kind == CUSTOM_TYPE:
            raise status.plain_500("content is not a list")
        raise status.not_acceptable(f"you requested {wrong}, but the requested object is {what} (*{kind})")


def for_stream(accepted: Accepted) -> None:
    """Events are lines of JSON."""
    if accepted.media != JSON:
        raise status.not_acceptable(f"only the following media types are accepted: {', '.join(STREAM_TYPES)}")


def is_human(user_agent: str) -> bool:  # upstream: isPrettyPrint
    """Whether a person reads the answer in this client, so that JSON is indented."""
    return user_agent.startswith(("curl", "Wget", "Mozilla/5.0"))
