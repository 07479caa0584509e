"""`kubectl wait` and `helm install --wait` on a Nacos: over when it runs, failed when only the user can go on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.real.embedded import Tool, konverge_process

pytestmark = [
    pytest.mark.spec("N-17"),
    pytest.mark.limit(600),
    pytest.mark.blocking("waits for the commands that do the work"),
]

CHART = {
    "Chart.yaml": "apiVersion: v2\nname: one-nacos\nversion: 1.0.0\n",
    "values.yaml": "type: cluster\nimage: nacos/nacos-server:v2.4.3\nadmin: ''\n",
    "templates/nacos.yaml": """
apiVersion: nacos.io/v1alpha1
kind: Nacos
metadata: {name: {{ .Release.Name }}}
spec:
  type: {{ .Values.type }}
  image: {{ .Values.image }}
  {{- with .Values.admin }}
  certification: {enabled: true, token: {{ . }}}
  {{- end }}
""",
}


@pytest.fixture(scope="module")
def tools(helm_program: Path, kubectl: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Tool, Tool]]:
    """helm and kubectl, and a simulated cluster with the operator."""
    folder = tmp_path_factory.mktemp("status")
    for name, text in CHART.items():
        path = folder / "chart" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    kubeconfig = folder / "kubeconfig"
    arguments = ("up", "--operators", "nacos", "--no-samples", "--kubeconfig", str(kubeconfig))
    with konverge_process(*arguments) as line:
        assert line, "the cluster did not start"
        yield Tool(helm_program, kubeconfig, folder, "default"), Tool(kubectl, kubeconfig, folder, "default")


def phase(k: Tool, name: str) -> str:
    return str(k("get", "nacos", name, "-o", "jsonpath={.status.phase}"))


def test_kubectl_waits_until_it_runs_and_again_after_a_change(tools: tuple[Tool, Tool]) -> None:
    helm, k = tools
    assert "STATUS: deployed" in helm("install", "waited", str(helm.home / "chart"))
    assert "condition met" in k("wait", "--for=condition=Ready", "nacos/waited", "--timeout=150s")
    assert phase(k, "waited") == "Running"
    k("scale", "nacos", "waited", "--replicas=5")
    assert "condition met" in k("wait", "--for=condition=Ready", "nacos/waited", "--timeout=150s")
    assert k("get", "nacos", "waited", "-o", "jsonpath={.status.readyReplicas}") == "5"
    assert k("wait", "--for=condition=Stalled=false", "nacos/waited", "--timeout=60s")


def test_helm_waits_until_it_runs(tools: tuple[Tool, Tool]) -> None:
    helm, k = tools
    assert "STATUS: deployed" in helm("install", "helmed", str(helm.home / "chart"), "--wait", "--timeout", "150s")
    assert phase(k, "helmed") == "Running"
    upgrade = ("upgrade", "helmed", str(helm.home / "chart"), "--set", "image=nacos/nacos-server:v2.5.0")
    assert "STATUS: deployed" in helm(*upgrade, "--wait", "--timeout", "150s")
    assert k("get", "nacos", "helmed", "-o", "jsonpath={.status.version}") == "2.5.0"


def test_helm_fails_when_only_the_user_can_go_on(tools: tuple[Tool, Tool]) -> None:
    """A token of too few bytes: only the operator knows that, not the schema."""
    helm, k = tools
    failure = helm.fails("install", "short", str(helm.home / "chart"), "--set", "admin=abc", "--wait", "--timeout=150s")
    assert "Failed" in failure, failure
    assert "certification.token" in k("get", "nacos", "short", "-o", "jsonpath={.status.conditions}")
