"""FlowSchemas and PriorityLevelConfigurations that every server has: kept, or brought back, once a minute.

Those that are mandatory are always as they were meant. Those that are suggested are made again when they are gone, and
keep to what is suggested as long as their annotation does not say otherwise. Others that claim by the annotation to be
of this kind are removed. As on the real server a change lasts up to a minute; a server without such changes
anything in has nothing to do, and no timer.

Upstream: pkg/registry/flowcontrol/ensurer, pkg/registry/flowcontrol/rest.
"""

from __future__ import annotations

import asyncio
import contextlib
import copy

from konverge.apiserver.bootstrap import generated
from konverge.apiserver.flow_schemas import FLOW, LEVELS, SCHEMAS
from konverge.apiserver.merge.managed_fields import update
from konverge.apiserver.merge.owner import Owner
from konverge.apiserver.merge.reset_fields import may_own
from konverge.apiserver.meta.system import timestamp
from konverge.apiserver.object_access import Objects
from konverge.apiserver.registry import Registry
from konverge.apiserver.storage import Event, Store
from konverge.apiserver.storage.failures import Failed
from konverge.apiserver.strategy import Obj

EVERY = 60.0
"""Seconds between two looks."""
MANAGER = "api-priority-and-fairness-config-producer-v1"
MANDATORY = frozenset({"catch-all", "exempt"})
"""The names of the mandatory levels, and of the mandatory schemas."""
AUTO_UPDATE = "apf.kubernetes.io/autoupdate-spec"
_TRUE = frozenset({"1", "t", "T", "TRUE", "true", "True"})  # upstream: strconv.ParseBool
_FALSE = frozenset({"0", "f", "F", "FALSE", "false", "False"})


class BootstrapConfiguration:
    """Keeps the objects that the server brings along."""

    def __init__(self, store: Store, objects: Objects, registry: Registry) -> None:
        self._store = store
        self._objects = objects
        self._registry = registry
        self._began = 0.0
        self._timer: asyncio.TimerHandle | None = None

    def start(self, *, loaded: bool) -> None:
        """`loaded` is a state that an earlier server left; one that was made just now is as it should be."""
        self._began = asyncio.get_running_loop().time()
        for plural in (LEVELS, SCHEMAS):
            self._store.subscribe(f"{FLOW}/{plural}", self._changed)
        self._store.on_recovery(self._arm)
        if loaded:
            self._ensure()

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _changed(self, event: Event) -> None:
        self._arm()

    def _arm(self) -> None:
        if self._timer is None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(EVERY - (loop.time() - self._began) % EVERY, self._look)

    def _look(self) -> None:
        self._timer = None
        self._ensure()

    def _ensure(self) -> None:
        with contextlib.suppress(Failed):  # `_arm` comes when the disk works again
            for group, plural, wanted in generated():
                if group == FLOW:
                    for obj in wanted:
                        self._ensure_one(plural, obj)
                    self._remove_unwanted(plural, {obj["metadata"]["name"] for obj in wanted})

    def _ensure_one(self, plural: str, wanted: Obj) -> None:  # upstream: EnsureConfiguration
        name = wanted["metadata"]["name"]
        if not self._objects.exists(FLOW, plural, "", name):
            made = {**wanted, "status": {}}
            update(None, made, self._owner(plural))
            self._objects.create(FLOW, plural, made)
            return
        self._objects.update(FLOW, plural, "", name, lambda current: self._revised(plural, current, wanted))

    def _revised(self, plural: str, current: Obj, wanted: Obj) -> Obj:  # upstream: ReviseIfNeeded
        automatic = wanted["metadata"]["name"] in MANDATORY or _may_update(current["metadata"])
        revised = copy.deepcopy(current)
        metadata = revised["metadata"]
        if automatic and not _same_spec(wanted, current):
            revised["spec"] = wanted["spec"]
            metadata["generation"] += 1
        if _flag(metadata) is not automatic:
            metadata["annotations"] = {**metadata.get("annotations", {}), AUTO_UPDATE: str(automatic).lower()}
        if revised != current:
            update(current, revised, self._owner(plural))
        return revised

    def _remove_unwanted(self, plural: str, wanted: set[str]) -> None:  # upstream: RemoveUnwantedObjects
        for obj in list(self._objects.scan(FLOW, plural)):
            if obj["metadata"]["name"] not in wanted and _flag(obj["metadata"]):
                self._objects.delete(FLOW, plural, "", obj["metadata"]["name"])

    def _owner(self, plural: str) -> Owner:
        served = self._registry.find(FLOW, "v1", plural)
        assert served is not None
        assert served.typing is not None
        return Owner(
            node=served.typing,
            manager=MANAGER,
            api_version=served.resource.api_version,
            kind=served.resource.kind,
            now=timestamp(),
            may_own=may_own(FLOW, plural),
        )


def _flag(metadata: Obj) -> bool | None:
    """What the annotation says; None without one, and for one that says nothing."""
    value = metadata.get("annotations", {}).get(AUTO_UPDATE)
    return True if value in _TRUE else False if value in _FALSE else None


def _may_update(metadata: Obj) -> bool:  # upstream: shouldUpdateSpec
    """Whether a suggested object follows what is suggested: unless the annotation says so, if its spec is unchanged."""
    flag = _flag(metadata)
    return metadata.get("generation") == 1 if flag is None else flag


def _same_spec(wanted: Obj, current: Obj) -> bool:  # upstream: plcSpecEqualish
    """The shares of the level `exempt` are the administrator's to choose."""
    if "exempt" in wanted["spec"]:
        return "exempt" in current["spec"] and wanted["spec"]["type"] == current["spec"]["type"]
    return bool(wanted["spec"] == current["spec"])
