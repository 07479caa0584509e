"""What somebody does who has a wheel and nothing else: install it, make a project, test it, install it into the real
Kubernetes, and run it with exactly the rights that were printed."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import venv
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.real.embedded import Tool
from tools.control_plane import ControlPlane

ROOT = Path(__file__).parents[2]
SPACE = "backup-system"
pytestmark = [pytest.mark.real, pytest.mark.limit(600), pytest.mark.spec("O-03", "O-06")]


@dataclass(frozen=True)
class Newcomer:
    """An environment with the wheel in it, and the project `backup` that it made."""

    environment: Path
    project: Path

    def run(self, program: str, *arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PYTEST"))}
        command = [str(self.environment / "bin" / program), *arguments]
        done = subprocess.run(command, cwd=self.project, env=environment, capture_output=True, text=True, timeout=900)
        assert not check or done.returncode == 0, f"{program} {arguments}: {done.stdout}{done.stderr}"
        return done


@pytest.fixture(scope="module")
def newcomer(tmp_path_factory: pytest.TempPathFactory) -> Newcomer:
    folder = tmp_path_factory.mktemp("newcomer")
    wheel = _wheel(folder)
    venv.create(folder / "env", with_pip=True)
    made = Newcomer(folder / "env", folder / "backup")
    made.project.mkdir()
    pip = ("-m", "pip", "install", "--quiet", "--disable-pip-version-check")
    made.run("python", *pip, "--require-hashes", "-r", str(ROOT / "constraints.txt"))
    made.run("python", *pip, "--no-deps", str(wheel))
    made.run("konverge", "new", "backup", "--dir", ".")
    made.run("python", *pip, "--no-deps", "--no-build-isolation", "-e", ".")
    return made


def _wheel(folder: Path) -> Path:
    sources = folder / "sources"
    shutil.copytree(
        ROOT / "src" / "konverge", sources / "src" / "konverge", ignore=shutil.ignore_patterns("__pycache__")
    )
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, sources / name)
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    subprocess.run([*pip, "--wheel-dir", str(folder), str(sources)], check=True, capture_output=True)
    return next(folder.glob("konverge-*.whl"))


def test_the_project_passes_its_own_tests_and_checks(newcomer: Newcomer) -> None:
    assert "4 passed" in newcomer.run("python", "-m", "pytest", "-q").stdout
    newcomer.run("ruff", "check", ".")
    newcomer.run("ruff", "format", "--check", ".")
    newcomer.run("mypy", "--strict", "src")


def test_its_command_starts_nothing_by_accident(newcomer: Newcomer) -> None:
    assert newcomer.run("backup", "--version").stdout == "backup 0.1.0\n"
    for arguments, status in ((("--help",), 0), (("run", "--help"), 0), ((), 2), (("start",), 2), (("run", "now"), 2)):
        done = newcomer.run("backup", *arguments, check=False)
        assert done.returncode == status, arguments
        assert "usage: backup" in done.stdout + done.stderr
    shell = f"{newcomer.environment}/bin/backup manifests | head -1; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", shell], cwd=newcomer.project, capture_output=True, text=True)
    assert done.stderr == ""
    assert done.stdout.startswith("apiVersion: ")


def test_every_command_knows_it_by_its_name(newcomer: Newcomer) -> None:
    assert newcomer.run("konverge", "crd", "backup").stdout == newcomer.run("backup", "crd").stdout
    assert newcomer.run("konverge", "rbac", "backup").stdout == newcomer.run("backup", "rbac").stdout
    assert "did you mean backup?" in newcomer.run("konverge", "crd", "bakup", check=False).stderr
    assert " backup " in newcomer.run("konverge", "completion", "bash").stdout.replace('"', " ")
    own, ours = (
        [yaml.safe_load_all(newcomer.run(*command).stdout)]
        for command in (("backup", "manifests"), ("konverge", "manifests", "backup"))
    )
    programs = []
    for objects in (*own, *ours):
        deployment = next(obj for obj in objects if obj["kind"] == "Deployment")
        container = deployment["spec"]["template"]["spec"]["containers"][0]
        assert container["image"] == "backup:0.1.0"
        programs.append([*container["command"], *container["args"][:2]])
    assert programs == [["backup", "run", "--leader-elect"], ["konverge", "run", "backup"]]


@pytest.fixture
def tool(real_server: ControlPlane, kubectl: Path, tmp_path: Path) -> Tool:
    return Tool(kubectl, real_server.kubeconfig, tmp_path)


@pytest.fixture
def installed(newcomer: Newcomer, tool: Tool) -> list[dict[str, Any]]:
    """The manifests, applied as a user would."""
    text = newcomer.run("backup", "manifests", "--image", "example.com/backup:1").stdout
    tool("apply", "--validate=strict", "-f", "-", stdin=text)
    tool.serves("backups.example.com")
    return list(yaml.safe_load_all(text))


@pytest.fixture
def account(installed: list[dict[str, Any]], tool: Tool, tmp_path: Path) -> Path:
    """A kubeconfig of the operator's service account: the administrator's, with another identity."""
    document = json.loads(tool.kubeconfig.read_text())
    document["users"][0]["user"] = {"token": tool("create", "token", "backup-operator", "--namespace", SPACE)}
    path = tmp_path / "operator.kubeconfig"
    path.write_text(json.dumps(document))
    return path


def pod_arguments(objects: list[dict[str, Any]]) -> list[str]:
    """Those of the operator in its pod; only its ports are others."""
    deployment = next(obj for obj in objects if obj["kind"] == "Deployment")
    arguments: list[str] = deployment["spec"]["template"]["spec"]["containers"][0]["args"]
    ports = ["--metrics-bind-address=0", "--health-probe-bind-address=0"]
    return [*(argument for argument in arguments if "bind-address" not in argument), *ports]


@contextmanager
def running(newcomer: Newcomer, objects: list[dict[str, Any]], kubeconfig: Path, log: Path) -> Iterator[None]:
    command = [str(newcomer.environment / "bin" / "backup"), *pod_arguments(objects), "--kubeconfig", str(kubeconfig)]
    with log.open("w") as out, subprocess.Popen(command, stderr=out, cwd=newcomer.project) as process:
        try:
            yield
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(120)
    assert process.returncode == 0, log.read_text()


def test_the_printed_rights_are_sufficient(
    newcomer: Newcomer, installed: list[dict[str, Any]], account: Path, tool: Tool, tmp_path: Path
) -> None:
    for right in each_right(installed):
        _answered(tool, *right, "yes")
    log = tmp_path / "operator.log"
    with running(newcomer, installed, account, log):
        tool("apply", "-f", str(newcomer.project / "src" / "backup" / "sample.yaml"))
        tool("wait", "--for=condition=Ready", "backup/first", "--timeout=120s")
        assert tool("get", "configmap", "first", "-o", "jsonpath={.data.text}") == "hello hello"
        tool("patch", "backup", "first", "--type=merge", "-p", '{"spec":{"times":1}}')
        tool("wait", "--for=jsonpath={.data.text}=hello", "configmap/first", "--timeout=120s")
        tool("delete", "configmap", "first")
        tool("wait", "--for=create", "configmap/first", "--timeout=120s")
        holder = tool("get", "lease", "backup-operator", "--namespace", SPACE, "-o", "jsonpath={.spec.holderIdentity}")
        assert holder
    assert "orbidden" not in log.read_text()
    done = newcomer.run("backup", "doctor", "-n", SPACE, "--kubeconfig", str(account), "-o", "json")
    assert {result["check"]: result["verdict"] for result in json.loads(done.stdout)}["backup permissions"] == "ok"


def each_right(objects: list[dict[str, Any]]) -> Iterator[tuple[dict[str, Any], str, str]]:
    """Every verb on every resource that the roles grant, with the role without it."""
    for role in objects:
        for place, rule in enumerate(role.get("rules", ())):
            for resource in rule["resources"]:
                for verb in rule["verbs"]:
                    others = [
                        {**rule, "resources": [name for name in rule["resources"] if name != resource]},
                        {**rule, "resources": [resource], "verbs": [name for name in rule["verbs"] if name != verb]},
                    ]
                    kept = [other for other in others if other["resources"] and other["verbs"]]
                    rules = [*role["rules"][:place], *kept, *role["rules"][place + 1 :]]
                    yield {**role, "rules": rules}, resource, verb


def test_each_printed_right_is_needed(
    newcomer: Newcomer, installed: list[dict[str, Any]], account: Path, tool: Tool
) -> None:
    """Without any of them the operator does not start, and names the one that is missing.

    But for one: without `watch` on Leases a standby asks every two seconds who leads.
    """
    every = list(each_right(installed))
    rights = [right for right in every if right[1:] != ("leases", "watch")]
    assert (len(every), len(rights)) == (17, 16)
    for role, resource, verb in rights:
        tool("replace", "-f", "-", stdin=json.dumps(role))
        whole = next(obj for obj in installed if (obj["kind"], obj["metadata"]) == (role["kind"], role["metadata"]))
        _answered(tool, role, resource, verb, "no")
        arguments = [*pod_arguments(installed), "--kubeconfig", str(account)]
        done = newcomer.run("backup", *arguments, check=False)
        assert done.returncode == 1, (resource, verb)
        assert "`backup rbac` prints roles that grant them" in done.stderr
        assert f"{verb} {resource}" in done.stderr.replace(".example.com", "").replace(".coordination.k8s.io", "")
        tool("replace", "-f", "-", stdin=json.dumps(whole))


def _answered(tool: Tool, role: dict[str, Any], resource: str, verb: str, expected: str) -> None:
    """The authorizer of the real server learns of a change a moment later: ask it about the operator until it has."""
    name, _, subresource = resource.partition("/")
    groups = {"backups": ".example.com", "leases": ".coordination.k8s.io"}
    asked = name + groups.get(name, "")
    command = ["auth", "can-i", verb, asked, f"--as=system:serviceaccount:{SPACE}:backup-operator"]
    command += [f"--subresource={subresource}"] if subresource else []
    command += ["--namespace", SPACE] if role["kind"] == "Role" else ["--all-namespaces"]
    for _ in range(100):
        if tool.run(*command).stdout.strip() == expected:
            return
    raise AssertionError(f"whether {verb} {resource} is allowed is never answered with {expected}")
