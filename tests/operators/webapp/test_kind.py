"""What the API server refuses, by the schema of the definition alone."""

from __future__ import annotations

from typing import Any

import pytest

from konverge.client import Invalid
from konverge.operators.webapp import WebApp
from tests.operators.webapp.conftest import SPACE, World

pytestmark = pytest.mark.virtual


@pytest.mark.spec("A-12")
@pytest.mark.parametrize(
    ("spec", "path"),
    [
        ({"replicas": -1}, "spec.replicas"),
        ({"port": 0}, "spec.port"),
        ({"port": 70000}, "spec.port"),
        ({"image": ""}, "spec.image"),
        ({"image": None}, "spec.image"),
        ({"env": {"A": 1}}, "spec.env.A"),
        ({"env": ["A=1"]}, "spec.env"),
    ],
)
async def test_bad_input_is_refused_with_its_path(world: World, spec: dict[str, Any], path: str) -> None:
    metadata = {"name": "bad", "namespace": SPACE}
    desired = {"apiVersion": "apps.konverge.dev/v1", "kind": "WebApp", "metadata": metadata}
    with pytest.raises(Invalid) as refusal:
        await world.client.create({**desired, "spec": {"image": "nginx:1", **spec}}, resource=WebApp.resource)
    assert [cause.field for cause in refusal.value.causes][:1] == [path]
    assert path in str(refusal.value)


@pytest.mark.spec("A-12")
async def test_a_name_that_no_service_could_have_is_refused(world: World) -> None:
    metadata = {"name": "1.shop", "namespace": SPACE}
    desired = {"apiVersion": "apps.konverge.dev/v1", "kind": "WebApp", "metadata": metadata, "spec": {"image": "a"}}
    with pytest.raises(Invalid, match="must be a DNS label"):
        await world.client.create(desired, resource=WebApp.resource)
