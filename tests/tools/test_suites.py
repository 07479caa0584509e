"""What runs other projects' suites: reading their results, choosing functions, saying why a suite cannot run."""

from __future__ import annotations

import json
import subprocess
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
import yaml

from konverge.sim.processes import read_rules
from tools import real_binaries
from tools.suites import __main__ as command
from tools.suites import conformance_specs, images, kubectl_commands, modules
from tools.suites.report import Count, table

SCRIPT = """
  record_command run_pod_tests
# record_command run_kubectl_tests
    record_command run_job_tests
  record_command "run_${pkg}_tests"
"""


@pytest.fixture
def source(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The scripts, as the module cache would hold them."""
    folder = tmp_path / "source"
    for name in kubectl_commands.FOLDERS:
        (folder / name).mkdir(parents=True)
    (folder / "test/cmd/legacy-script.sh").write_text(SCRIPT)
    monkeypatch.setattr(modules, "sources", lambda module, version: folder)
    monkeypatch.setattr(kubectl_commands, "NEEDED", ())
    monkeypatch.setattr(real_binaries, "program", lambda name: Path("/programs") / name)
    return folder


@pytest.fixture
def shares(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[str]]:
    """Which functions each server was given; none is run."""
    given: dict[str, list[str]] = {}

    def run_share(folder: Path, names: list[str], real: Path | None) -> list[kubectl_commands.Result]:
        given[folder.name] = names
        return [kubectl_commands.Result(name, True, 1, folder) for name in names]

    monkeypatch.setattr(kubectl_commands, "_run_share", run_share)
    return given


def test_the_functions_are_those_that_upstream_runs_and_those_that_it_does_not(source: Path) -> None:
    assert kubectl_commands.functions(source) == ["run_pod_tests", "run_job_tests", *kubectl_commands.NOT_RUN_UPSTREAM]


@pytest.mark.usefixtures("source")
def test_functions_are_shared_among_servers_in_their_order(shares: dict[str, list[str]], tmp_path: Path) -> None:
    results = kubectl_commands.run(tmp_path, jobs=2)
    assert shares["0"] == ["run_pod_tests", *kubectl_commands.NOT_RUN_UPSTREAM[::2]]
    assert shares["1"] == ["run_job_tests", *kubectl_commands.NOT_RUN_UPSTREAM[1::2]]
    assert [result.name for result in results] == sorted([*shares["0"], *shares["1"]])


@pytest.mark.usefixtures("source")
def test_more_servers_than_functions_are_not_started(shares: dict[str, list[str]], tmp_path: Path) -> None:
    """A driver without names would run everything."""
    kubectl_commands.run(tmp_path, only=["run_job_tests"], jobs=3)
    assert shares == {"0": ["run_job_tests"]}


@pytest.mark.usefixtures("source")
def test_a_function_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"test/cmd has no run_pods_tests$"):
        kubectl_commands.run(tmp_path, only=["run_pods_tests", "run_job_tests"])


@pytest.mark.parametrize(
    ("names", "programs"),
    [(["run_pod_tests"], ["kubectl"]), (["run_convert_tests"], ["kubectl", "kubectl-convert"])],
)
def test_the_copy_needs_no_internet_and_has_the_programs_that_are_needed(
    source: Path, tmp_path: Path, names: list[str], programs: list[str]
) -> None:
    (source / "test/cmd/create.sh").write_text(f"kubectl create -f {kubectl_commands.ONLINE}hack/testdata/pod.yaml\n")
    kubectl_commands.prepare(source, tmp_path / "copy", names)
    assert (tmp_path / "copy/test/cmd/create.sh").read_text() == "kubectl create -f hack/testdata/pod.yaml\n"
    links = sorted((tmp_path / "copy/_output/bin").iterdir())
    assert [str(link.readlink()) for link in links] == [f"/programs/{name}" for name in programs]


def test_results_are_read_from_the_lines_of_the_driver(tmp_path: Path) -> None:
    results = kubectl_commands.read("run_pod_tests 0 12\nrun_job_tests 137 300\nend 0 320\n", tmp_path)
    assert [(result.name, result.passed, result.seconds) for result in results] == [
        ("run_pod_tests", True, 12),
        ("run_job_tests", False, 300),
    ]
    assert results[0].log == tmp_path / "logs" / "run_pod_tests.log"


@pytest.mark.parametrize("lines", ["", "run_pod_tests 0 12\n"])
def test_a_run_that_ended_between_two_functions_has_failed(tmp_path: Path, lines: str) -> None:
    last = kubectl_commands.read(lines, tmp_path)[-1]
    assert (last.name, last.passed, last.log) == ("checks between the functions", False, tmp_path / "driver.log")


def test_the_tail_of_a_log_has_no_colours(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("".join(f"line {number}\n" for number in range(30)) + "\x1b[31mFAIL!\x1b(B\x1b[m\n")
    lines = kubectl_commands.Result("run_pod_tests", False, 1, log).tail().splitlines()
    assert (len(lines), lines[0], lines[-1]) == (25, "     line 6", "     FAIL!")


def test_a_missing_tool_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("shutil.which", lambda name: None if name in ("jq", "script") else name)
    with pytest.raises(modules.Unavailable, match="no jq, no script on the PATH: kubectl's test/cmd needs them"):
        kubectl_commands.run(tmp_path)


def test_a_program_that_cannot_be_built_makes_the_suite_unavailable(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(name: str) -> Path:
        raise FileNotFoundError(f"no {name}, and no Go to build it")

    monkeypatch.setattr(real_binaries, "program", fails)
    with pytest.raises(modules.Unavailable, match="kubectl-convert cannot be had: no kubectl-convert, and no Go"):
        kubectl_commands._program("kubectl-convert")


# ------------------------------------------------------------------ programs and modules


def test_a_program_is_taken_from_where_the_others_are(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "kubectl").touch()
    monkeypatch.setattr(real_binaries, "find", lambda: (tmp_path, "the cache"))
    monkeypatch.setattr(real_binaries, "cache", lambda: tmp_path / "none")
    assert real_binaries.program("kubectl") == tmp_path / "kubectl"


def test_a_program_is_built_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    built: list[str] = []

    def build(name: str, target: Path) -> None:
        built.append(name)
        (target / name).touch()

    monkeypatch.setattr(real_binaries, "find", lambda: (None, "nothing"))
    monkeypatch.setattr(real_binaries, "cache", lambda: tmp_path / "cache")
    monkeypatch.setattr(real_binaries, "_build", build)
    monkeypatch.setattr("shutil.which", lambda name: name)
    for _ in range(2):
        assert real_binaries.program("kubectl-convert") == tmp_path / "cache" / "kubectl-convert"
    assert built == ["kubectl-convert"]


def test_without_go_nothing_is_built(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(real_binaries, "find", lambda: (None, "install Go"))
    monkeypatch.setattr(real_binaries, "cache", lambda: tmp_path)
    monkeypatch.setattr("shutil.which", lambda name: None)
    with pytest.raises(FileNotFoundError, match="no kubectl-convert, and no Go to build it: install Go"):
        real_binaries.program("kubectl-convert")


def test_without_go_there_are_no_modules(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda name: None)
    with pytest.raises(modules.Unavailable, match=r"no go on the PATH: the suite is in the Go module example\.com/m"):
        modules.sources("example.com/m", "v1.0.0")


def test_a_module_that_cannot_be_downloaded_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(command: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        return subprocess.CompletedProcess(command, 1, "", "dial tcp: no route to host\n")

    monkeypatch.setattr("shutil.which", lambda name: name)
    monkeypatch.setattr("subprocess.run", fails)
    with pytest.raises(modules.Unavailable, match=r"example\.com/m@v1\.0\.0 cannot be downloaded: dial tcp: no route"):
        modules.sources("example.com/m", "v1.0.0")


def test_copied_files_can_be_written_and_scripts_be_run(tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    (source / "folder").mkdir(parents=True)
    for name, text in (("script", "#!/bin/sh"), ("text", "! #")):
        (source / "folder" / name).write_text(text)
        (source / "folder" / name).chmod(0o444)
    modules.copy(source, target)
    modes = {path.name: path.stat().st_mode & 0o777 for path in (target, *target.rglob("*"))}
    assert modes == {"target": 0o755, "folder": 0o755, "script": 0o755, "text": 0o644}


# ------------------------------------------------------------------ conformance specs


def spec(name: str, state: str, message: str = "") -> dict[str, Any]:
    """An entry of Ginkgo's report."""
    area, _, leaf = name.partition(" ")
    failure = {"Failure": {"Message": message}} if message else {}
    return {"ContainerHierarchyTexts": [area], "LeafNodeText": leaf, "State": state, **failure}


@pytest.mark.spec("S-47")
def test_the_verdict_on_a_spec_is_read_from_the_report(tmp_path: Path) -> None:
    report = tmp_path / "0.json"
    entries = [
        {"ContainerHierarchyTexts": None, "LeafNodeText": "", "State": "passed"},  # a setup node
        spec("Pods run", "passed"),
        spec("Pods end", "failed", "timed out"),
        spec("Pods sleep", "skipped", "needs three nodes"),
        spec("Pods not asked for", "skipped"),
    ]
    report.write_text(json.dumps([{"SpecReports": entries}]))
    results = conformance_specs.read(report, ["Pods run", "Pods end", "Pods sleep", "Pods missing"])
    assert [(result.name, result.passed) for result in results] == [
        ("Pods run", True),
        ("Pods end", False),
        ("Pods sleep", False),
        ("Pods missing", False),
    ]
    assert [result.reason for result in results[:3]] == ["", "timed out", "needs three nodes"]
    assert "was not run" in results[3].reason


@pytest.mark.spec("S-47")
def test_a_suite_that_wrote_no_report_has_passed_nothing(tmp_path: Path) -> None:
    results = conformance_specs.read(tmp_path / "0.json", ["Pods run"])
    assert [(result.name, result.passed) for result in results] == [("Pods run", False)]


@pytest.mark.spec("S-47")
def test_the_listed_specs_are_sorted_and_named_once() -> None:
    names = conformance_specs.passing()
    assert names == sorted(set(names))


@pytest.mark.spec("S-47")
def test_the_images_have_their_programs_by_all_their_names(tmp_path: Path) -> None:
    busybox, agnhost, root = tmp_path / "busybox", tmp_path / "agnhost", tmp_path / "root"
    busybox.write_text("#!/bin/sh\nprintf 'busybox\\ncat\\nsh\\n'\n")
    busybox.chmod(0o755)
    agnhost.write_text("agnhost")
    files = tmp_path / "files"
    for path in ("agnhost/porter/localhost.crt", "agnhost/porter/localhost.key", "kitten/html/data.json"):
        (files / path).parent.mkdir(parents=True, exist_ok=True)
        (files / path).write_text(path)
    images.make_agnhost(root, busybox, agnhost, tools=[Path("/usr/bin/env"), Path("/bin/bash")], files=files)
    assert sorted(path.name for path in (root / "bin").iterdir()) == ["bash", "busybox", "cat", "env", "sh"]
    assert (root / "bin/sh").readlink() == Path("bash")
    assert (root / "localhost.crt").read_text() == "agnhost/porter/localhost.crt"
    assert (root / "bin/cat").read_bytes() == busybox.read_bytes()
    assert (root / "agnhost-2").read_text() == "agnhost"
    assert (root / "tmp").stat().st_mode & 0o7777 == 0o777
    images.make_page(tmp_path / "kitten", busybox, agnhost, files=files)
    assert (tmp_path / "kitten" / "data.json").read_text() == "kitten/html/data.json"


@pytest.mark.spec("S-47")
def test_a_program_of_this_machine_runs_in_an_image(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    images.add_program(tmp_path, Path("/bin/true"))
    libraries = [path.name for path in tmp_path.rglob("*.so*")]
    assert any(name.startswith("libc.so") for name in libraries)
    assert any(name.startswith("ld-") for name in libraries), "the loader"


@pytest.mark.spec("S-47")
def test_each_area_has_agnhost_once_and_with_its_network() -> None:
    roots = {name: Path("/images") / name for name in ("agnhost", "busybox", "busybox-bash", *conformance_specs.PAGES)}
    rules = yaml.safe_load("".join(conformance_specs._rules(roots)))
    agnhost = [rule for rule in rules if rule["image"] == "*/e2e-test-images/agnhost:*"]
    areas = [rule["namespace"].removesuffix("-*") for rule in agnhost]
    assert len(areas) == len(set(areas))
    assert {rule["network"] for rule in agnhost if rule["namespace"] == "services-*"} == {"pod"}
    assert {rule["network"] for rule in agnhost if rule["namespace"] == "configmap-*"} == {"host"}
    assert areas.index("container-probe") < areas.index("container")
    busybox = [rule for rule in rules if rule["image"] == "*/e2e-test-images/busybox:*"]
    assert [rule["namespace"] for rule in busybox if rule["root"] == "/images/busybox-bash"] == [
        "configmap-*",
        "secrets-*",
    ]
    assert (busybox[-1]["namespace"], busybox[-1]["root"]) == ("*", "/images/busybox")
    assert len(read_rules(rules)) == len(rules)


@pytest.mark.spec("S-47")
def test_without_busybox_the_specs_are_not_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda name: None)
    with pytest.raises(modules.Unavailable, match="no busybox on the PATH"):
        conformance_specs.Programs.find()


@pytest.mark.spec("S-47")
def test_only_the_specs_that_are_asked_for_are_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    ran: list[str] = []
    monkeypatch.setattr(conformance_specs, "passing", lambda: ["Pods run", "Pods end", "Jobs end"])
    monkeypatch.setattr(conformance_specs, "BATCH", 1)
    monkeypatch.setattr(conformance_specs, "_cluster", lambda folder, programs: nullcontext(folder / "kubeconfig"))
    monkeypatch.setattr(conformance_specs.Programs, "find", lambda: None)
    monkeypatch.setattr(conformance_specs, "_run_batch", lambda report, kubeconfig, programs, names: ran.extend(names))
    conformance_specs.run(tmp_path, only=["end"])
    assert ran == ["Pods end", "Jobs end"]
    with pytest.raises(ValueError, match="no spec has sleep in its name"):
        conformance_specs.run(tmp_path, only=["sleep"])


# ------------------------------------------------------------------ the command


def test_the_table_counts_what_passed_and_names_what_failed() -> None:
    counts = [
        Count("one", "specs", 3, ()),
        Count("two", "functions", 1, ("run_a", "run_b")),
        Count("three", "specs", 4, (), ("slow",)),
    ]
    assert table(counts).splitlines()[2:] == [
        "| one | 3 of 3 specs | nothing |",
        "| two | 1 of 3 functions | run_a, run_b |",
        "| three | 4 of 5 specs | slow (known) |",
    ]


def test_the_command_fails_when_something_failed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    counts = {"good": Count("good", "specs", 1, ()), "bad": Count("bad", "specs", 1, ("x",))}
    suites = {name: lambda folder, options, real, count=count: [count] for name, count in counts.items()}
    monkeypatch.setattr(command, "WORK", tmp_path)
    monkeypatch.setattr(command, "SUITES", suites)
    assert command.main(["good"]) == 0
    assert command.main([]) == 1
    assert capsys.readouterr().out.splitlines()[-1] == "| bad | 1 of 2 specs | x |"


def test_a_suite_that_cannot_run_is_left_out_with_the_reason(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    def unavailable(*_: Any) -> list[Count]:
        raise modules.Unavailable("no go on the PATH")

    monkeypatch.setattr(command, "WORK", tmp_path)
    monkeypatch.setattr(command, "SUITES", {"first": unavailable})
    assert command.main([]) == 0
    assert "first is left out: no go on the PATH" in capsys.readouterr().out


def test_a_suite_that_does_not_exist_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        command.main(["e2e"])
    assert "no suite e2e; there are test-cmd, controller-runtime, operators, conformance" in capsys.readouterr().err
