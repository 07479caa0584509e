"""`konverge check`: exit codes, reports, files that show a finding again, and messages about wrong arguments."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from konverge.check import replay
from konverge.check.campaign import CouldNotTest, Options
from konverge.check.model import Alarm, Plan, Ref, Task
from konverge.check.subjects import from_target
from konverge.check.workload import default
from konverge.cli.main import main

KEEPER = "tests.check.campaign.keeper"
SAMPLE = "{apiVersion: example.com/v1, kind: Kept, metadata: {name: note}, spec: {text: hello}}\n"

pytestmark = pytest.mark.spec("K-51")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "cr.yaml").write_text(SAMPLE)
    return tmp_path


def check(*arguments: str) -> int:
    return main(["check", "--jobs", "1", *arguments])


def test_a_bug_is_found_reported_and_shown_again(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert check(f"{KEEPER}:wrong", "--sample", "cr.yaml", "--only", "crash", "--json", "out.json") == 1
    printed = capsys.readouterr()
    assert "1. high   after a crash between creating ConfigMap note-first and creating" in printed.out
    assert "konverge check --replay konverge-check/finding-1.json" in printed.out
    assert "first finding (high): after a crash" in printed.err
    [finding] = json.loads((folder / "out.json").read_text())["findings"]
    assert finding["object"] == "configmaps default/note-second"
    assert finding["replay"] == "konverge-check/finding-1.json"
    file = folder / finding["replay"]
    file.write_text(file.read_text().replace('"redacted": []', '"redacted": ["Secret a: b"]'))
    assert check("--replay", finding["replay"]) == 1
    shown = capsys.readouterr().out
    assert "\nplaceholders were used for 1 secret values\n" in shown
    assert "operator    + ConfigMap note-first" in shown
    assert "✗ crash after it" in shown
    assert shown.endswith("It shows again.\n")


@pytest.mark.spec("K-146")
@pytest.mark.parametrize(
    ("redacted", "last"),
    [
        ((), "It does not show again: the operator behaves as without the fault."),
        (
            ("Secret a: b",),
            "If it depends on what a secret value says, and not on which are the same, run the check again.",
        ),
    ],
)
def test_what_does_not_show_again_may_depend_on_a_secret(
    redacted: tuple[str, ...], last: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    checked = from_target(f"{KEEPER}:manager", ["cr.yaml"])
    steps = default(checked.samples, checked.definitions)
    task = Task(subject=checked.subject, setup=checked.setup, steps=steps[:1], plan=Plan("reference"))
    alarm = Alarm(oracle="state", severity="high", object="configmaps default/note-first", sentence="")
    file = folder / "finding-1.json"
    replay.write(file, replay.Replay(sentence="it is gone", task=task, alarm=alarm, redacted=redacted))
    assert check("--replay", str(file)) == 0
    assert capsys.readouterr().out.endswith(f"{last}\n")


def test_a_healthy_operator_ends_with_0_and_leaves_no_files(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert check(f"{KEEPER}:manager", "--sample", "cr.yaml", "--only", "crash") == 0
    printed = capsys.readouterr().out
    assert printed.startswith("0 findings in ")
    assert "tested: crash " in printed
    assert not (folder / "konverge-check").exists()


def test_what_cannot_be_tested_ends_with_2_and_the_reason(capsys: pytest.CaptureFixture[str]) -> None:
    assert check(f"{KEEPER}:idle", "--sample", "cr.yaml") == 2
    assert "could not test: the operator wrote nothing" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["webap"], "webapp"),
        ([], "name an operator"),
        (["webapp", "--", "./manager"], "name one operator"),
        ([f"{KEEPER}:manager"], "give one with --sample"),
        ([f"{KEEPER}:manager", "--sample", "absent.yaml"], "absent.yaml does not exist"),
        (["webapp", "--objects", "absent.yaml"], "absent.yaml does not exist"),
        (["webapp", "--rbac", "absent.yaml"], "absent.yaml does not exist"),
        (["webapp", "--crds", "absent.yaml"], "absent.yaml does not exist"),
        (["webapp", "--simulate", "absent.yaml"], "absent.yaml cannot be read"),
        (["--replay", "absent.json"], "absent.json"),
        (["--operator", "absent.toml"], "absent.toml"),
        (["--sample", "cr.yaml", "--", "./absent"], "absent is not there"),
        (["--sample", "cr.yaml", "--", "absent-manager"], "absent-manager is in no folder of the PATH"),
        (["--sample", "cr.yaml", "--crds", "empty", "--", "sh"], "no CustomResourceDefinition is in empty"),
        ([f"{KEEPER}:manager", "--sample", "empty"], "no object is in empty: give the custom resource"),
        ([f"{KEEPER}:manager", "--sample", "broken.yaml"], "broken.yaml is no YAML or JSON"),
        (
            [f"{KEEPER}:manager", "--sample", "other.yaml"],
            "nothing defines the kind of the sample example.com/v1 Other",
        ),
        ([f"{KEEPER}:manager", "--sample", "later.yaml"], "its definition serves v1; correct the sample"),
        ([f"{KEEPER}:manager", "--sample", "unnamed.yaml"], "has no metadata.name, only generateName"),
        ([f"{KEEPER}:manager", "--sample", "cr.yaml", "--mask", "absent"], "absent: No such file or directory; check"),
        (["--replay", "later.json"], "later.json has format 2"),
    ],
)
def test_a_wrong_call_says_what_would_be_right(
    arguments: list[str], message: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "empty").mkdir()
    (folder / "broken.yaml").write_text("a: [b\n c: }}\n")
    (folder / "other.yaml").write_text(SAMPLE.replace("Kept", "Other"))
    (folder / "later.yaml").write_text(SAMPLE.replace("/v1", "/v2"))
    (folder / "unnamed.yaml").write_text(SAMPLE.replace("name:", "generateName:"))
    (folder / "later.json").write_text('{"format": 2}')
    assert check(*arguments) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["webapp", "--only", "crahs"], "did you mean crash?"),
        (["webapp", "--only", ", "], "', ' names no kind of fault; use some of crash, stale"),
        (["webapp", "--only", "nonsense"], "'nonsense' is not a kind of fault; use some of crash, stale"),
        (["webapp", "--budget", "0"], "leaves no time: write 90s"),
        (["webapp", "--budget", "soon"], "write 90s, 5m or 1h30m"),
        (["webapp", "--bugdet", "5m"], "did you mean --budget?"),
        (["webapp", "--fail-on", "hihg"], "did you mean high?"),
    ],
)
def test_a_wrong_value_says_what_was_likely_meant(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        check(*arguments)
    assert ended.value.code == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("line", ["(", "spec.replicas"])
def test_a_mask_that_masks_nothing_is_refused(folder: Path, line: str, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "mask").write_text(f"# ours\n{line}\n")
    assert check(f"{KEEPER}:manager", "--sample", "cr.yaml", "--mask", "mask") == 2
    assert "--mask" in capsys.readouterr().err


@pytest.mark.spec("K-142")
@pytest.mark.parametrize(
    ("line", "hidden"),
    [
        (r"configmaps:data\.text", True),
        (r"/configmaps:data\.text", True),
        (r"(/configmaps|/secrets):data\.text", True),
        (r"//configmaps:data\.text", False),
        (r"/configmaps:data\.te", False),
        (r"/secrets:data\.text", False),
        (r"# /configmaps:data\.text", False),
    ],
)
def test_a_mask_names_a_resource_with_or_without_the_slash_of_the_core_group(
    folder: Path, line: str, hidden: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[Options] = []

    def campaign(*arguments: Any, **more: Any) -> Any:
        given.append(arguments[4])
        raise CouldNotTest("it is not run")

    monkeypatch.setattr("konverge.check.campaign.Campaign", campaign)
    (folder / "mask").write_text(f"\n  {line}  \napps/deployments:spec.x\n")
    assert check(f"{KEEPER}:manager", "--sample", "cr.yaml", "--mask", "mask") == 2
    [options] = given
    assert options.masks.hides(str(Ref("/configmaps", "default", "a")).partition(" ")[0], "data.text") is hidden
    assert options.masks.hides("apps/deployments", "spec.x")
