"""Other people's Python clients, and a kopf operator, on the embedded server and on the real one."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from konverge.client import Client, MergePatch, load_config
from konverge.objects.resource import Resource
from tests.real.clients import programs
from tests.real.clients.waiting import until, until_served

pytestmark = pytest.mark.spec("S-01")

PYTHON = programs.SOURCES / "python"
OFFICIAL = ["create", "patch", "scale", "conflict", "watch", "pages", "custom", "apply", "delete"]
GREETINGS = Resource("kopf.konverge.dev", "v1", "Greeting", "greetings")
CONFIG_MAPS = Resource("", "v1", "ConfigMap", "configmaps")
DEFINITIONS = Resource("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", False)
DEFINITION_NAME = "greetings.kopf.konverge.dev"
NAMESPACE = "kopf-client"
DEFINITION = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": DEFINITION_NAME},
    "spec": {
        "group": GREETINGS.group,
        "scope": "Namespaced",
        "names": {"kind": "Greeting", "plural": "greetings"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {"type": "object", "properties": {"text": {"type": "string"}}},
                            "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                        },
                    }
                },
            }
        ],
    },
}


@pytest.mark.parametrize(
    ("program", "steps"),
    [
        ("official.py", OFFICIAL),
        ("asynchronous.py", ["scale", "watch", "delete"]),
        ("light.py", ["apply", "scale", "wait", "watch", "delete"]),
    ],
)
def test_a_client_does_its_job(python_clients: Path, either_kubeconfig: Path, program: str, steps: list[str]) -> None:
    assert programs.run(python_clients / "python", PYTHON / program, kubeconfig=either_kubeconfig) == steps


# ------------------------------------------------------------------ kopf


@asynccontextmanager
async def kopf_running(bin_folder: Path, kubeconfig: Path, log: Path) -> AsyncIterator[asyncio.subprocess.Process]:
    command = ["run", "--standalone", "--namespace", NAMESPACE, str(PYTHON / "kopf_operator.py")]
    with log.open("wb") as out:
        process = await asyncio.create_subprocess_exec(
            bin_folder / "kopf",
            *command,
            env=os.environ | {"KUBECONFIG": str(kubeconfig)},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=out,
            stderr=out,
        )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()


async def test_a_kopf_operator_reconciles(python_clients: Path, either_kubeconfig: Path, tmp_path: Path) -> None:
    log = tmp_path / "kopf.log"
    async with Client.connect(load_config(kubeconfig=either_kubeconfig)) as client:
        await client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
        await client.create(DEFINITION)
        await until(client, DEFINITIONS, "", lambda definitions: _established(definitions[DEFINITION_NAME]))
        await until_served(client, GREETINGS)
        async with kopf_running(python_clients, either_kubeconfig, log) as kopf:
            try:
                await _use(client)
            except AssertionError as error:
                error.add_note(f"kopf says:\n{log.read_text()[-4000:]}")
                raise
            kopf.terminate()
            assert await kopf.wait() == 0, log.read_text()[-4000:]
    assert "Traceback" not in log.read_text()


def _established(definition: dict[str, Any]) -> bool:
    conditions = definition.get("status", {}).get("conditions") or []
    return any(condition["type"] == "Established" and condition["status"] == "True" for condition in conditions)


async def _use(client: Client) -> None:
    greeting = {"apiVersion": GREETINGS.api_version, "kind": "Greeting", "metadata": {"name": "hello"}}
    await client.create({**greeting, "spec": {"text": "Hello"}}, NAMESPACE, resource=GREETINGS)
    greetings = await until(
        client, GREETINGS, NAMESPACE, lambda greetings: greetings["hello"].get("status", {}).get("said") == "Hello"
    )
    made = (await until(client, CONFIG_MAPS, NAMESPACE, lambda maps: "hello" in maps))["hello"]
    assert made["data"] == {"text": "Hello"}
    assert made["metadata"]["ownerReferences"][0]["uid"] == greetings["hello"]["metadata"]["uid"]
    await client.patch(GREETINGS, "hello", MergePatch({"spec": {"text": "Good day"}}), NAMESPACE)
    await until(client, CONFIG_MAPS, NAMESPACE, lambda maps: maps["hello"]["data"] == {"text": "Good day"})
    await client.delete(GREETINGS, "hello", NAMESPACE)
    await until(client, GREETINGS, NAMESPACE, lambda greetings: "hello" not in greetings)
    assert await client.get(CONFIG_MAPS, "hello-farewell", NAMESPACE)
