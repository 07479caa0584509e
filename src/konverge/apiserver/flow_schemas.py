"""A controller that runs in the API server itself: the conditions of FlowSchemas.

It follows a table and, in the loop's next turn, writes the condition that the present state requires. A condition
that says the same already is left alone, so that no write causes another one. After the disk has failed, all conditions
are looked at again: some may not have been written, or not have stayed.

Upstream: apiserver/pkg/util/flowcontrol/apf_controller.go.
"""

from __future__ import annotations

import asyncio
import contextlib

from konverge.apiserver.conditions import set_condition
from konverge.apiserver.object_access import Objects
from konverge.apiserver.storage import Event, Store
from konverge.apiserver.storage.failures import Failed
from konverge.apiserver.strategy import Obj

FLOW = "flowcontrol.apiserver.k8s.io"
SCHEMAS = "flowschemas"
LEVELS = "prioritylevelconfigurations"


class FlowSchemaConditions:
    """Keeps the conditions of FlowSchemas in step with the levels that exist."""

    def __init__(self, store: Store, objects: Objects) -> None:
        self._store = store
        self._objects = objects
        self._pending: set[str] = set()

    def start(self) -> None:
        self._store.subscribe(f"{FLOW}/{SCHEMAS}", self._changed)
        self._store.subscribe(f"{FLOW}/{LEVELS}", self._levels_changed)
        self._store.on_recovery(self._check_all)

    def _check_all(self) -> None:
        for record in self._objects.records(FLOW, SCHEMAS):
            self._later(record.name)

    def _changed(self, event: Event) -> None:
        if event.record is not None:
            self._later(event.key)

    def _levels_changed(self, event: Event) -> None:
        if event.record is None or event.old is None:
            self._check_all()

    def _later(self, name: str) -> None:
        if name not in self._pending:
            self._pending.add(name)
            asyncio.get_running_loop().call_soon(self._settle, name)

    def _settle(self, name: str) -> None:
        self._pending.discard(name)
        with contextlib.suppress(Failed):  # `_check_all` comes when the disk works again
            self._objects.update(FLOW, SCHEMAS, "", name, self._dangling)

    def _dangling(self, schema: Obj) -> None:
        level = schema["spec"]["priorityLevelConfiguration"]["name"]
        exists = self._objects.exists(FLOW, LEVELS, "", level)
        what = f'This FlowSchema references the PriorityLevelConfiguration object named "{level}"'
        condition = {
            "type": "Dangling",
            "status": "False" if exists else "True",
            "reason": "Found" if exists else "NotFound",
            "message": f"{what} and it exists" if exists else f"{what} but there is no such object",
        }
        owner = {"manager": "api-priority-and-fairness-config-consumer-v1", "operation": "Apply"}
        set_condition(schema, condition, {**owner, "apiVersion": f"{FLOW}/v1"}, nested=False)
