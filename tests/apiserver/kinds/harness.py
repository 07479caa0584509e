"""Asks a strategy what the server would ask it, without a server.

    world = World()
    created = world.create("", "Pod", {"metadata": {"name": "p"}, "spec": {…}})
    created.errors, created.obj, created.warnings

`recorded` plays the creates and merge patches of a recorded scenario this way, and yields what was expected.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple

import yaml

from konverge.apiserver import kinds, schema, status
from konverge.apiserver.field_errors import FieldError
from konverge.apiserver.meta import validate
from konverge.apiserver.schema import decode
from konverge.apiserver.strategy import Obj

CORPUS = Path(__file__).parents[2] / "conformance" / "public" / "scenarios"
NAMESPACE = "test"


@dataclass
class Outcome:
    """What became of one request."""

    obj: Obj
    errors: list[FieldError] = field(default_factory=list)
    refusal: str = ""
    """The message of a refusal that came before validation."""
    warnings: list[str] = field(default_factory=list)

    @property
    def texts(self) -> list[str]:
        return [str(error) for error in self.errors]


class World:
    """The `Context` of a request, and the objects that are stored."""

    def __init__(self) -> None:
        self.operation: Literal["CREATE", "UPDATE", "DELETE", "CONNECT"] = "CREATE"
        self.subresource = ""
        self.namespace = NAMESPACE
        self.name = ""
        self.username = "admin"
        self.groups: tuple[str, ...] = ()
        self.user_uid = ""
        self.user_extra: Mapping[str, Sequence[str]] = {}
        self.verb = "create"
        self.dry_run = False
        self.stored: dict[tuple[str, str, str, str], Obj] = {}
        self.warned: list[str] = []

    # --- the context

    def lookup(self, group: str, plural: str, namespace: str, name: str) -> Obj | None:
        return copy.deepcopy(self.stored.get((group, plural, namespace, name)))

    def scan(self, group: str, plural: str, namespace: str = "") -> Iterable[Obj]:
        return [copy.deepcopy(obj) for key, obj in self.stored.items() if key[:2] == (group, plural)]

    def refusal(self, verb: str, subresource: str, namespace: str, name: str) -> str:
        return ""

    def warn_all(self, texts: Iterable[str]) -> None:
        for text in texts:
            self.warn(text)

    def warn(self, text: str) -> None:
        self.warned.append(text)

    # --- requests

    def create(self, group: str, kind: str, body: Obj, *, version: str = "v1", cluster_wide: bool = False) -> Outcome:
        """A create as the request path does it; stored when it is valid."""
        strategy = kinds.lookup(group, kind)
        obj = _decoded(group, version, kind, body)
        metadata = obj["metadata"]
        if not cluster_wide:
            metadata.setdefault("namespace", self.namespace)
        self.operation, self.warned, self.name = "CREATE", [], metadata.get("name") or ""
        strategy.defaults(obj)
        try:
            strategy.prepare_create(obj, self)
        except status.ApiError as error:
            return Outcome(obj, refusal=error.message)
        errors = validate.on_create(metadata, namespaced=not cluster_wide, name_check=strategy.name_check, builtin=True)
        return self._finish(group, kind, strategy, obj, None, [*errors, *strategy.validate_create(obj, self)])

    def patch(self, group: str, kind: str, name: str, change: Obj, *, subresource: str = "") -> Outcome:
        """A merge patch of a stored object."""
        strategy = kinds.lookup(group, kind)
        key = next(key for key in self.stored if key[0] == group and key[1] == _plural(kind) and key[3] == name)
        old = copy.deepcopy(self.stored[key])
        obj = _decoded(group, "v1", kind, merged(old, change))
        strategy.defaults(obj)
        self.operation, self.warned, self.name = "UPDATE", [], name
        try:
            if not subresource:
                strategy.prepare_update(obj, old, self)
                errors = list(strategy.validate_update(obj, old, self))
            else:
                rules = strategy.status if subresource == "status" else strategy.subresources[subresource]
                assert rules is not None
                if subresource == "status":
                    obj = {**old, "metadata": obj["metadata"], "status": obj["status"]}
                rules.prepare(obj, old, self)
                errors = list(rules.validate(obj, old, self))
        except status.ApiError as error:
            return Outcome(obj, refusal=error.message)
        return self._finish(group, kind, strategy, obj, None if subresource else old, errors)

    def _finish(
        self, group: str, kind: str, strategy: Any, obj: Obj, old: Obj | None, errors: list[FieldError]
    ) -> Outcome:
        if errors:
            return Outcome(obj, errors=errors)
        warnings = [*self.warned, *strategy.warnings(obj, old, self)]
        metadata = obj["metadata"]
        key = (group, _plural(kind), metadata.get("namespace") or "", metadata.get("name") or "")
        self.stored[key] = copy.deepcopy(obj)
        return Outcome(obj, warnings=warnings)


def _plural(kind: str) -> str:
    return kind.lower() if kind == "Endpoints" else f"{kind.lower()}s"


def _decoded(group: str, version: str, kind: str, body: Obj) -> Obj:
    node = schema.lookup(group, version, kind)
    assert node is not None
    obj = decode.normalise(node, copy.deepcopy(body))
    obj.setdefault("metadata", {})
    return obj


def merged(old: Any, change: Any) -> Any:
    """A JSON merge patch."""
    if not isinstance(change, dict):
        return change
    result = dict(old) if isinstance(old, dict) else {}
    for key, value in change.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merged(result.get(key), value)
    return result


_CLUSTER_WIDE = ("Node", "Namespace", "PersistentVolume")


def named(**members: Any) -> Obj:
    return {"metadata": {"name": "x"}, **members}


def stored(kind: str, obj: Obj) -> World:
    """A world with one object of the core group."""
    world = World()
    outcome = world.create("", kind, obj, cluster_wide=kind in _CLUSTER_WIDE)
    assert outcome.texts == []
    return world


class Change(NamedTuple):
    """A merge patch of a stored object, and the errors that a real kube-apiserver answered to it."""

    kind: str
    obj: Obj
    change: Obj
    errors: list[str]
    subresource: str = ""

    def check(self) -> None:
        world = stored(self.kind, self.obj)
        assert world.patch("", self.kind, "x", self.change, subresource=self.subresource).texts == self.errors


# --- recorded scenarios

_PATH = re.compile(
    r"/api/v1(?:/namespaces/(?P<namespace>[^/]+))?/(?P<plural>[a-z]+)(?:/(?P<name>[^/]+))?(?:/(?P<sub>[a-z]+))?"
)


@dataclass
class Exchange:
    """One recorded step that a strategy decides, and what became of it here."""

    id: str
    expected: int
    body: Any
    outcome: Outcome

    @property
    def message(self) -> str:
        """The message of our answer, as a Status has it."""
        if self.outcome.refusal:
            return self.outcome.refusal
        error = status.invalid("", self.kind, self.outcome.obj["metadata"].get("name") or "", self.outcome.errors)
        return error.message if self.outcome.errors else ""

    kind: str = ""


def recorded(scenario: str, kind: str) -> Iterator[Exchange]:
    """The creates and merge patches of `kind` in a scenario that ended with 2xx or 422."""
    world = World()
    steps = yaml.load((CORPUS / f"{scenario}.yaml").read_text(), Loader=yaml.CSafeLoader)["steps"]
    for step in steps:
        request = step.get("request") or {}
        match = _PATH.fullmatch(request.get("path", ""))
        if not match or match["plural"] != _plural(kind) or not isinstance(request.get("body"), dict):
            continue
        world.namespace = match["namespace"] or NAMESPACE
        outcome = _played(world, kind, request, match["name"], match["sub"] or "")
        expected = step.get("expect", {})
        if outcome is not None and expected.get("status") in (200, 201, 422):
            yield Exchange(step["id"], expected["status"], expected.get("body") or {}, outcome, kind)


def _played(world: World, kind: str, request: Obj, name: str | None, subresource: str) -> Outcome | None:
    body = copy.deepcopy(request["body"])
    if request["method"] == "POST" and not name:
        if kind == "Pod" and body.get("spec"):
            body["spec"].setdefault("serviceAccountName", "default")  # what admission sets
        return world.create("", kind, body, cluster_wide=kind in _CLUSTER_WIDE)
    kinds_of_patch = (request.get("headers") or {}).get("Content-Type", "")
    known = any(key[1] == _plural(kind) and key[3] == name for key in world.stored)
    if (
        request["method"] != "PATCH"
        or "merge-patch" not in kinds_of_patch
        or "strategic" in kinds_of_patch
        or not known
    ):
        return None
    assert name is not None
    return world.patch("", kind, name, body, subresource=subresource)
