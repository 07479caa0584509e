"""Mistakes in the Nacos operator."""

from __future__ import annotations

from typing import Any

from bench._mutants import Mutant, Patch, answering, replaced, returning
from konverge.client import ClientError
from konverge.objects.kinds.apps_v1 import StatefulSet
from konverge.objects.kinds.core_v1 import ConfigMap, Service
from konverge.operators.nacos import operator, steps
from konverge.operators.nacos.steps import phase
from konverge.operators.nacos.steps.outcome import CONTINUE
from konverge.operators.nacos.steps.state import ReconcileState
from konverge.runtime import base_context

_ensure = ReconcileState.ensure


def services_once() -> Patch:
    async def made(self: Any, child: Any, **more: Any) -> Any:
        if isinstance(child, Service) and self.status.phase == "Running":
            return None
        return await _ensure(self, child, **more)

    return replaced(ReconcileState, ensure=made)


def services_only_with_the_set() -> Patch:
    """The flag is in memory: an incarnation that did not make the StatefulSet makes no Services."""
    made_by: list[Any] = []

    async def made(self: Any, child: Any, **more: Any) -> Any:
        if isinstance(child, StatefulSet) and await self.ctx.get(StatefulSet, child.metadata.name) is None:
            made_by.append(self.tools)
        if isinstance(child, Service) and not any(tools is self.tools for tools in made_by):
            return None
        return await _ensure(self, child, **more)

    return replaced(ReconcileState, ensure=made)


def running_without_asking() -> Patch:
    well = answering(CONTINUE)
    chosen = tuple(well if step.__name__ == "check_and_make_heal" else step for step in steps.STEPS)
    return replaced(operator, STEPS=chosen)


def taken_by_name() -> Patch:
    """What is there under a child's name is taken, whoever made it."""
    unasked = replaced(base_context, require_ownership=returning(None))
    return replaced(phase, refuse_foreign=answering(CONTINUE)), unasked


def error_swallowed() -> Patch:
    """A Service is tried once in the life of a process and of a resource."""
    asked: list[tuple[Any, str, str]] = []

    async def made(self: Any, child: Any, **more: Any) -> Any:
        if not isinstance(child, Service):
            return await _ensure(self, child, **more)
        uid, name = self.ctx.obj.metadata.uid, child.metadata.name
        if any(tools is self.tools and (uid, name) == (one, other) for tools, one, other in asked):
            return None
        asked.append((self.tools, uid, name))
        try:
            return await _ensure(self, child, **more)
        except ClientError:
            return None

    return replaced(ReconcileState, ensure=made)


def status_every_time() -> Patch:
    """A counter in the status goes up with every look."""
    before = phase.update_status

    async def counted(state: Any) -> Any:
        outcome = await before(state)
        state.status.version_digest = f"{state.status.version_digest[:8]}{state.ctx.obj.metadata.resource_version[-4:]}"
        return outcome

    chosen = tuple(counted if step is before else step for step in steps.STEPS)
    return replaced(operator, STEPS=chosen)


def config_once() -> Patch:
    """The servers keep the configuration that they began with."""

    async def made(self: Any, child: Any, **more: Any) -> Any:
        if isinstance(child, ConfigMap) and await self.ctx.get(ConfigMap, child.metadata.name) is not None:
            return None
        return await _ensure(self, child, **more)

    return replaced(ReconcileState, ensure=made)


MUTANTS = [
    Mutant("services-once", "once it runs, Services that others delete or change are not looked at", services_once),
    Mutant("services-with-the-set", "Services are only made by who made the StatefulSet", services_only_with_the_set),
    Mutant("running-without-asking", "it is said to run without a look at pods and servers", running_without_asking),
    Mutant("taken-by-name", "children of others with the right name are taken", taken_by_name),
    Mutant("error-swallowed", "a Service that could not be written is never tried again", error_swallowed),
    Mutant("status-every-time", "every reconcile writes another status", status_every_time),
    Mutant("config-once", "a ConfigMap that is there is never written again", config_once),
]
