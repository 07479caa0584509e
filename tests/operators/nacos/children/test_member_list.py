"""The list of members as a file: what the pods have, and the loop that hands it to Nacos, run by a real shell."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from subprocess import PIPE
from typing import Any

import pytest
from msgspec.structs import replace

from konverge.objects import to_dict
from konverge.objects.kinds.core_v1 import EnvVar, EnvVarSource, Pod
from konverge.operators.nacos import names
from konverge.operators.nacos.children.config import config_map
from konverge.operators.nacos.children.member_list import FOLLOW, reads_list
from konverge.operators.nacos.children.pod_template import pod_template
from konverge.operators.nacos.children.stateful_set import stateful_set
from konverge.operators.nacos.desired import InvalidSpec
from tests.operators.nacos.children.test_environment import members
from tests.operators.nacos.test_children import desired_of
from tests.operators.nacos.world import EMBEDDED, STANDALONE

pytestmark = pytest.mark.spec("N-47")
IN_PLACE: dict[str, Any] = {**EMBEDDED, "scaleWithoutRestarts": True}


def pod(spec: dict[str, Any]) -> dict[str, Any]:
    made: dict[str, Any] = to_dict(pod_template(desired_of(spec), "", ""))["spec"]
    return made


def test_the_list_is_no_part_of_the_template() -> None:
    assert pod(IN_PLACE) == pod({**IN_PLACE, "replicas": 5})
    assert config_map(desired_of({**IN_PLACE, "replicas": 5})).data["servers"] == members(5)
    (container,) = pod(IN_PLACE)["containers"]
    env = {variable["name"]: variable for variable in container["env"]}
    assert env["NACOS_SERVERS"]["valueFrom"] == {"configMapKeyRef": {"name": "nacos", "key": "servers"}}
    assert env["MODE"]["value"] == "cluster"
    assert "NACOS_REPLICAS" not in env


def test_it_is_mounted_so_that_the_kubelet_updates_it() -> None:
    made = pod(IN_PLACE)
    source = {"name": "nacos", "items": [{"key": "servers", "path": "servers"}]}
    assert made["volumes"] == [{"name": "members", "configMap": source}]
    (container,) = made["containers"]
    assert container["volumeMounts"] == [{"name": "members", "mountPath": "/home/nacos/members", "readOnly": True}]
    assert container["lifecycle"] == {"postStart": {"exec": {"command": ["sh", "-c", FOLLOW]}}}
    assert "/home/nacos/members/servers" in FOLLOW


@pytest.mark.parametrize(
    "spec", [EMBEDDED, {**EMBEDDED, "scaleWithoutRestarts": False}, {**STANDALONE, "scaleWithoutRestarts": True}]
)
def test_only_a_cluster_that_asks_for_it_has_it(spec: dict[str, Any]) -> None:
    made = pod({**spec, "volume": {}})
    assert "volumes" not in made
    assert "lifecycle" not in made["containers"][0]
    assert list(config_map(desired_of(spec)).data) == ["custom.properties"]
    assert names.LISTED not in stateful_set(desired_of(spec)).metadata.annotations


def test_the_stateful_set_says_how_many_are_in_it() -> None:
    annotations = stateful_set(desired_of({**IN_PLACE, "replicas": 5})).metadata.annotations
    assert (annotations[names.LISTED], annotations[names.LISTED_SINCE]) == ("5", "")


def test_the_list_stays_while_pods_of_an_earlier_template_start_with_it() -> None:
    desired = desired_of(EMBEDDED)
    assert config_map(replace(desired, keeps_list=True)).data["servers"] == members(3)
    template = pod_template(desired_of(IN_PLACE), "", "")
    assert reads_list(Pod(spec=template.spec))
    assert not reads_list(Pod(spec=pod_template(desired, "", "").spec))
    template.spec.containers[0].env = [EnvVar(name="OTHER", value_from=EnvVarSource())]
    assert not reads_list(Pod(spec=template.spec))


def test_restricted_servers_cannot_follow_a_list() -> None:
    with pytest.raises(InvalidSpec, match=r"^spec.scaleWithoutRestarts: servers of podSecurity: Restricted cannot"):
        desired_of({**IN_PLACE, "podSecurity": "Restricted"})
    assert desired_of({**IN_PLACE, "podSecurity": "Baseline"}).lists_by_file
    kept = {**EMBEDDED, "podSecurity": "Restricted"}
    assert "cluster.conf" in config_map(desired_of(kept)).data


# ------------------------------------------------------------------ the loop


class Loop:
    """The loop in a folder of its own; `tick` is one turn of it, in place of two seconds."""

    def __init__(self, folder: Path) -> None:
        self.conf, self.mounted = folder / "conf/cluster.conf", folder / "members/servers"
        for file, text in ((self.conf, "as the entry point wrote it"), (self.mounted, "a:8848 b:8848")):
            file.parent.mkdir()
            file.write_text(text)
        script = FOLLOW.replace("/home/nacos", str(folder))
        assert script.count(str(folder)) == 4
        begin, end = "while sleep 2; do", "done < /dev/null > /dev/null 2>&1 &"
        assert script.count(begin) == script.count(end) == 1
        script = script.replace(begin, "while echo ready && read -r turn; do").replace(end, "done")
        env = {**os.environ, "NACOS_SERVERS": "a:8848 b:8848"}
        self.shell = subprocess.Popen(["sh", "-c", script], env=env, stdin=PIPE, stdout=PIPE, text=True)
        self._ready()

    def _ready(self) -> None:
        assert self.shell.stdout is not None
        assert self.shell.stdout.readline() == "ready\n"

    def tick(self) -> str:
        """The list that Nacos has after one turn."""
        assert self.shell.stdin is not None
        print(file=self.shell.stdin, flush=True)
        self._ready()
        return self.conf.read_text()


@pytest.fixture
def loop(tmp_path: Path) -> Iterator[Loop]:
    loop = Loop(tmp_path)
    with loop.shell:
        yield loop


def test_another_list_is_handed_to_nacos_in_one_piece(loop: Loop) -> None:
    assert loop.tick() == "as the entry point wrote it", "the list of the start is no other list"
    before = loop.conf.stat().st_ino
    loop.mounted.write_text("a:8848 b:8848 c:8848")
    assert loop.tick() == "a:8848\nb:8848\nc:8848\n"
    assert loop.conf.stat().st_ino != before, "a new file, never half of one"
    assert [file.name for file in loop.conf.parent.iterdir()] == ["cluster.conf"]
    loop.conf.write_text("as Nacos wrote it, with the time")
    assert loop.tick() == "as Nacos wrote it, with the time", "what Nacos makes of its list is left alone"
    loop.mounted.write_text("a:8848 b:8848")
    assert loop.tick() == "a:8848\nb:8848\n"


def test_no_list_is_no_list(loop: Loop) -> None:
    loop.mounted.write_text("")
    assert loop.tick() == "as the entry point wrote it"
    loop.mounted.unlink()
    assert loop.tick() == "as the entry point wrote it"
    loop.mounted.write_text("a:8848")
    assert loop.tick() == "a:8848\n"


def test_a_list_that_cannot_be_written_is_written_later(loop: Loop) -> None:
    folder = loop.conf.parent
    aside = folder.rename(folder.with_name("aside"))
    loop.mounted.write_text("a:8848")
    with pytest.raises(FileNotFoundError):
        loop.tick()
    aside.rename(folder)
    assert loop.tick() == "a:8848\n"


def test_the_hook_is_over_at_once_and_holds_no_output(tmp_path: Path) -> None:
    sleep = tmp_path / "sleep"
    sleep.write_text("#!/bin/sh\nexit 1\n")  # ends the loop
    sleep.chmod(0o755)
    env = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    hook = subprocess.run(["sh", "-c", FOLLOW], env=env, capture_output=True, timeout=30, check=True)
    assert (hook.stdout, hook.stderr) == (b"", b"")
