"""`konverge why`: what it prints and how it ends, on a simulated cluster."""

from __future__ import annotations

import argparse
import asyncio
import json
from pathlib import Path

import pytest

from konverge.apiserver import ApiServer
from konverge.cli import main, why
from konverge.cli.exit import UsageError
from konverge.cli.targets import CouldNotAsk, parse_target
from konverge.cli.terminal import Paint
from konverge.client import Client
from konverge.explain import Answer, Health, Ref
from konverge.explain.answer import Branch, Step
from konverge.sim import Cluster
from tests.explain.samples import SPACE, create, deployment, obj, stateful_set

pytestmark = pytest.mark.spec("O-83")
PLAIN = Paint(colours=False)


def parsed(*words: str) -> argparse.Namespace:
    return main.parser().parse_args(["why", *words])


async def ask(client: Client, *words: str, space: str = SPACE) -> tuple[str, int]:
    return await why.explain(client, parsed(*words), space, PLAIN)


@pytest.mark.virtual
async def test_an_object_by_any_of_its_names() -> None:
    async with Cluster(nodes=1) as cluster:
        client = cluster.client
        await create(client, stateful_set("db", storage_class="fast"))
        await asyncio.sleep(60)
        names = (["sts", "db"], ["statefulset/db"], ["StatefulSet.apps", "db"], ["statefulsets.v1.apps/db"])
        answers = {await ask(client, *words) for words in names}
        text, code = await ask(client, "sts/db", "--tree")
    assert len(answers) == 1
    assert code == 1
    assert text.splitlines() == [
        "waiting: StatefulSet db waits for pod db-0, which waits for claim data-db-0, "
        "whose storage class `fast` does not exist",
        "  to do: create the storage class fast, or correct the name where it is used",
        "",
        "StatefulSet db  waiting  has 0 of 1 replicas ready",
        "└─ pod db-0  waiting  waits until its claims are bound: data-db-0",
        "   └─ mounts claim data-db-0  waiting  waits for storage class fast",
        "      └─ uses storage class fast  failed  does not exist",
    ]


@pytest.mark.virtual
async def test_everything_that_is_not_ready_by_cause() -> None:
    service = {"selector": {"app": "web"}, "ports": [{"port": 80}]}
    async with Cluster(nodes=1) as cluster:
        client = cluster.client
        assert await ask(client) == ("everything is ready in namespace default", 0)
        await create(client, deployment("web", "image-pull-error"), obj("Service", "web", service), deployment("fine"))
        await asyncio.sleep(60)
        text, code = await ask(client)
        only, _ = await ask(client, "services")
        category, _ = await ask(client, "all")
        document, _ = await ask(client, "-A", "-o", "json", space="")
    lines = text.splitlines()
    assert code == 1
    assert lines[0].startswith("failed      Deployment web waits for pod web-")
    assert lines[1].strip() == "also: Service web"
    assert lines[-1] == "2 objects are not ready in namespace default, for one cause"
    assert only.splitlines()[0].startswith("failed      Service web waits for pod web-")
    assert category == text
    loaded = json.loads(document)
    assert [entry["ref"]["kind"] for entry in loaded["notReady"]] == ["Deployment", "Service"]
    assert loaded["notReady"][0]["chain"][-1]["health"] == "failed"


@pytest.mark.virtual
async def test_a_ready_object_is_success_and_one_that_is_not_there_is_no_answer() -> None:
    async with Cluster(nodes=1) as cluster:
        client = cluster.client
        await create(client, deployment("web"))
        await asyncio.sleep(10)
        assert await ask(client, "deploy/web") == ("ready: Deployment web has 1 of 1 replicas ready", 0)
        with pytest.raises(CouldNotAsk, match="Deployment wed does not exist in namespace default; did you mean web"):
            await ask(client, "deploy/wed")
        with pytest.raises(CouldNotAsk, match="did you mean deployment"):
            await ask(client, "deploymnt/web")
        with pytest.raises(UsageError, match="give -n instead of -A"):
            await ask(client, "deploy/web", space="")
    assert CouldNotAsk("").code == 2


def test_what_names_no_object_is_refused() -> None:
    for words in (["a/b", "c"], ["a", "b", "c"], ["/b"], ["a/"], ["a/b/c"]):
        with pytest.raises(UsageError, match="names no object"):
            parse_target(words)


def test_a_cluster_that_cannot_be_asked_is_exit_code_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["why", "--kubeconfig", str(tmp_path / "none")]) == 2
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:1"}}],
        "contexts": [{"name": "c", "context": {"cluster": "c"}}],
        "current-context": "c",
    }
    (tmp_path / "config").write_text(json.dumps(config))
    assert main.main(["why", "deploy/web", "--kubeconfig", str(tmp_path / "config")]) == 2
    assert capsys.readouterr().out == ""


async def test_over_a_socket(server: ApiServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    url = await server.listen()
    (tmp_path / "config").write_text(json.dumps(server.kubeconfig(url, None)))
    arguments = ["why", "-n", "default", "ns/default", "--kubeconfig", str(tmp_path / "config")]
    assert await asyncio.to_thread(main.main, arguments) == 0
    assert capsys.readouterr().out == "ready: namespace default is ready\n"


@pytest.mark.spec("O-84")
def test_what_others_wrote_cannot_steer_the_terminal() -> None:
    evil = "\x1b]0;owned\x07\x9b31m\r\u202egnp\x1b[2J"
    pod = Ref("Pod", "web-0", "shop")
    answer = Answer(
        ref=pod,
        health=Health.FAILED,
        sentence=f"pod web-0 failed: {evil}",
        chain=[Step(ref=pod, health=Health.FAILED, says=evil)],
        advice=evil,
        container=evil,
        log=[evil],
        unread=[evil],
    )
    lines = [*why._answer_lines(answer, PLAIN), *why._unread_lines(answer.unread, PLAIN)]
    lines += why._group_lines([answer, answer], "", PLAIN)
    child = Branch(ref=Ref("Pod", evil), relation="owns", health=Health.FAILED, says=evil)
    lines += why.tree_lines(Branch(ref=pod, relation="", health=Health.FAILED, says=evil, children=[child]), PLAIN)
    assert lines
    assert not {"\x1b", "\x07", "\x9b", "\r", "\u202e"} & set("".join(lines))
    assert "\\x1b]0;owned" in lines[0]
