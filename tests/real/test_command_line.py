"""What the command line prints and runs, on the real API server, by the real kubectl."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from konverge.operators.catalog import SUMMARIES
from tests.real.embedded import Tool
from tools.control_plane import ControlPlane

KONVERGE = [sys.executable, "-m", "konverge.cli.main"]
SPACE = "konverge-cli"
WEBAPP = """
apiVersion: apps.konverge.dev/v1
kind: WebApp
metadata: {name: web, namespace: default}
spec: {image: "nginx:1.27", replicas: 2, env: {MODE: test}}
"""


def konverge(*arguments: str) -> str:
    return subprocess.run([*KONVERGE, *arguments], capture_output=True, text=True, check=True).stdout


@pytest.fixture
def tool(real_server: ControlPlane, kubectl: Path, tmp_path: Path) -> Tool:
    return Tool(kubectl, real_server.kubeconfig, tmp_path)


@pytest.fixture
def installed(tool: Tool) -> Tool:
    """The operator's manifests, applied as a user would."""
    tool("apply", "-f", "-", stdin=konverge("manifests", "webapp", "--namespace", SPACE))
    tool.serves("webapps.apps.konverge.dev")
    return tool


def account(tool: Tool, folder: Path) -> Path:
    """A kubeconfig of the operator's service account: the administrator's, with another identity."""
    document = json.loads(tool.kubeconfig.read_text())
    document["users"][0]["user"] = {"token": tool("create", "token", "webapp-operator", "--namespace", SPACE)}
    path = folder / "operator.kubeconfig"
    path.write_text(json.dumps(document))
    return path


@contextmanager
def running(kubeconfig: Path, log: Path) -> Iterator[None]:
    """The operator with the arguments of its pod; only the ports are free ones."""
    manifests = json.loads(konverge("manifests", "webapp", "--namespace", SPACE, "--output", "json"))["items"]
    deployment = next(manifest for manifest in manifests if manifest["kind"] == "Deployment")
    arguments = deployment["spec"]["template"]["spec"]["containers"][0]["args"]
    arguments = [argument for argument in arguments if "bind-address" not in argument]
    arguments += ["--metrics-bind-address=0", "--health-probe-bind-address=0", "--kubeconfig", str(kubeconfig)]
    with log.open("w") as out, subprocess.Popen([*KONVERGE, *arguments], stderr=out) as process:
        try:
            yield
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait()
    assert process.returncode == 0, log.read_text()


@pytest.mark.parametrize("scope", [(), ("--watch-namespace", "default")], ids=["all", "one namespace"])
@pytest.mark.parametrize("names", [*([name] for name in SUMMARIES), [*SUMMARIES]], ids="+".join)
def test_the_manifests_are_accepted(tool: Tool, names: list[str], scope: tuple[str, ...]) -> None:
    text = konverge("manifests", *names, "--namespace", SPACE, *scope)
    tool("apply", "-f", "-", stdin=konverge("crd", *names))
    tool("wait", "--for=condition=Established", "crd", "--all", "--timeout=90s")  # it is written until then
    if tool.run("get", "namespace", SPACE).returncode != 0:
        tool("create", "namespace", SPACE)
    tool("apply", "--server-side", "--dry-run=server", "--validate=strict", "--force-conflicts", "-f", "-", stdin=text)
    assert "Warning" not in tool.run("apply", "--dry-run=server", "--validate=strict", "-f", "-", stdin=text).stdout
    tool("apply", "-f", "-", stdin=text)
    tool("diff", "-f", "-", stdin=text)  # fails where there is a difference to what was applied


