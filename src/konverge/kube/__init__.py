"""The controllers that make a Kubernetes of an API server, each an ordinary controller on our own runtime.

A module of this package offers `controllers()`, `services()` or both; the tuple below names those that do. They are
imported when somebody asks, so that a program which needs one of them does not pay for all.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from konverge.client import Client
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
    "job.controller",
    "namespace",
    "podgc",
    "quota.controller",
    "replicaset",
    "replicationcontroller",
    "statefulset.controller",
    "ttlafterfinished",
    "volume_protection",
)
"""Modules of `konverge.kube` with something to run that need not be told anything, in the order of the alphabet."""


class Service(Protocol):
    """What looks at every kind there is and therefore is no controller of one: it runs until it is cancelled."""

    name: str

    async def run(self, client: Client) -> None: ...


def all_controllers(*, root_ca: str = "", announced: Announced | None = None) -> list[Controller[Any]]:
    """The declarations of all controllers, for one Manager.

    `root_ca` is the certificate (PEM) by which pods know the API server; each namespace is given it. `announced` are
    nodes that need not be looked at for as long as they are announced to be alive.
    """
    from konverge.kube import serviceaccounts
    from konverge.kube.nodelifecycle import controller as nodelifecycle  # these need to be told something

    others = [controller for make in _makers("controllers") for controller in make()]
    return [*serviceaccounts.controllers(root_ca), *nodelifecycle.controllers(announced), *others]


def services() -> list[Service]:
    """Everything else that has to run beside them."""
    return [service for make in _makers("services") for service in make()]


def _makers(name: str) -> list[Any]:
    modules = [import_module(f"{__name__}.{module}") for module in MODULES]
    return [getattr(module, name) for module in modules if hasattr(module, name)]
