"""docs/why.md shows what the program prints: the samples are applied in order, and each command is run.

`python -m tests.explain.test_docs_why` writes the page's outputs again.
"""

from __future__ import annotations

import argparse
import asyncio
import re
import shlex
from pathlib import Path

import pytest
import yaml

from konverge.cli import main, why
from konverge.cli.terminal import Paint
from konverge.client import Client, Static
from konverge.operators.webapp import controllers
from konverge.operators.webapp.operator import OPERATOR
from konverge.runtime import Manager
from konverge.sim import Cluster, run
from tests.explain.samples import SPACE, create, obj

PAGE = Path(__file__).resolve().parents[2] / "docs" / "why.md"
BLOCK = re.compile(r"```(yaml|console)\n(.*?)```", re.DOTALL)
RBAC = "rbac.authorization.k8s.io"
ROLE = [
    {"apiGroups": ["apps.konverge.dev"], "resources": ["*"], "verbs": ["*"]},
    {"apiGroups": ["", "apps"], "resources": ["*"], "verbs": ["get", "list", "watch"]},
    {"apiGroups": [""], "resources": ["events", "services"], "verbs": ["create", "patch"]},
]


async def outputs(page: str) -> list[str]:
    """What each command of the page prints."""
    printed = []
    async with Cluster(nodes=3) as cluster:
        client = cluster.client
        for definition in OPERATOR.definitions():
            await client.create(definition)
        await cluster.settle()
        async with (await poor_operator(cluster)).running():
            for sort, text in BLOCK.findall(page):
                if sort == "yaml":
                    await create(client, *yaml.safe_load_all(text))
                    await asyncio.sleep(120)
                else:
                    words = shlex.split(text.splitlines()[0].removeprefix("$ "))
                    arguments: argparse.Namespace = main.parser().parse_args(words[1:])
                    printed.append((await why.explain(client, arguments, SPACE, Paint(colours=False)))[0])
    return printed


async def poor_operator(cluster: Cluster) -> Manager:
    """The WebApp operator with a role that lacks what it needs for Deployments."""
    role, binding = (
        obj("ClusterRole", "poor", namespace="", rules=ROLE),
        obj("ClusterRoleBinding", "poor", namespace=""),
    )
    binding["subjects"] = [{"kind": "ServiceAccount", "name": "webapp-operator", "namespace": SPACE}]
    binding["roleRef"] = {"apiGroup": RBAC, "kind": "ClusterRole", "name": "poor"}
    role["apiVersion"] = binding["apiVersion"] = f"{RBAC}/v1"
    await create(cluster.client, obj("ServiceAccount", "webapp-operator"), role, binding)
    token = (await cluster.client.request_token("webapp-operator", SPACE)).token
    robot = Client(cluster.server.transport, credentials=Static.bearer(token))
    manager = Manager(robot, name=OPERATOR.identity, check_permissions=False)
    for controller in controllers():
        manager.add(controller)
    return manager


def masked(text: str) -> str:
    """Without what depends on the order of random numbers and of retries."""
    text = re.sub(r"-[0-9a-z]{5}\b(?=[, :])", "-*****", text)
    return re.sub(r"restarted \d+ times|20\d\d-\d\d-\d\dT[\d:]+Z|run \d+ began", "*", text)


def shown(page: str) -> list[str]:
    consoles = [text for sort, text in BLOCK.findall(page) if sort == "console"]
    return ["\n".join(text.rstrip("\n").splitlines()[1:]) for text in consoles]


@pytest.mark.virtual
@pytest.mark.spec("O-81", "O-83")
async def test_the_page_shows_what_is_printed() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert [masked(text) for text in shown(page)] == [masked(text) for text in await outputs(page)]


def rewrite() -> None:
    page = PAGE.read_text(encoding="utf-8")
    texts = iter(run(outputs(page)))

    def replaced(match: re.Match[str]) -> str:
        if match[1] == "yaml":
            return match[0]
        return f"```console\n{match[2].splitlines()[0]}\n{next(texts)}\n```"

    PAGE.write_text(BLOCK.sub(replaced, page), encoding="utf-8")


if __name__ == "__main__":
    rewrite()