@pytest.mark.spec("A-01", "A-10")
def test_the_operator_works_with_just_its_own_roles(installed: Tool, tmp_path: Path) -> None:
    tool, log = installed, tmp_path / "operator.log"
    with running(account(tool, tmp_path), log):
        tool("apply", "-f", "-", stdin=WEBAPP)
        tool("wait", "--for=jsonpath={.status.phase}=Creating", "webapp/web", "--timeout=90s")
        tool("wait", "--for=jsonpath={.status.observedGeneration}=1", "webapp/web", "--timeout=90s")
        assert tool("get", "deployment", "web", "-o", "jsonpath={.spec.replicas}") == "2"
        tool("scale", "webapp", "web", "--replicas=4")
        tool("wait", "--for=jsonpath={.status.observedGeneration}=2", "webapp/web", "--timeout=90s")
        assert tool("get", "deployment", "web", "-o", "jsonpath={.spec.replicas}") == "4"
        tool("set", "env", "deployment/web", "EXTRA=1")
        drift = "drift repaired: Deployment was changed: env"
        tool("wait", f"--for=jsonpath={{.status.message}}={drift}", "webapp/web", "--timeout=90s")
        tool("patch", "webapp", "web", "--type=merge", "-p", '{"spec":{"port":8080}}')
        tool("wait", "--for=jsonpath={.spec.ports[0].targetPort}=8080", "service/web", "--timeout=90s")
        for reason in ("DeploymentCreated", "ServiceSynced", "DriftRepaired"):  # events are written aside
            tool.until(bool, "get", "events", f"--field-selector=involvedObject.kind=WebApp,reason={reason}")
        tool("delete", "webapp", "web", "--timeout=90s")
        assert "NotFound" in tool.fails("get", "deployment", "web")
        assert "NotFound" in tool.fails("get", "service", "web")
    assert "orbidden" not in log.read_text()


@pytest.mark.spec("A-12")
@pytest.mark.parametrize(
    ("bad", "path"),
    [
        ('{"spec":{"replicas":-1}}', "spec.replicas"),
        ('{"spec":{"port":70000}}', "spec.port"),
        ('{"spec":{"port":0}}', "spec.port"),
        ('{"spec":{"image":""}}', "spec.image"),
        ('{"spec":{"env":{"A":1}}}', "spec.env.A"),
    ],
)
def test_bad_input_is_refused_with_its_path(installed: Tool, bad: str, path: str) -> None:
    installed("apply", "-f", "-", stdin=WEBAPP.replace("name: web", "name: strict"))
    assert path in installed.fails("patch", "webapp", "strict", "--type=merge", "-p", bad)


def test_the_doctor_reports_what_is_well_and_a_missing_permission(installed: Tool, tmp_path: Path) -> None:
    command = [*KONVERGE, "doctor", "--operator", "webapp", "--namespace", SPACE, "--output", "json", "--kubeconfig"]
    done = subprocess.run([*command, str(installed.kubeconfig)], capture_output=True, text=True)
    verdicts = {result["check"]: result["verdict"] for result in json.loads(done.stdout)}
    assert verdicts.pop("process pods") in ("ok", "warn"), "that depends on the kernel"
    assert verdicts == dict.fromkeys(
        [
            "python",
            "uvloop",
            "configuration",
            "server",
            "clock",
            "webapp definitions",
            "webapp permissions",
            "webapp lease",
        ],
        "ok",
    ), done.stdout
    assert done.returncode == 0
    stranger = account(installed, tmp_path)
    done = subprocess.run([*command, str(stranger), "--namespace", "default"], capture_output=True, text=True)
    results = {result["check"]: result for result in json.loads(done.stdout)}
    assert done.returncode == 1
    assert results["webapp permissions"]["verdict"] == "fail"
    assert "leases.coordination.k8s.io in namespace default" in results["webapp permissions"]["text"]


@pytest.mark.spec("A-01", "A-08")
def test_the_commands_that_konverge_up_suggests_work(kubectl: Path, tmp_path: Path) -> None:
    """The commands that it suggests, as a newcomer would type them."""
    command = [*KONVERGE, "up", "--operators", "webapp", "--output", "json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            places = json.loads(process.stdout.readline())
            tool = Tool(kubectl, Path(places["kubeconfig"]), tmp_path)
            tool("wait", "--for=jsonpath={.status.phase}=Running", "webapp/hello", "--timeout=90s")
            assert tool("get", "webapps").split()[:5] == ["NAME", "PHASE", "READY", "WANTED", "IMAGE"]
            tool("scale", "webapp", "hello", "--replicas=5")
            tool("wait", "--for=jsonpath={.status.readyReplicas}=5", "webapp/hello", "--timeout=90s")
            tool("delete", "deployment", "hello")
            tool.until(lambda printed: "DriftRepaired" in printed, "describe", "webapp", "hello")
            tool("wait", "--for=jsonpath={.status.readyReplicas}=5", "webapp/hello", "--timeout=90s")
            tool("delete", "webapp", "hello")
        finally:
            process.send_signal(signal.SIGINT)
            process.wait()
    assert process.returncode == 0
