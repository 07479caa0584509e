"""A new project is one whose test passes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from konverge.cli.main import main


def test_the_test_of_a_new_project_passes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "there"
    assert main(["new", "my-shop-operator", "--dir", str(folder), "--group", "shop.example.org"]) == 0
    assert f"cd {folder}" in capsys.readouterr().out
    made = sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
    assert made == [
        ".gitignore", "Containerfile", "README.md", "pyproject.toml", "sample.yaml",
        "src/my_shop_operator/__init__.py", "src/my_shop_operator/operator.py", "tests/test_operator.py",
    ]  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"], cwd=folder, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 passed" in done.stdout
    printed = subprocess.run(
        [sys.executable, "-m", "my_shop_operator.operator", "crd"],
        cwd=folder / "src", capture_output=True, text=True, check=True,
    )  # fmt: skip
    definition = yaml.safe_load(printed.stdout)
    sample = yaml.safe_load((folder / "sample.yaml").read_text())
    assert definition["metadata"]["name"] == "myshops.shop.example.org"
    assert (sample["kind"], sample["apiVersion"]) == ("MyShop", "shop.example.org/v1")


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


@pytest.mark.parametrize("name", ["My", "-x", "a_b", "1st", "a" * 41, "../up"])
def test_a_name_that_is_none_is_refused(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["new", "--", name])
    assert ended.value.code == 2
    assert "is not a name for a project" in capsys.readouterr().err


def test_a_group_must_be_a_domain(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["new", "a", "--dir", str(tmp_path / "a"), "--group", "shop"]) == 2
    assert "must be a domain" in capsys.readouterr().err
