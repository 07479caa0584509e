"""`konverge up` as a process: it says where everything is, serves, keeps its state, and ends when asked to."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

from konverge.cli.main import main, parser
from konverge.client import Client, Kubeconfig
from konverge.objects.kinds.core_v1 import ConfigMap, Node
from konverge.objects.meta import ObjectMeta
from konverge.operators.webapp import WebApp
from konverge.runtime.engine import Engine
from konverge.sim.cluster import Cluster
from konverge.sim.processes.runtime import Processes
from konverge.wire.message import Request
from konverge.wire.pool import ConnectionPool


def begin(*arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "konverge.cli.main", "up", *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def welcome_of(process: subprocess.Popen[str]) -> dict[str, str]:
    """The first lines, by their first word."""
    assert process.stdout is not None
    lines = [process.stdout.readline().split(maxsplit=1) for _ in range(4)]
    return {line[0]: line[1].strip() for line in lines}


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
        return nodes + [config_map.metadata.name for config_map in await client.list(ConfigMap, "default")]


@pytest.mark.blocking
async def test_it_serves_keeps_its_state_and_ends_when_asked(tmp_path: Path) -> None:
    for name in ("first", ""):
        process = begin("--data-dir", str(tmp_path / "data"), "--nodes", "2")
        try:
            lines = welcome_of(process)
            assert lines["ready"].startswith("https://127.0.0.1:")
            names = await look(lines["kubeconfig"], name)
            assert names[:2] == ["node-1", "node-2"]
            assert "first" in names
        finally:
            end(process)


def test_a_rules_file_that_cannot_be_used_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rules = tmp_path / "rules.yaml"
    rules.write_text("- {image: nginx, behave: explode}")
    assert main(["up", "--rules", str(rules)]) == 2
    message = capsys.readouterr().err
    assert "'explode' is no behaviour" in message
    assert len(message.splitlines()) == 1


@pytest.mark.spec("K-60")
def test_a_simulate_file_that_cannot_be_used_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "simulate.yaml"
    assert main(["up", "--simulate", str(path)]) == 2
    path.write_text("exec: [{comand: x}]")
    assert main(["up", "--simulate", str(path)]) == 2
    missing, unknown = capsys.readouterr().err.splitlines()
    assert "simulate.yaml" in missing
    assert "did you mean `command`?" in unknown


@pytest.mark.spec("C-41")
def test_the_seed_is_a_number_that_a_test_takes_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert parser().parse_args(["up"]).seed == 0
    assert parser().parse_args(["up", "--seed", "2147483647"]).seed == 2**31 - 1
    for wrong in ("-1", "2147483648", "x"):
        with pytest.raises(SystemExit):
            parser().parse_args(["up", "--seed", wrong])
    assert "between 0 and 2147483647" in capsys.readouterr().err


def test_the_number_of_nodes_is_bounded(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parser().parse_args(["up", "--nodes", "1000000"])
    assert "between 0 and 5000" in capsys.readouterr().err


async def page(url: str) -> bytes:
    async with ConnectionPool(url.removesuffix("/metrics")) as pool:
        return (await pool.send(Request("GET", "/metrics"))).body


async def webapps(kubeconfig: str, *, delete: str = "") -> list[str]:
    """The names and phases of WebApps that there are, once none is on its way."""
    async with Client.connect(Kubeconfig.read(kubeconfig).config()) as client:
        if delete:
            await client.delete(WebApp, delete, "default")
        phases = {webapp.metadata.name: webapp.status.phase for webapp in await client.list(WebApp)}
        async with aclosing(client.watch(WebApp)) as news:
            while phases and set(phases.values()) != {"Running"}:
                event = await anext(news)
                if event.type == "DELETED":
                    phases.pop(event.object.metadata.name, None)
                elif event.type != "BOOKMARK":
                    phases[event.object.metadata.name] = event.object.status.phase
        return [f"{name} {phase}" for name, phase in phases.items()]


@pytest.mark.blocking
@pytest.mark.spec("A-01")
async def test_operators_and_samples_converge_and_a_deleted_sample_stays_deleted(tmp_path: Path) -> None:
    for again in (False, True):
        process = begin("--data-dir", str(tmp_path / "data"), "--operators", "webapp", "--output", "json")
        try:
            assert process.stdout is not None
            places = json.loads(process.stdout.readline())
            assert (places["ready"], places["operators"], places["nodes"]) == (True, ["webapp"], 3)
            assert b'controller_runtime_active_workers{controller="webapp"}' in await page(places["metrics"])
            if not again:
                assert await webapps(places["kubeconfig"]) == ["hello Running"]
                await webapps(places["kubeconfig"], delete="hello")
            else:
                assert await webapps(places["kubeconfig"]) == []
        finally:
            end(process)


@pytest.mark.blocking
async def test_the_samples_are_there_when_the_first_line_is_said(tmp_path: Path) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    process = begin("--operators", "webapp", "--kubeconfig", str(kubeconfig))
    try:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("ready ")
        async with Client.connect(Kubeconfig.read(str(kubeconfig)).config()) as client:
            assert (await client.get(WebApp, "hello", "default")).metadata.uid
    finally:
        end(process)


def test_what_converges_is_told_line_by_line() -> None:
    process = begin("--operators", "webapp")
    try:
        assert process.stdout is not None
        lines = []
        while not lines or "WebApp default/hello Running 3/3" not in lines[-1]:
            lines.append(process.stdout.readline().rstrip())
        text = "\n".join(lines)
        assert lines[0].startswith("ready https://")
        assert "kubectl get webapps --watch" in text
        assert "  WebApp default/hello Pending 0/3\n  WebApp default/hello Creating 0/3\n" in text
        assert "\x1b" not in text
    finally:
        end(process)


def test_without_operators_it_is_a_plain_cluster() -> None:
    process = begin("--operators", "none", "--nodes", "1", "--output", "json")
    try:
        assert process.stdout is not None
        places = json.loads(process.stdout.readline())
        assert (places["operators"], places["metrics"]) == ([], "")
    finally:
        end(process)


def test_an_operator_that_there_is_not_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["up", "--operators", "shop"]) == 2
    message = capsys.readouterr().err
    assert "there is no operator 'shop'; known operators: " in message
    assert "webapp" in message


@pytest.mark.parametrize("output", ["text", "json"])
@pytest.mark.spec("R-01")
def test_a_manager_that_dies_ends_it_with_the_cause(
    output: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async def broken(engine: Engine[Any]) -> None:
        if engine.controller.name == "webapp":
            raise RuntimeError("the worker is broken")
        await run(engine)

    run = Engine.run
    monkeypatch.setattr(Engine, "run", broken)
    code = main(["up", "--nodes", "1", "--operators", "webapp", "--no-console", "--output", output])
    assert code == 1
    assert "konverge up: RuntimeError: the worker is broken" in capsys.readouterr().err


@pytest.mark.spec("T-14", "S-25")
def test_as_root_without_isolation_process_pods_are_refused_with_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rules = tmp_path / "rules.yaml"
    rules.write_text("- {image: 'web:*', command: [python3, -m, http.server]}\n")
    monkeypatch.setattr("konverge.sim.processes.runtime.why_not", lambda: "unshare: Operation not permitted")
    monkeypatch.setattr("os.getuid", lambda: 0)
    assert main(["up", "--processes", str(rules), "--operators", "none"]) == 2
    said = capsys.readouterr().err
    assert "--processes-as-root" in said
    assert "unshare: Operation not permitted" in said


@pytest.mark.spec("T-14")
def test_every_kubeconfig_of_the_user_is_hidden_from_process_pods(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rules, hidden = tmp_path / "rules.yaml", list[Path]()
    rules.write_text("- {image: 'web:*', command: [python3, -m, http.server]}\n")
    files = [tmp_path / "first", tmp_path / "second"]
    for file in files:
        file.touch()

    def enough(cluster: Cluster, *names: str) -> None:
        raise RuntimeError("enough")

    monkeypatch.setenv("KUBECONFIG", ":".join(map(str, files)))
    monkeypatch.setattr(Processes, "hide", lambda _, path: hidden.append(path))
    monkeypatch.setattr(Cluster, "release", enough)
    main(["up", "--processes", str(rules), "--processes-as-root", "--operators", "none", "--no-console"])
    assert set(files) <= set(hidden)
