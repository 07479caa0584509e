"""An operator as a program of its own: commands without a name, help that starts nothing, pipes that end early."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from konverge import Controller, Manager, operator_main
from konverge.cli.program import OperatorProgram
from konverge.objects.kinds.core_v1 import ConfigMap
from konverge.operators.loading import references
from konverge.operators.webapp import WebApp, WebAppReconciler

pytestmark = pytest.mark.spec("O-04")

SOURCE = """
from konverge import Controller, Manager, operator_main
from konverge.operators.webapp import WebApp, WebAppReconciler

manager = Manager(name="keeper")
manager.add(Controller(WebApp, WebAppReconciler()))
main = operator_main(manager)
"""


@pytest.fixture
def program(monkeypatch: pytest.MonkeyPatch) -> OperatorProgram:
    def started(*_: object) -> None:
        raise AssertionError("it started")

    monkeypatch.setattr("konverge.cli.run.serve", started)
    return operator_main(Manager(name="keeper").add(Controller(WebApp, WebAppReconciler(), owns=[ConfigMap])))


def ended(program: OperatorProgram, *arguments: str) -> Any:
    with pytest.raises(SystemExit) as raised:
        program(arguments)
    return raised.value.code


@pytest.mark.parametrize("arguments", [("--help",), ("run", "--help"), ("crd", "-h")])
def test_help_is_help(program: OperatorProgram, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...]) -> None:
    assert ended(program, *arguments) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("usage: keeper ")
    assert "konverge" not in printed.partition("options:")[0]
    assert "webapp" not in printed


@pytest.mark.parametrize("arguments", [(), ("start",), ("run", "now"), ("--bad",), ("crd", "--output", "xml")])
def test_what_cannot_be_meant_starts_nothing(
    program: OperatorProgram, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...]
) -> None:
    assert ended(program, *arguments) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "usage: keeper" in printed.err


def test_its_commands_are_about_itself(program: OperatorProgram, capsys: pytest.CaptureFixture[str]) -> None:
    assert ended(program, "crd") == 0
    assert yaml.safe_load(capsys.readouterr().out)["metadata"]["name"] == "webapps.apps.konverge.dev"
    assert ended(program, "manifests", "--image", "k:1") == 0
    objects = list(yaml.safe_load_all(capsys.readouterr().out))
    container = next(obj for obj in objects if obj["kind"] == "Deployment")["spec"]["template"]["spec"]["containers"][0]
    assert (container["command"], container["args"][:2]) == (["keeper"], ["run", "--leader-elect"])
    parsed = program.parser(program.operator()).parse_args(container["args"])
    assert (parsed.command, parsed.leader_election_namespace) == ("run", "keeper-system")
    assert ended(program, "rbac", "-n", "tools") == 0
    assert "keeper-operator" in capsys.readouterr().out


def test_its_chart_starts_it_by_its_own_command(
    program: OperatorProgram, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ended(program, "chart", "--dir", str(tmp_path)) == 0
    folder = tmp_path / "keeper-operator"
    assert capsys.readouterr().out.strip() == str(folder)
    text = (folder / "templates" / "deployment.yaml").read_text()
    assert "            - keeper\n          args:\n            - run\n            {{- if" in text
    about = yaml.safe_load((folder / "Chart.yaml").read_text())
    assert (about["version"], about["appVersion"]) == ("0.1.0", "latest")
    assert yaml.safe_load((folder / "values.yaml").read_text())["image"]["repository"] == "keeper"


def test_the_version_is_that_of_its_package(
    program: OperatorProgram, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    known = references.Known("keeper", "keeper:manager", "keeper", "1.4.2", "keeps things")
    monkeypatch.setattr(references, "_installed", lambda: {"keeper": [known]})
    assert ended(program, "--version") == 0
    assert capsys.readouterr().out == "keeper 1.4.2\n"
    assert (program.operator().image, program.operator().summary) == ("keeper:1.4.2", "keeps things")


def test_a_mistake_in_the_declaration_is_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert ended(operator_main(Manager(name="empty")), "crd") == 2
    assert capsys.readouterr().err.startswith("the operator has no controllers")


def test_a_reader_who_goes_away_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "keeper.py").write_text(SOURCE + "if __name__ == '__main__':\n    main()\n")
    for arguments in (["manifests"], ["--help"]):
        reading, writing = os.pipe()
        os.close(reading)
        with os.fdopen(writing, "w") as pipe:
            command = [sys.executable, str(tmp_path / "keeper.py"), *arguments]
            done = subprocess.run(command, stdout=pipe, stderr=subprocess.PIPE, text=True)
        assert done.stderr == ""


def test_a_module_that_calls_it_when_imported_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from konverge.cli.main import main

    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "eager.py").write_text(SOURCE + "main()\n")
    assert main(["crd", str(tmp_path / "eager.py")]) == 2
    assert "starts its operator when it is imported (eager.py, line 8)" in capsys.readouterr().err
