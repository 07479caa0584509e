"""The options of each verb, as typed keyword arguments, and their names in the query."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Protocol, TypedDict

FieldValidation = Literal["Strict", "Warn", "Ignore"]
Propagation = Literal["Background", "Foreground", "Orphan"]
VersionMatch = Literal["Exact", "NotOlderThan"]


class SelectorLike(Protocol):
    """A parsed selector; its text is what goes on the wire."""

    def __str__(self) -> str: ...


class CallOptions(TypedDict, total=False):
    """For every verb."""

    timeout: float | None
    """Seconds until the caller gives up (`TimedOut`); None for no limit."""


class GetOptions(CallOptions, total=False):
    resource_version: str
    """`0` for whatever the server has cached; unset for the newest."""


class SelectOptions(CallOptions, total=False):
    """For list, watch and delete_collection."""

    label_selector: str | SelectorLike
    field_selector: str | SelectorLike
    resource_version: str
    resource_version_match: VersionMatch


class ListOptions(SelectOptions, total=False):
    limit: int
    continue_token: str


class WatchOptions(SelectOptions, total=False):
    bookmarks: bool
    """Ask for BOOKMARK events (the default): they keep the resourceVersion young."""
    send_initial_events: bool
    """Begin with the present state, ended by a bookmark (with resource_version_match="NotOlderThan")."""
    timeout_seconds: int
    """The server ends the watch after so many seconds. A connection still silent 10 s later counts as lost."""


class WriteOptions(CallOptions, total=False):
    dry_run: bool
    field_manager: str
    field_validation: FieldValidation
    """What the server does about fields it does not know: refuse, warn (its default) or drop them."""


class UpdateOptions(WriteOptions, total=False):
    subresource: str
    """Write this subresource, `status` for example, instead of the object."""


class ApplyOptions(UpdateOptions, total=False):
    force: bool
    """Take fields over from other managers instead of failing with Conflict."""


class DeleteOptions(CallOptions, total=False):
    dry_run: bool
    grace_period: int
    propagation: Propagation
    uid: str
    """Delete only this very incarnation of the name."""
    if_version: str
    """Delete only if this is still the resourceVersion."""


class DeleteCollectionOptions(SelectOptions, total=False):
    dry_run: bool
    grace_period: int
    propagation: Propagation


DRY_RUN = ["All"]
_QUERY = {
    "resource_version": "resourceVersion",
    "resource_version_match": "resourceVersionMatch",
    "label_selector": "labelSelector",
    "field_selector": "fieldSelector",
    "limit": "limit",
    "continue_token": "continue",
    "bookmarks": "allowWatchBookmarks",
    "send_initial_events": "sendInitialEvents",
    "timeout_seconds": "timeoutSeconds",
    "dry_run": "dryRun",
    "field_manager": "fieldManager",
    "field_validation": "fieldValidation",
    "force": "force",
}


_ELSEWHERE = frozenset(("timeout", "grace_period", "propagation", "uid", "if_version"))
"""Options that are no part of the query."""


def to_query(options: Mapping[str, Any]) -> dict[str, str]:
    """The query of the options given; unset, None and empty ones are left out. Misspelt ones are refused: without its
    selector, a deletion would be one of everything.

    >>> to_query({"dry_run": True, "limit": 5, "label_selector": "", "timeout": 3})
    {'dryRun': 'All', 'limit': '5'}
    """
    query: dict[str, str] = {}
    for name, value in options.items():
        key = _QUERY.get(name)
        if key is None and name not in _ELSEWHERE:
            raise TypeError(f"there is no option {name!r}; there are {', '.join(sorted({*_QUERY, *_ELSEWHERE}))}")
        if key is None or value is None:
            continue
        text = _of_flag(name, value) if isinstance(value, bool) else str(value)
        if text:
            query[key] = text
    return query


def _of_flag(name: str, value: bool) -> str:
    if name == "send_initial_events":
        # False is a value of its own here: a watch with a version match and without the present state.
        return "true" if value else "false"
    return ("All" if name == "dry_run" else "true") if value else ""


def delete_body(options: Mapping[str, Any]) -> dict[str, Any]:
    """The DeleteOptions object. Where there is one, the server does not look at the query: so all of it is here."""
    body: dict[str, Any] = {"kind": "DeleteOptions", "apiVersion": "v1"}
    if options.get("dry_run"):
        body["dryRun"] = DRY_RUN
    if (grace := options.get("grace_period")) is not None:
        body["gracePeriodSeconds"] = grace
    if propagation := options.get("propagation"):
        body["propagationPolicy"] = propagation
    preconditions = {"uid": options.get("uid"), "resourceVersion": options.get("if_version")}
    if given := {key: value for key, value in preconditions.items() if value}:
        body["preconditions"] = given
    return body
