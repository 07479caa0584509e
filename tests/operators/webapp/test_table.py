"""The document's scenario (A-11), proven by the requests and the stored objects; the demo tells the same story."""

from __future__ import annotations

import pytest

from konverge.objects import from_json
from konverge.operators.webapp import WebAppReconciler
from konverge.operators.webapp.kind import WebApp
from konverge.runtime import Context, Result
from tests.operators.webapp.conftest import World, reported

pytestmark = [pytest.mark.virtual, pytest.mark.spec("A-11")]


@pytest.fixture
def results(monkeypatch: pytest.MonkeyPatch) -> list[Result | None]:
    """What the reconciler returns, one by one."""
    returned: list[Result | None] = []
    reconcile = WebAppReconciler.reconcile

    async def recorded(self: WebAppReconciler, ctx: Context[WebApp]) -> Result | None:
        returned.append(await reconcile(self, ctx))
        return returned[-1]

    monkeypatch.setattr(WebAppReconciler, "reconcile", recorded)
    return returned


async def stored(world: World) -> tuple[int, int, int, str, int]:
    """Generation, observed generation, replicas, image and port, as the API server has them."""
    app, deployment, service = await world.app(), await world.deployment(), await world.service()
    (container,), (port,) = deployment.spec.template.spec.containers, service.spec.ports
    assert service.spec.selector.items() <= deployment.spec.template.metadata.labels.items(), "it reaches the pods"
    image = container.image or ""
    return app.metadata.generation, app.status.observed_generation, deployment.spec.replicas or 0, image, port.port


async def test_three_fields_change_in_one_reconcile_and_the_next_has_nothing_to_do(
    results: list[Result | None], world: World
) -> None:
    await world.create(image="nginx:1.20", replicas=2, port=80, env={"ENV": "production"})
    assert await stored(world) == (1, 1, 2, "nginx:1.20", 80)
    world.cluster.hold("webapp", manager=world.manager)
    await world.change(replicas=5, image="nginx:1.21", port=8080)
    assert await stored(world) == (2, 1, 2, "nginx:1.20", 80), "the operator is held"
    world.writes()
    results.clear()
    await world.cluster.step("webapp", manager=world.manager)
    writes = world.writes()
    assert reported(writes) == ["patch deployments", "patch services", "patch webapps/status"]
    assert from_json(dict, writes[-1].body)["status"]["observedGeneration"] == 2
    assert await stored(world) == (2, 2, 5, "nginx:1.21", 8080)
    assert [result.requeue_after if result else None for result in results] == [30.0]
    results.clear()
    while await world.cluster.step("webapp", manager=world.manager) is None:
        await world.cluster.clock.advance(1.0)
    assert {write for write in reported(world.writes()) if write != "patch webapps/status"} == set()
    assert [result.requeue_after if result else None for result in results] == [30.0]
    assert await stored(world) == (2, 2, 5, "nginx:1.21", 8080)
    world.cluster.release("webapp", manager=world.manager)
