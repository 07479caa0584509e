"""The simulate file: what it says is read, and what it cannot mean is an error that says what to write."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from konverge.sim.applications import SimulationError, load_simulation, parse_simulation, read_simulation

pytestmark = pytest.mark.spec("K-60")

BENCH = sorted((Path(__file__).parents[3] / "bench/check").glob("*/simulate.yaml"))


def test_a_file_has_pods_commands_writes_and_servers() -> None:
    simulation = parse_simulation(
        """
        pods: [{image: "db:*", behave: slow-start 2s}]
        exec: [{image: "db:*", command: "*status*", stdout: fine, exit: 3}]
        writes: [{container: agent, annotations: {version: "{config.version}"},
                  from: {config: {kind: Secret, name: "{root.metadata.name}-config", key: all, parse: json}}}]
        servers: [{kind: http, ports: [80], table: [{path: /health}]}, {server: store, kind: zookeeper}]
        """
    )
    assert [rule.behave for rule in simulation.rules] == ["slow-start 2s"]
    assert (simulation.exec[0].stdout, simulation.exec[0].exit) == ("fine", 3)
    assert simulation.writes[0].sources["config"].key == "all"
    assert [server.title for server in simulation.servers] == ["http", "store"]


@pytest.mark.parametrize(
    ("document", "text"),
    [
        ({"exce": []}, "there is no member `exce`; did you mean `exec`? Known are: exec, pods, servers, writes"),
        ({"exec": [{"comand": "x"}]}, "did you mean `command`?"),
        ({"exec": [{"answers": [{"code": 1}]}]}, "Known are: exit, stderr, stdout"),
        ({"servers": [{"kind": "http", "ports": [80], "table": [{"paht": "/"}]}]}, "did you mean `path`?"),
        ({"exec": [{"exit": "one"}]}, "Expected `int`, got `str`"),
        ({"pods": [{"behave": "sing"}]}, "'sing' is no behaviour"),
        ({"servers": [{"kind": "gopher"}]}, "there is no kind 'gopher'; there are: http"),
        ({"servers": [{}]}, "needs `kind`"),
        ({"servers": [{"kind": "http"}]}, "needs `ports`"),
        ({"servers": [{"kind": "redis", "table": [{"path": "/"}]}]}, "`table` is for kind http"),
        ({"servers": [{"python": "json:loads", "ports": [1]}]}, "is no subclass of"),
        ({"servers": [{"python": "no.such:Thing", "ports": [1]}]}, "No module named"),
        ({"exec": [{"server": "redis"}]}, "there is no server 'redis' in this file; there are: none"),
        ({"writes": [{"image": "x"}]}, "writes nothing: it needs `annotations`"),
        ({"writes": [{"annotations": {"a": "{conf.x}"}}]}, "refers to 'conf'; there are: owner, pod, root"),
        ({"writes": [{"annotations": {"a": "{pod"}}]}, "a brace begins a reference"),
        ([], "a simulate file is a mapping"),
    ],
)
def test_what_a_file_cannot_mean_is_refused(document: Any, text: str) -> None:
    with pytest.raises(SimulationError) as failure:
        read_simulation(document)
    assert text in str(failure.value)


def test_a_file_that_is_no_yaml_is_named(tmp_path: Path) -> None:
    path = tmp_path / "simulate.yaml"
    path.write_text("exec: [")
    with pytest.raises(SimulationError, match=r"simulate\.yaml is no YAML"):
        load_simulation(path)
    path.write_text("")
    assert load_simulation(path).exec == ()


@pytest.mark.parametrize("path", BENCH, ids=lambda path: path.parent.name)
def test_the_files_of_the_benchmark_can_be_read(path: Path) -> None:
    load_simulation(path)
