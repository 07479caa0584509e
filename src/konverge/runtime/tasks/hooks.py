"""Hooks of a manager's life, on every replica: before anything of it runs, and after the last reconcile."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence

import msgspec

from konverge.client import Client
from konverge.runtime.failures import message
from konverge.runtime.problems import noticing
from konverge.runtime.tasks.cancellation import authors_code
from konverge.runtime.tasks.manager_tasks import task_name

HOOK_TIMEOUT = 10.0
"""Seconds that a shut-down hook has."""

_log = logging.getLogger("konverge.manager")


class StartupFailed(Exception):
    """A start-up hook raised: the manager does not run."""


class HookContext(msgspec.Struct, frozen=True, kw_only=True):
    """What a hook works with.

    At start-up the client may write on every replica, leader or not: let it write only what may be written twice. At
    the end it writes only while this process still leads.
    """

    client: Client
    log: logging.Logger = _log


Hook = Callable[[HookContext], Awaitable[object]]


async def run_startup_hooks(hooks: Sequence[Hook], client: Client) -> None:
    """One after the other, in the order in which they were declared. Raises StartupFailed."""
    for hook in hooks:
        name = task_name(hook)
        try:
            with authors_code(), noticing(lambda name=name: f"waiting for the start-up hook {name}"):  # type: ignore[misc]
                await hook(HookContext(client=client))
        except Exception as error:
            _log.error("the start-up hook %s failed", name, exc_info=error)
            raise StartupFailed(f"the start-up hook {name} failed: {message(error)}") from error


class ShutdownHooks:
    """The shut-down hooks of one run. `client` writes only while this process leads, once there is such a client."""

    def __init__(self, hooks: Sequence[Hook], client: Client, limit: float) -> None:
        self.client = client
        self._hooks = list(hooks)
        self._limit = min(HOOK_TIMEOUT, limit)

    async def run(self) -> None:
        """Run them once, in reverse order, each within the limit; one that fails does not stop the others."""
        while self._hooks:
            hook = self._hooks.pop()
            name = task_name(hook)
            try:
                async with asyncio.timeout(self._limit):
                    with authors_code():
                        await hook(HookContext(client=self.client))
            except TimeoutError as error:
                _log.error("the shut-down hook %s has not returned within %g s", name, self._limit, exc_info=error)
            except Exception as error:
                _log.error("the shut-down hook %s failed", name, exc_info=error)
