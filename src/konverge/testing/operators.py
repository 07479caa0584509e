"""The fixture `operator`: runs a Manager on the test's cluster, with the definitions of its kinds installed.

The manager is bound to the cluster by `Manager.bound_to`: the one that a module declares is left as it is. It serves no
health checks (virtual time has no sockets, and tests run side by side), and its webhooks are called without sockets.
Where the test has faults, it meets them.
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from konverge.client import AlreadyExists, Client
from konverge.client.definitions import is_served
from konverge.objects import CustomResource, crd
from konverge.objects.kinds.apiextensions_v1 import CustomResourceDefinition
from konverge.objects.kinds.core_v1 import Namespace
from konverge.objects.meta import Object, ObjectMeta
from konverge.runtime import Controller, Manager
from konverge.testing.waiting import eventually

if TYPE_CHECKING:
    from konverge.runtime.webhooks.places import Place as WebhookPlace

Declared = Manager | Iterable[Controller[Any]]
Declaration = Declared | Callable[..., Declared]


class Place(Protocol):
    """Where operators run: a cluster, as far as they need it."""

    @property
    def client(self) -> Client: ...

    def connect(self, agent: str) -> Client:
        """A client for a program of this name."""

    def webhook_place(self) -> WebhookPlace:
        """Where webhooks are served so that the cluster reaches them."""


class RunOperator:
    """What the fixture `operator` is.

    async def test_the_operator(operator, client):
        async with operator(manager) as running:
            ...
    """

    def __init__(self, place: Place, *, on_start: Callable[[Manager], None] = lambda manager: None) -> None:
        """`on_start` is called with every manager that is to run."""
        self._place = place
        self._on_start = on_start

    def __call__(self, what: Declaration, *, paused: Iterable[str] = ()) -> AbstractAsyncContextManager[Manager]:
        """Inside the block the operator runs; when it dies, the block is cancelled and its error is raised.

        `what` is a Manager, controllers, or a function that returns either (which may take a client). `paused` names
        controllers that do nothing until they are stepped or released.
        """
        return self._running(what, frozenset(paused))

    @asynccontextmanager
    async def _running(self, what: Declaration, paused: frozenset[str]) -> AsyncIterator[Manager]:
        declared = _manager(what, self._place.client)
        async with AsyncExitStack() as stack:
            client = await stack.enter_async_context(self._place.connect(declared.name))
            webhooks = declared.webhooks and replace(declared.webhooks, place=self._place.webhook_place())
            manager = declared.bound_to(
                client, health_address=None, metrics=None, paused=paused or None, webhooks=webhooks
            )
            await install_definitions(self._place.client, [*kinds_of(manager.controllers), *reviewed_kinds(manager)])
            together = manager.leader_election or manager.sharding
            if together is not None:
                await _ensure_namespace(self._place.client, together.namespace)
            self._on_start(manager)
            yield await stack.enter_async_context(manager.running())


def _manager(what: Declaration, client: Client) -> Manager:
    if callable(what):
        needed = [
            parameter
            for parameter in inspect.signature(what).parameters.values()
            if parameter.default is parameter.empty and parameter.kind not in (_VAR_POSITIONAL, _VAR_KEYWORD)
        ]
        what = what(client) if needed else what()
    if isinstance(what, Manager):
        return what
    manager = Manager(client, name="operator")
    for controller in what:
        if not isinstance(controller, Controller):
            raise TypeError(
                f"operator() takes a Manager, controllers, or a function that returns either; not {controller!r}"
            )
        manager.add(controller)
    return manager


_VAR_POSITIONAL, _VAR_KEYWORD = inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD


# ------------------------------------------------------------------ definitions


def kinds_of(controllers: Iterable[Controller[Any]]) -> list[type[CustomResource[Any, Any]]]:
    """The custom kinds that controllers name, each once; those that a cluster may lack are left out."""
    kinds: dict[type[Object], None] = {}
    for controller in controllers:
        named = (*controller.versions, *controller.kinds)
        kinds |= dict.fromkeys(kind for kind in named if kind not in controller.optional_kinds)
    return [kind for kind in kinds if issubclass(kind, CustomResource)]


def reviewed_kinds(manager: Manager) -> list[type[CustomResource[Any, Any]]]:
    """The custom kinds that a manager's webhooks are about."""
    webhooks = manager.webhooks.routes.values() if manager.webhooks else ()
    return [kind for webhook in webhooks for kind in webhook.kinds if issubclass(kind, CustomResource)]


async def install_definitions(client: Client, kinds: Iterable[type[CustomResource[Any, Any]]]) -> None:
    """Install the definitions of custom kinds, and wait until they are served; what is installed stays as it is.

    await install_definitions(cluster.client, [WebApp])
    """
    by_name: dict[str, list[type[CustomResource[Any, Any]]]] = {}
    for kind in kinds:
        known = by_name.setdefault(kind.resource.group_resource, [])
        if all(other.resource != kind.resource for other in known):
            known.append(kind)
    for versions in by_name.values():
        try:
            await client.create(crd(*versions))
        except AlreadyExists:
            continue
    for name in by_name:
        await eventually(partial(_established, client, name), message=f"the definition {name} is served")


async def _established(client: Client, name: str) -> bool:
    definition = await client.get(CustomResourceDefinition, name)
    conditions = definition.status.conditions
    if any(condition.type == "Established" and condition.status == "True" for condition in conditions):
        return await is_served(client, definition)
    reasons = [f"{condition.reason}: {condition.message}" for condition in conditions if condition.status != "True"]
    raise AssertionError("; ".join(reasons) or "it has no condition yet")


async def _ensure_namespace(client: Client, name: str) -> None:
    try:
        await client.create(Namespace(metadata=ObjectMeta(name=name)))
    except AlreadyExists:
        return
