"""The first lines of an operator: where it is connected, as whom, what it watches, and how it is reached."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from konverge import clock
from konverge.client import ApiStatusError, Client, ClientError, TimedOut, Unauthorized
from konverge.objects.resource import Resource
from konverge.observe.repeated import Repeated
from konverge.runtime.declare import Controller, Settings
from konverge.runtime.problems import is_passing, noticing

PAUSES = (0.5, 5.0)
"""Seconds between two attempts to reach the server: the first, and the longest."""

_REVIEWS = Resource("authentication.k8s.io", "v1", "SelfSubjectReview", "selfsubjectreviews", False)

_log = logging.getLogger("konverge.manager")


async def reach(client: Client, limit: float) -> None:
    """Wait until the server answers, for at most `limit` seconds, and log what it is. Raises ClientError."""
    if client.caller.near:
        _log.info("connected to an API server in this process")
        return
    version = await _version(client, limit)
    who = await _user(client)
    _log.info("connected to %s%s: Kubernetes %s", client.server, f" as {who}" if who else "", version)


async def _version(client: Client, limit: float) -> str:
    lines = Repeated()
    pause = PAUSES[0]
    latest: ClientError | None = None
    try:
        async with asyncio.timeout(limit):
            while True:
                try:
                    with noticing(lambda: f"no answer from {client.server} yet; waiting for it"):
                        return str((await client.version()).get("gitVersion", "of unknown version"))
                except ClientError as error:
                    latest = error
                if not is_passing(latest):
                    if isinstance(latest, ApiStatusError) and not isinstance(latest, Unauthorized):
                        return "of unknown version"  # it answers; /version may be closed to us
                    raise latest
                if lines.due():
                    _log.warning("%s; trying again for up to %g s", latest, limit)
                await asyncio.sleep(pause * clock.rng().uniform(0.8, 1.2))
                pause = min(2 * pause, PAUSES[1])
    except TimeoutError:
        raise latest or TimedOut(f"{client.server} has not answered within {limit:g} s") from None


async def _user(client: Client) -> str:
    """Who we are for the server; an older one does not say."""
    review = {"apiVersion": _REVIEWS.api_version, "kind": _REVIEWS.kind}
    try:
        answer = await client.create(review, resource=_REVIEWS)
    except ClientError:
        return ""
    user: Any = answer.get("status", {}).get("userInfo", {}).get("username", "")
    return str(user)


def introduce(controllers: Iterable[Controller[Any]], settings: Settings, election: str) -> None:
    """Log what this process does."""
    for controller in controllers:
        workers = controller.workers or (controller.settings or Settings()).over(settings).workers
        spaces = f"namespaces {', '.join(controller.namespaces)}" if controller.namespaces else "all namespaces"
        parts = [f"watches {_name(controller.kind.resource)} in {spaces}"]
        if controller.owned:
            parts.append(f"owns {', '.join(dict.fromkeys(_name(owned.kind.resource) for owned in controller.owned))}")
        used = [use.resource for use in controller.uses if use.cached]
        if looks := [*(watch.kind.resource for watch in controller.watched), *used]:
            parts.append(f"looks at {', '.join(dict.fromkeys(map(_name, looks)))}")
        _log.info("%s %s; %d workers", controller.name, "; ".join(parts), workers)
    _log.info("leader election: %s", election or "none, so let only one process run")


def _name(resource: Resource) -> str:
    return resource.group_resource


def program_source(controllers: Iterable[Controller[Any]]) -> str:
    """What `konverge crd` and `konverge rbac` take to find this program's declarations: a file or a module."""
    main = sys.modules.get("__main__")
    spec, file = getattr(main, "__spec__", None), getattr(main, "__file__", None)
    if spec is not None and spec.name and not spec.name.startswith(("pytest", "konverge.")):
        return str(spec.name).removesuffix(".__main__")
    if file and file.endswith(".py"):
        path, here = Path(file), Path.cwd()
        return str(path.relative_to(here) if path.is_relative_to(here) else path)
    modules = [str(getattr(controller.reconciler, "__module__", "")) for controller in controllers]
    return next((module for module in modules if module), "")
