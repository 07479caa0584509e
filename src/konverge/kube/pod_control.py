"""Creating and deleting many pods: in batches of 1, 2, 4, … that stop at the first refusal, with an event for each pod.

When the first is refused (a quota, a bad template, a namespace that is being deleted), hundreds need not be tried.

Upstream: slowStartBatch (pkg/controller/replicaset/replica_set.go), RealPodControl
(pkg/controller/controller_utils.go).
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

from konverge.client import AlreadyExists, ClientError, Forbidden, NotFound
from konverge.kube.messages import message_of
from konverge.objects.kinds.core_v1 import Pod
from konverge.runtime import Context

T = TypeVar("T")

BURST = 500
"""Pods created or deleted in one reconcile. Upstream: BurstReplicas (250 for daemons), MaxPodCreateDeletePerSync."""


async def slow_start(calls: Sequence[Callable[[], Awaitable[T]]]) -> tuple[list[T], ClientError | None]:
    """What the calls returned until one was refused, and that refusal."""
    done: list[T] = []
    start, size = 0, 1
    while start < len(calls):
        batch = calls[start : start + size]
        results = await asyncio.gather(*(call() for call in batch), return_exceptions=True)
        done += [result for result in results if not isinstance(result, BaseException)]
        refusal = first_refusal(results)
        if refusal is not None:
            return done, refusal
        start, size = start + len(batch), size * 2
    return done, None


def first_refusal(results: Iterable[Any]) -> ClientError | None:
    """The first refusal among gathered results. Any other exception is a mistake of ours and raised again."""
    refusals: list[ClientError] = []
    for result in results:
        if isinstance(result, ClientError):
            refusals.append(result)
        elif isinstance(result, BaseException):
            raise result
    return refusals[0] if refusals else None


async def create_pods(ctx: Context[Any], pods: Sequence[Pod]) -> tuple[list[Pod], ClientError | None]:
    """Create pods in batches; returns the created pods, and the refusal that ended it. Upstream: createPods.

    In a namespace that is being deleted nothing is created, and that is no failure.
    """

    async def create(pod: Pod) -> Pod | None:
        try:
            created = await ctx.client.create(pod)
        except ClientError as error:
            if isinstance(error, Forbidden) and error.namespace_terminating:
                return None
            ctx.warning("FailedCreate", f"Error creating: {message_of(error)}")
            raise
        ctx.event("SuccessfulCreate", f"Created pod: {created.metadata.name}")
        return created

    created, refusal = await slow_start([lambda pod=pod: create(pod) for pod in pods[:BURST]])  # type: ignore[misc]
    return [pod for pod in created if pod is not None], refusal


async def delete_pods(ctx: Context[Any], pods: Iterable[Pod]) -> tuple[list[Pod], ClientError | None]:
    """Delete pods concurrently; returns those that are gone, and the first refusal if any. Upstream: DeletePod."""
    gone: list[Pod] = []

    async def delete(pod: Pod) -> None:
        try:
            await ctx.client.delete(Pod, pod.metadata.name, pod.metadata.namespace, uid=pod.metadata.uid)
            ctx.event("SuccessfulDelete", f"Deleted pod: {pod.metadata.name}")
        except NotFound:
            pass  # another client was faster
        except ClientError as error:
            ctx.warning("FailedDelete", f"Error deleting: {message_of(error)}")
            raise
        gone.append(pod)

    refusal = first_refusal(await asyncio.gather(*(delete(pod) for pod in pods), return_exceptions=True))
    return gone, refusal


# ------------------------------------------------------------------ anything that may exist already


@contextlib.contextmanager
def creating() -> Iterator[None]:
    """Ignores that the object exists already, and that its namespace is gone or being deleted."""
    try:
        yield
    except (AlreadyExists, NotFound):
        return
    except Forbidden as error:
        if not error.namespace_terminating:
            raise
