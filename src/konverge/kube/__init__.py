"""The built-in controllers of Kubernetes (upstream: kube-controller-manager), written on our own runtime.

A controller is a module, or a package whose `controller.py` is the controller. It offers `controllers()`, `services()`
or both; `MODULES` names those that do. They are imported when they are asked for, so that a program which needs one of
them does not load all.
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from konverge.client import Client
    from konverge.kube.csrsigning import Authority
    from konverge.kube.nodelifecycle.controller import Announced
    from konverge.runtime import Controller

MODULES: tuple[str, ...] = (
    "clusterroleaggregation",
    "cronjob.controller",
    "daemonset.controller",
    "deployment.controller",
    "disruption",
    "endpoints.controller",
    "gc.controller",
    "horizontalpodautoscaler.controller",
    "job.controller",
    "namespace",
    "podgc",
    "quota",
    "replicaset",
    "statefulset.controller",
    "ttlafterfinished",
    "volume_protection",
)
"""Modules of `konverge.kube` whose `controllers()` and `services()` take no arguments, in alphabetical order."""


class Service(Protocol):
    """A controller of all kinds, which cannot be declared as a controller of one; it runs until it is cancelled."""

    name: str

    async def run(self, client: Client) -> None: ...


def all_controllers(
    *, root_ca: str = "", announced: Announced | None = None, authority: Authority | None = None
) -> list[Controller[Any]]:
    """The declarations of all controllers, for one Manager.

    `root_ca` is the certificate (PEM) by which pods verify the API server; it is published in each namespace.
    `announced` are nodes that need not be polled for as long as they are announced to be alive; `authority` signs
    approved requests for certificates, which are left alone without it.
    """
    from konverge.kube import csrsigning, serviceaccounts
    from konverge.kube.nodelifecycle import controller as nodelifecycle  # these take arguments

    others = [controller for make in _makers("controllers") for controller in make()]
    signing = csrsigning.controllers(authority) if authority is not None else []
    return [*serviceaccounts.controllers(root_ca), *nodelifecycle.controllers(announced), *signing, *others]


def load() -> None:
    """Import all of them, which takes a third of a second: in a thread, so that it does not hold up an event loop.

    >>> load()
    """
    from konverge.kube import serviceaccounts  # noqa: F401
    from konverge.kube.nodelifecycle import controller  # noqa: F401

    _modules()


def services() -> list[Service]:
    """The services that run beside the controllers."""
    return [service for make in _makers("services") for service in make()]


def _modules() -> list[ModuleType]:
    return [import_module(f"{__name__}.{module}") for module in MODULES]


def _makers(name: str) -> list[Any]:
    return [getattr(module, name) for module in _modules() if hasattr(module, name)]
