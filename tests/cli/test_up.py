"""`konverge up` as a process: it says where everything is, serves, keeps its state, and ends when asked to."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from konverge.cli import up
from konverge.cli.main import parser
from konverge.client import Client, Kubeconfig
from konverge.objects.kinds.core_v1 import ConfigMap, Node
from konverge.objects.meta import ObjectMeta


def begin(*arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "konverge.cli.main", "up", *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def told(process: subprocess.Popen[str]) -> dict[str, str]:
    """The first lines, by their first word."""
    assert process.stdout is not None
    lines = [process.stdout.readline().split(maxsplit=1) for _ in range(4)]
    return {words[0]: words[1].strip() for words in lines}


def end(process: subprocess.Popen[str]) -> None:
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate()
    assert process.returncode == 0, errors
    assert "Traceback" not in errors


async def look(kubeconfig: str, make: str) -> list[str]:
    """Nodes and ConfigMaps of the default namespace that there are, after making one."""
    async with Client.connect(Kubeconfig.read(kubeconfig).config()) as client:
        if make:
            await client.create(ConfigMap(metadata=ObjectMeta(name=make, namespace="default")))
        nodes = [node.metadata.name for node in await client.list(Node)]
        return nodes + [one.metadata.name for one in await client.list(ConfigMap, "default")]


@pytest.mark.blocking
async def test_it_serves_keeps_its_state_and_ends_when_asked(tmp_path: Path) -> None:
    for name in ("first", ""):
        process = begin("--data-dir", str(tmp_path / "data"), "--nodes", "2")
        try:
            lines = told(process)
            assert lines["ready"].startswith("https://127.0.0.1:")
            found = await look(lines["kubeconfig"], name)
            assert found[:2] == ["node-1", "node-2"]
            assert "first" in found
        finally:
            end(process)


def test_a_rules_file_that_cannot_be_used_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rules = tmp_path / "rules.yaml"
    rules.write_text("- {image: nginx, behave: explode}")
    assert up.run(parser().parse_args(["up", "--rules", str(rules)])) == 2
    assert "'explode' is no behaviour" in capsys.readouterr().out


def test_the_number_of_nodes_is_bounded(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parser().parse_args(["up", "--nodes", "1000000"])
    assert "between 0 and 5000" in capsys.readouterr().err
