"""Finalizers: when they are written, and when they are taken off."""

from __future__ import annotations

import asyncio

import pytest

from konverge.client import Client, MergePatch, NotFound
from konverge.objects.kinds.core_v1 import Secret
from konverge.runtime import Context, Controller, Manager, Reconciler, Result
from konverge.runtime.finalizers import add_finalizer, remove_finalizer
from tests.runtime.objects import SPACE, secret

pytestmark = [pytest.mark.virtual, pytest.mark.spec("R-21")]

OURS = "konverge.dev/secret"
OTHER = "other.dev/hold"


class Careful(Reconciler[Secret]):
    """Its clean-up ends with the given results, one after the other."""

    def __init__(self, *results: Result | None) -> None:
        self.reconciled = 0
        self.cleaned: list[float] = []
        self._results = list(results)

    async def reconcile(self, ctx: Context[Secret]) -> Result | None:
        self.reconciled += 1
        return Result(requeue_after=100) if self.reconciled == 1 else None

    async def cleanup(self, ctx: Context[Secret]) -> Result | None:
        self.cleaned.append(round(asyncio.get_running_loop().time()))
        return self._results.pop(0) if self._results else None


async def finalizers(client: Client) -> list[str]:
    return (await client.get(Secret, "a", SPACE)).metadata.finalizers


@pytest.mark.parametrize("again", [Result(requeue_after=30), Result(requeue=True)])
async def test_the_finalizer_stays_while_the_clean_up_wants_to_come_again(client: Client, again: Result) -> None:
    careful = Careful(again)
    await client.create(secret("a"))
    async with Manager(client).add(Controller(Secret, careful)).running():
        await asyncio.sleep(1)
        assert await finalizers(client) == [OURS]
        await client.delete(Secret, "a", SPACE)
        await asyncio.sleep(0)
        if again.requeue_after:
            await asyncio.sleep(20)
            assert await finalizers(client) == [OURS]
        await asyncio.sleep(20)
        with pytest.raises(NotFound):
            await client.get(Secret, "a", SPACE)
    assert careful.cleaned == ([1, 31] if again.requeue_after else [1, 1])


async def test_the_result_of_the_reconcile_counts_with_a_finalizer_too(client: Client) -> None:
    careful = Careful()
    await client.create(secret("a"))
    async with Manager(client).add(Controller(Secret, careful)).running():
        await asyncio.sleep(99)
        assert careful.reconciled == 1
        await asyncio.sleep(2)
        assert careful.reconciled == 2
        assert await finalizers(client) == [OURS]


async def test_other_finalizers_stay_and_the_clean_up_runs_once(client: Client) -> None:
    careful = Careful()
    made = secret("a")
    made.metadata.finalizers = [OTHER]
    await client.create(made)
    async with Manager(client).add(Controller(Secret, careful)).running():
        await asyncio.sleep(1)
        assert await finalizers(client) == [OTHER, OURS]
        await client.delete(Secret, "a", SPACE)
        await asyncio.sleep(1)
        assert await finalizers(client) == [OTHER]
        await client.patch(Secret, "a", MergePatch({"metadata": {"labels": {"poke": "1"}}}), SPACE)
        await asyncio.sleep(1)
        assert await finalizers(client) == [OTHER]
        assert len(careful.cleaned) == 1
        assert careful.reconciled == 1  # never an object that is being deleted


async def test_functions_say_whether_they_wrote(client: Client) -> None:
    async def reconcile(ctx: Context[Secret]) -> None:
        if "done" not in ctx.obj.metadata.labels:
            answers.append(await remove_finalizer(ctx, OTHER))
            answers.append(await add_finalizer(ctx, OTHER))
            answers.append(await add_finalizer(ctx, OTHER))
            on_server.append(await finalizers(client))
            answers.append(await remove_finalizer(ctx, OTHER))
            on_server.append(await finalizers(client))

    answers: list[bool] = []
    on_server: list[list[str]] = []
    await client.create(secret("a"))
    async with Manager(client).add(Controller(Secret, reconcile)).running():
        await asyncio.sleep(1)
    assert answers == [False, True, False, True]
    assert on_server == [[OTHER], []]
