"""The files of `konverge check`: what cannot be written is refused before the search, findings are shown before they
are written. What nobody foresaw does not look like a finding."""

from __future__ import annotations

import argparse
import errno
import json
import os
import tempfile
from pathlib import Path
from typing import Any, NoReturn

import pytest

from konverge.check import replay
from konverge.check.report import files
from konverge.cli import check as command
from konverge.cli import check_files
from konverge.cli.check_listener import Shown
from konverge.cli.exit import CommandFailed, UsageError
from konverge.cli.main import parser
from konverge.cli.parsing import parse

from .test_check import KEEPER, check, folder

__all__ = ["folder"]

WRONG = (f"{KEEPER}:wrong", "--sample", "cr.yaml", "--only", "crash")
RIGHT = (f"{KEEPER}:manager", "--sample", "cr.yaml", "--only", "leader")
FULL = OSError(errno.ENOSPC, "No space left on device", "the-file")


def full(*_: Any) -> NoReturn:
    raise FULL


def places(**given: Path) -> argparse.Namespace:
    return argparse.Namespace(**{"report": None, "json": None, "junit": None, "sarif": None, **given})


# ------------------------------------------------------------------ before the search


@pytest.mark.spec("K-150")
@pytest.mark.parametrize(
    ("option", "path", "says"),
    [
        ("--report", "cr.yaml", "Not a directory; name a folder that can be written with --report"),
        ("--report", "cr.yaml/deep/report", "Not a directory; name a folder that can be written with --report"),
        ("--json", "cr.yaml/out.json", "Not a directory; name a file that can be written with --json"),
        ("--junit", ".", "it is a folder; name a file that can be written with --junit"),
        ("--sarif", "cr.yaml/deep/out.sarif", "Not a directory; name a file that can be written with --sarif"),
    ],
)
def test_a_place_that_cannot_be_written_is_refused_before_the_search(
    option: str, path: str, says: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(command, "_check", full)
    assert check(*WRONG, option, path) == 2
    assert capsys.readouterr().err == f"konverge check: {path} cannot be written: {says}\n"


@pytest.mark.spec("K-150")
def test_findings_need_a_place_also_where_no_report_is_asked_for(folder: Path) -> None:
    (folder / "konverge-check").write_text("a file")
    with pytest.raises(UsageError, match="konverge-check cannot be written: Not a directory"):
        check_files.try_places(places())
    check_files.try_places(places(report=folder / "other"))


@pytest.mark.spec("K-150")
def test_a_folder_is_tried_by_writing_and_nothing_is_left_in_it(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check_files.try_places(places(report=Path("new/report"), json=Path("other/out.json"), sarif=Path("out.sarif")))
    assert [path.name for path in folder.iterdir()] == ["cr.yaml"]
    tried: list[Path] = []

    def on_a_full_disk(*, dir: Path, buffering: int) -> Any:
        tried.append(dir)
        return Path("/dev/full").open("wb", buffering=buffering)

    monkeypatch.setattr(tempfile, "TemporaryFile", on_a_full_disk)
    (folder / "new").mkdir()
    with pytest.raises(UsageError, match="new/report cannot be written: No space left on device"):
        check_files.try_places(places(report=Path("new/report")))
    assert tried == [folder / "new"]


@pytest.mark.spec("K-150")
def test_a_file_that_is_there_is_left_as_it_is(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = folder / "out.json"
    kept.write_text("before")
    check_files.try_places(places(json=kept, junit=Path("/dev/null")))
    assert kept.read_text() == "before"
    monkeypatch.setattr(os, "access", lambda path, mode: not (path == kept and mode == os.W_OK))
    check_files.try_places(places(junit=Path("/dev/null")))
    with pytest.raises(UsageError, match=r"out\.json cannot be written: you may not write it; name a file"):
        check_files.try_places(places(json=kept))


# ------------------------------------------------------------------ after it


@pytest.mark.spec("K-150")
def test_findings_are_shown_where_their_files_cannot_be_written(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(replay, "write", full)
    monkeypatch.setattr(files, "write_page", full)
    assert check(*WRONG, "--report", "report", "--json", "deep/out.json") == 1
    printed = capsys.readouterr()
    assert "1. high   after a crash between creating ConfigMap note-first and creating" in printed.out
    assert "report: " not in printed.out
    problem = "the-file: No space left on device; check the path, and that you may read and write there"
    assert printed.err.endswith(f"konverge check: not written: {problem}; {problem}\n")
    assert len(json.loads((folder / "deep/out.json").read_text())["findings"]) == 1


@pytest.mark.spec("K-150")
@pytest.mark.parametrize("form", ["json", "junit", "sarif"])
def test_a_report_that_cannot_be_written_is_no_success(
    form: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(files, f"write_{form}", full)
    forms = [text for name in ("json", "junit", "sarif") for text in (f"--{name}", f"out/{name}")]
    assert check(*RIGHT, *forms, "--report", "report") == 2
    printed = capsys.readouterr()
    assert printed.out.startswith("0 findings in ")
    assert printed.out.endswith("report: report/index.html\n")
    assert "konverge check: not written: the-file: No space left on device" in printed.err
    assert {path.name for path in (folder / "out").iterdir()} == {"json", "junit", "sarif"} - {form}


@pytest.mark.spec("K-150")
def test_files_are_written_also_where_the_reader_of_the_terminal_has_gone(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone(*_: Any) -> NoReturn:
        raise BrokenPipeError

    monkeypatch.setattr(Shown, "report", gone)
    argv = ["check", "--jobs", "1", *WRONG, "--json", "out.json"]
    arguments = parse(parser("check"), argv)
    arguments.argv = argv
    with pytest.raises(BrokenPipeError):
        command.run(arguments)
    [finding] = json.loads((folder / "out.json").read_text())["findings"]
    assert (folder / finding["replay"]).is_file()


# ------------------------------------------------------------------ what nobody foresaw


@pytest.mark.spec("K-151")
def test_what_nobody_foresaw_ends_with_2(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def odd(*_: Any, **__: Any) -> NoReturn:
        raise KeyError("odd")

    monkeypatch.setattr("konverge.check.workload.default", odd)
    assert check(*RIGHT) == 2
    assert "konverge check: KeyError: 'odd' (a defect? `konverge --debug" in capsys.readouterr().err


@pytest.mark.spec("K-151")
@pytest.mark.parametrize("error", [CommandFailed("failed"), BrokenPipeError(), UsageError("so")], ids=type)
@pytest.mark.parametrize("grouped", [False, True])
def test_what_was_foreseen_keeps_its_code(error: Exception, grouped: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    raised = ExceptionGroup("several", [error]) if grouped else error

    def fail(_: Any) -> NoReturn:
        raise raised

    monkeypatch.setattr(command, "_run", fail)
    with pytest.raises(type(raised)) as caught:
        command.run(argparse.Namespace())
    assert caught.value is raised


@pytest.mark.spec("K-151")
def test_a_finding_whose_operator_is_gone_is_not_shown_again_and_not_repaired(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert check(*WRONG) == 1
    file = folder / "konverge-check" / "finding-1.json"
    file.write_text(file.read_text().replace(KEEPER, "tests.check.campaign.kepper"))
    capsys.readouterr()
    assert check("--replay", str(file)) == 2
    assert "tests.check.campaign.kepper" in capsys.readouterr().err
