"""The first example works, on an embedded server and in virtual time."""

from __future__ import annotations

import asyncio
import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

from konverge import ApiServer, Client, Manager, ObjectMeta
from konverge.client import Invalid, MergePatch, Static
from konverge.objects import crd
from konverge.objects.kinds.apps_v1 import Deployment

PATH = Path(__file__).resolve().parents[2] / "examples" / "01_webapp.py"


def load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("example_webapp", PATH)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # annotations are looked up in the module by its name
    spec.loader.exec_module(module)
    return module


@pytest.mark.virtual
async def test_the_example_keeps_its_deployment_like_its_spec() -> None:
    example = load()
    async with ApiServer() as server, Client(server.transport, credentials=Static.bearer(server.token)) as client:
        await client.create(crd(example.WebApp))
        await asyncio.sleep(1)
        manager = Manager(client, name="webapp-operator")
        for controller in example.make_manager().controllers:
            manager.add(controller)
        async with manager.running():
            app = example.WebApp(
                metadata=ObjectMeta(name="web", namespace="default"), spec=example.WebAppSpec(image="nginx:1.27")
            )
            await client.create(app)
            await asyncio.sleep(1)
            live = await client.get(Deployment, "web", "default")
            assert live.spec.replicas == 1
            await client.patch(example.WebApp, "web", MergePatch({"spec": {"replicas": 3}}), "default")
            await asyncio.sleep(1)
            live = await client.get(Deployment, "web", "default")
            assert live.spec.replicas == 3
            with pytest.raises(Invalid, match=r"spec.port in body should be less than or equal to 65535"):
                await client.patch(example.WebApp, "web", MergePatch({"spec": {"port": 70000}}), "default")
