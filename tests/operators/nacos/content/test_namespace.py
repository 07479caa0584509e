"""Namespaces that are declared, and the order in which they and their configurations come and go."""

from __future__ import annotations

from typing import Any

import pytest

from konverge.client import Invalid
from konverge.operators.nacos.content.api import ConfigKey
from tests.operators.nacos.content.world import SECOND, THIRD, a_nacos

pytestmark = [pytest.mark.virtual, pytest.mark.spec("N-30")]
SPACE = "NacosNamespace"
CONFIG = "NacosConfig"
IN_DEV = ConfigKey("dev", "DEFAULT_GROUP", "app.yaml")


@pytest.mark.parametrize("spec", [SECOND, THIRD], ids=["2.x", "3.x"])
async def test_a_namespace_is_made_changed_and_deleted(spec: dict[str, Any]) -> None:
    async with a_nacos(spec) as content:
        await content.create(SPACE, "dev", id="dev", description="of developers")
        await content.until(SPACE, "dev")
        space = (await content.servers.namespaces())["dev"]
        assert (space.namespace_show_name, space.namespace_desc) == ("dev", "of developers")
        await content.change(SPACE, "dev", title="Development")
        assert (await content.servers.namespaces())["dev"].namespace_show_name == "Development"
        await content.delete(SPACE, "dev")
        assert set(await content.servers.namespaces()) == {"public"}


@pytest.mark.spec("N-38")
async def test_a_configuration_waits_for_its_namespace_and_goes_before_it() -> None:
    async with a_nacos() as content:
        await content.config(namespace="dev")
        await content.until(CONFIG, "app", "NamespaceMissing")
        assert await content.content(IN_DEV) is None
        await content.create(SPACE, "dev", id="dev")
        await content.until(CONFIG, "app")
        assert await content.content(IN_DEV) == "a: 1"

        await content.delete(SPACE, "dev")
        await content.until(SPACE, "dev", "NotEmpty")
        await content.change(CONFIG, "app", content="a: 2")
        await content.until(CONFIG, "app", "NamespaceDeleting")
        await content.delete(CONFIG, "app")
        await content.world.advance(30.0)
        assert await content.gone(SPACE, "dev")
        assert set(await content.servers.namespaces()) == {"public"}


async def test_the_namespace_that_every_nacos_has_cannot_be_declared() -> None:
    async with a_nacos() as content:
        with pytest.raises(Invalid, match="public"):
            await content.create(SPACE, "public", id="public")
