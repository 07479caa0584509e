"""The options of requests: read from the query (and from the body of a delete), and validated.

Upstream: apimachinery/pkg/apis/meta/v1/validation, apimachinery/pkg/apis/meta/internalversion/validation.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from konverge.apiserver import field_errors, status
from konverge.apiserver.field_errors import FieldError
from konverge.apiserver.go.strconv import NumberError, parse_int
from konverge.apiserver.request.info import Query

Validation = Literal["Ignore", "Warn", "Strict"]
_MANAGER_LIMIT = 128  # upstream: FieldManagerMaxLength


def flag(query: Query, name: str) -> bool:
    """A boolean parameter: everything but "0" and "false" is true, even an empty value."""
    values = query.get(name)
    return values is not None and values[0].lower() not in ("0", "false")


def optional_flag(query: Query, name: str) -> bool | None:
    return flag(query, name) if name in query else None


def number(query: Query, name: str) -> int | None:
    values = query.get(name)
    if values is None:
        return None
    try:
        return parse_int(values[0])
    except NumberError as error:
        raise status.bad_request(str(error)) from None


def text(query: Query, name: str) -> str:
    values = query.get(name)
    return values[0] if values else ""


class WriteOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Of a create, an update or a patch."""

    kind: str
    dry_run: bool = False
    field_manager: str = ""
    field_validation: Validation = "Warn"
    force: bool | None = None

    def body(self) -> dict[str, Any]:
        """As admission webhooks see them."""
        options: dict[str, Any] = {"kind": self.kind, "apiVersion": "meta.k8s.io/v1"}
        if self.dry_run:
            options["dryRun"] = ["All"]
        if self.force is not None:
            options["force"] = self.force
        if self.field_manager:
            options["fieldManager"] = self.field_manager
        options["fieldValidation"] = self.field_validation
        return options


_PLAIN = {kind: WriteOptions(kind=kind) for kind in ("CreateOptions", "UpdateOptions", "PatchOptions")}


# upstream: ValidateCreateOptions, ValidateUpdateOptions, ValidatePatchOptions
def write_options(query: Query, kind: str, *, apply: bool = False) -> WriteOptions:
    if not query and not apply:
        return _PLAIN[kind]
    manager, validation = text(query, "fieldManager"), text(query, "fieldValidation")
    force = optional_flag(query, "force") if kind == "PatchOptions" else None
    errors: list[FieldError] = []
    if apply and not manager:
        errors.append(field_errors.required("fieldManager", "is required for apply patch"))
    if not apply and force is not None:
        errors.append(field_errors.forbidden("force", "may not be specified for non-apply patch"))
    errors += manager_errors(manager, "fieldManager")
    errors += dry_run_errors(query.get("dryRun", []))
    if validation not in ("", "Ignore", "Strict", "Warn"):
        errors.append(field_errors.not_supported("fieldValidation", validation, ["", "Ignore", "Strict", "Warn"]))
    if errors:
        raise status.invalid("meta.k8s.io", kind, "", errors)
    return WriteOptions(
        kind=kind,
        dry_run="dryRun" in query,
        field_manager=manager,
        field_validation=validation or "Warn",  # type: ignore[arg-type]
        force=force,
    )


def manager_errors(manager: str, path: str) -> list[FieldError]:  # upstream: ValidateFieldManager
    if manager.isascii() and manager.isprintable() and len(manager) <= _MANAGER_LIMIT:
        return []
    errors: list[FieldError] = []
    if len(manager.encode()) > _MANAGER_LIMIT:
        errors.append(field_errors.too_long(path, _MANAGER_LIMIT))
    position = 0
    for character in manager:
        if not (character.isprintable() and (character == " " or not character.isspace())):
            detail = f"invalid character U+{ord(character):04X} (at position {position})"
            errors.append(field_errors.invalid(path, manager, detail))
        position += len(character.encode())
    return errors


def dry_run_errors(values: list[str]) -> list[FieldError]:  # upstream: ValidateDryRun
    if all(value == "All" for value in values):
        return []
    return [field_errors.not_supported("dryRun", values, ["All"])]


class ListOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Of a list, a watch or a deletecollection."""

    label_selector: str = ""
    field_selector: str = ""
    shard_selector: str = ""
    limit: int = 0
    continue_: str = ""
    resource_version: str = ""
    match: str = ""
    watch: bool = False
    timeout: int | None = None
    bookmarks: bool = False
    send_initial_events: bool | None = None


NO_LIST_OPTIONS = ListOptions()


def list_options(query: Query, *, watch: bool, sharded: bool = False) -> ListOptions:
    """`sharded`: the server looks at the shard selector."""
    if not query and not watch:
        return NO_LIST_OPTIONS
    options = ListOptions(
        label_selector=text(query, "labelSelector"),
        field_selector=text(query, "fieldSelector"),
        shard_selector=text(query, "shardSelector") if sharded else "",
        limit=number(query, "limit") or 0,
        continue_=text(query, "continue"),
        resource_version=text(query, "resourceVersion"),
        match=text(query, "resourceVersionMatch"),
        watch=watch,
        timeout=number(query, "timeoutSeconds"),
        bookmarks=flag(query, "allowWatchBookmarks"),
        send_initial_events=optional_flag(query, "sendInitialEvents"),
    )
    if watch and options.send_initial_events is None and not options.match and options.resource_version in ("", "0"):
        # upstream: SetListOptionsDefaults (apimachinery/pkg/apis/meta/internalversion)
        options = msgspec.structs.replace(options, send_initial_events=True, match="NotOlderThan")
    errors = _watch_errors(options) if watch else _list_errors(options)
    if errors:
        raise status.invalid("meta.k8s.io", "ListOptions", "", errors)
    return options


_MATCH = "resourceVersionMatch"


def _list_errors(options: ListOptions) -> list[FieldError]:  # upstream: ValidateListOptions
    errors: list[FieldError] = []
    if options.match:
        if not options.resource_version:
            detail = "resourceVersionMatch is forbidden unless resourceVersion is provided"
            errors.append(field_errors.forbidden(_MATCH, detail))
        if options.continue_:
            errors.append(field_errors.forbidden(_MATCH, "resourceVersionMatch is forbidden when continue is provided"))
        if options.match not in ("Exact", "NotOlderThan"):
            errors.append(field_errors.not_supported(_MATCH, options.match, ["Exact", "NotOlderThan", ""]))
        if options.match == "Exact" and options.resource_version == "0":
            detail = 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"'
            errors.append(field_errors.forbidden(_MATCH, detail))
    if options.send_initial_events is not None:
        errors.append(field_errors.forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list"))
    return errors


def _watch_errors(options: ListOptions) -> list[FieldError]:  # upstream: validateWatchOptions
    errors: list[FieldError] = []
    if options.send_initial_events is not None and options.match != "NotOlderThan":
        detail = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
        errors.append(field_errors.forbidden(_MATCH, detail))
    if options.match:
        if options.send_initial_events is None:
            detail = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"
            errors.append(field_errors.forbidden(_MATCH, detail))
        if options.match != "NotOlderThan":
            errors.append(field_errors.not_supported(_MATCH, options.match, ["NotOlderThan"]))
        if options.continue_:
            errors.append(field_errors.forbidden(_MATCH, "resourceVersionMatch is forbidden when continue is provided"))
    return errors


class DeleteOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Of a delete or a deletecollection."""

    dry_run: bool = False
    grace_period: int | None = None
    propagation: str | None = None
    orphan: bool | None = None
    uid: str | None = None
    resource_version: str | None = None
    unsafe: bool = False
    """Of an object that cannot be read any more: `ignoreStoreReadErrorWithClusterBreakingPotential`."""

    def body(self) -> dict[str, Any]:
        options: dict[str, Any] = {"kind": "DeleteOptions", "apiVersion": "meta.k8s.io/v1"}
        if self.grace_period is not None:
            options["gracePeriodSeconds"] = self.grace_period
        conditions = {"uid": self.uid, "resourceVersion": self.resource_version}
        if any(value is not None for value in conditions.values()):
            options["preconditions"] = {key: value for key, value in conditions.items() if value is not None}
        if self.orphan is not None:
            options["orphanDependents"] = self.orphan
        if self.propagation is not None:
            options["propagationPolicy"] = self.propagation
        if self.dry_run:
            options["dryRun"] = ["All"]
        if self.unsafe:
            options[UNSAFE] = True
        return options


UNSAFE = "ignoreStoreReadErrorWithClusterBreakingPotential"
_POLICIES = ["Foreground", "Background", "Orphan", "nil"]


def delete_options(query: Query, body: dict[str, Any] | None) -> DeleteOptions:
    """From the body where there is one, else from the query."""
    if body is None:
        dry_run = query.get("dryRun", [])
        options = DeleteOptions(
            dry_run=bool(dry_run),
            grace_period=number(query, "gracePeriodSeconds"),
            propagation=query["propagationPolicy"][0] if "propagationPolicy" in query else None,
            orphan=optional_flag(query, "orphanDependents"),
            unsafe=flag(query, UNSAFE),
        )
    else:
        conditions = body.get("preconditions") or {}
        dry_run = body.get("dryRun") or []
        options = DeleteOptions(
            dry_run=bool(dry_run),
            grace_period=body.get("gracePeriodSeconds"),
            propagation=body.get("propagationPolicy"),
            orphan=body.get("orphanDependents"),
            uid=conditions.get("uid"),
            resource_version=conditions.get("resourceVersion"),
            unsafe=body.get(UNSAFE) is True,
        )
    errors = _delete_errors(options, dry_run)
    if errors:
        raise status.invalid("meta.k8s.io", "DeleteOptions", "", errors)
    return options


def _delete_errors(options: DeleteOptions, dry_run: list[str]) -> list[FieldError]:  # upstream: ValidateDeleteOptions
    errors: list[FieldError] = []
    policy = options.propagation
    if options.orphan is not None and policy is not None:
        detail = "orphanDependents and deletionPropagation cannot be both set"
        errors.append(field_errors.invalid("propagationPolicy", policy, detail))
    if policy is not None and policy not in _POLICIES[:3]:
        errors.append(field_errors.not_supported("propagationPolicy", policy, _POLICIES))
    return errors + dry_run_errors(dry_run) + _unsafe_errors(options)


def _unsafe_errors(options: DeleteOptions) -> list[FieldError]:  # upstream: ValidateIgnoreStoreReadError
    if not options.unsafe:
        return []
    others = {
        "dryRun": options.dry_run,
        "propagationPolicy": options.propagation is not None,
        "orphanDependents": options.orphan is not None,
        "gracePeriodSeconds": options.grace_period is not None,
        "preconditions": options.uid is not None or options.resource_version is not None,
    }
    given = [name for name, is_set in others.items() if is_set]
    return [field_errors.invalid(UNSAFE, True, f"cannot be set together with .{name}") for name in given]
