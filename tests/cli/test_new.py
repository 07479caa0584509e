"""A new project is one whose test passes."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

from konverge.cli.main import main
from konverge.operators.loading import load

pytestmark = pytest.mark.spec("O-06")


def test_the_test_of_a_new_project_passes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "there"
    assert main(["new", "my-shop-operator", "--dir", str(folder), "--group", "shop.example.org"]) == 0
    assert f"cd {folder}" in capsys.readouterr().out
    made = sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
    assert made == [
        ".dockerignore", ".github/workflows/test.yml", ".gitignore", "Containerfile", "Makefile", "README.md",
        "pyproject.toml", "src/my_shop_operator/__init__.py", "src/my_shop_operator/operator.py",
        "src/my_shop_operator/sample.yaml", "tests/test_operator.py",
    ]  # fmt: skip
    options = ["-q", "-p", "no:cacheprovider"]
    done = subprocess.run([sys.executable, "-m", "pytest", *options], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "4 passed" in done.stdout
    printed = subprocess.run(
        [sys.executable, "-m", "my_shop_operator.operator", "crd"],
        cwd=folder / "src", capture_output=True, text=True, check=True,
    )  # fmt: skip
    definition = yaml.safe_load(printed.stdout)
    assert definition["metadata"]["name"] == "myshops.shop.example.org"
    parts = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]
    for part in ("spec", "status"):
        assert all(field.get("description") for field in parts[part]["properties"].values()), "for `kubectl explain`"


def test_the_commands_know_a_new_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))
    assert main(["new", "keep-it", "--dir", str(tmp_path)]) == 0
    declared = tomllib.loads((tmp_path / "pyproject.toml").read_text())["project"]
    assert declared["entry-points"]["konverge.operators"] == {"keep-it": "keep_it.operator:manager"}
    assert declared["scripts"] == {"keep-it": "keep_it.operator:main"}
    operator = load(str(tmp_path / "src" / "keep_it" / "operator.py"))
    sample = operator.sample_objects()[0]
    assert (sample["kind"], sample["apiVersion"]) == ("KeepIt", "example.com/v1")
    assert (operator.name, operator.about) == ("keep-it", "A KeepIt is a text that is kept in a ConfigMap")
    workflow = yaml.safe_load((tmp_path / ".github" / "workflows" / "test.yml").read_text())
    assert workflow["jobs"]["test"]["steps"][1]["with"] == {"python-version": "${{ matrix.python }}"}


def test_new_code_is_as_tidy_as_ours(tmp_path: Path) -> None:
    assert main(["new", "tidy", "--dir", str(tmp_path / "tidy")]) == 0
    for check in (["ruff", "check", "."], ["ruff", "format", "--check", "."], ["mypy", "--strict", "src"]):
        done = subprocess.run([sys.executable, "-m", *check], cwd=tmp_path / "tidy", capture_output=True, text=True)
        assert done.returncode == 0, done.stdout


def test_nothing_is_written_over(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "mine").write_text("precious")
    assert main(["new", "my-operator", "--dir", str(tmp_path)]) == 2
    assert "exists and is not empty" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("class", "a word of the Python language: take another name, such as class-operator"),
        ("json", "a module of the Python standard library"),
        ("operator", "a module of the Python standard library: take another name, such as my-operator"),
        ("konverge", "a package that is installed here"),
        ("yaml", "a package that is installed here"),
        ("webapp", "an operator that comes with konverge"),
        ("tests", "the folder of the tests"),
    ],
)
def test_a_name_that_is_taken_is_refused(
    name: str, reason: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["new", name, "--dir", str(tmp_path / "new")])
    assert ended.value.code == 2
    assert f"{name!r} is {reason}" in capsys.readouterr().err
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(("name", "kind"), [("secret", "MySecret"), ("context", "MyContext"), ("minimum", "MyMinimum")])
def test_a_kind_that_there_is_gets_another_name(
    name: str, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))
    assert main(["new", name, "--dir", str(tmp_path)]) == 0
    assert f"Its kind is {kind}: there is a {name.capitalize()} already." in capsys.readouterr().out
    operator = load(str(tmp_path / "src" / name / "operator.py"))
    assert [declared.__name__ for declared in operator.kinds] == [kind]


@pytest.mark.parametrize("name", ["My", "-x", "a_b", "1st", "a" * 41, "../up"])
def test_a_name_that_is_none_is_refused(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["new", "--", name])
    assert ended.value.code == 2
    assert "is not a name for a project" in capsys.readouterr().err


def test_a_group_must_be_a_domain(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["new", "a", "--dir", str(tmp_path / "a"), "--group", "shop"]) == 2
    assert "must be a domain" in capsys.readouterr().err
