"""The real helm against the embedded server: a chart is installed, upgraded, rolled back and uninstalled."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.real.embedded import Tool, embedded_server

pytestmark = pytest.mark.spec("S-01")

CHART = {
    "Chart.yaml": "apiVersion: v2\nname: shop\nversion: 1.0.0\n",
    "values.yaml": "replicas: 2\nimage: nginx:1\ngreeting: hello\n",
    "crds/orders.yaml": """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: orders.shop.example.com}
spec:
  group: shop.example.com
  scope: Namespaced
  names: {plural: orders, singular: order, kind: Order}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
""",
    "templates/all.yaml": """
apiVersion: v1
kind: ConfigMap
metadata: {name: {{ .Release.Name }}-settings}
data: {greeting: {{ .Values.greeting | quote }}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: {{ .Release.Name }}, labels: {app: shop}}
spec:
  replicas: {{ .Values.replicas }}
  selector: {matchLabels: {app: shop}}
  template:
    metadata: {labels: {app: shop}}
    spec: {containers: [{name: web, image: {{ .Values.image }}}]}
---
apiVersion: v1
kind: Service
metadata: {name: {{ .Release.Name }}}
spec: {selector: {app: shop}, ports: [{port: 80}]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: {{ .Release.Name }}}
rules: [{apiGroups: [""], resources: [pods], verbs: [get]}]
{{- if .Capabilities.APIVersions.Has "shop.example.com/v1" }}
---
apiVersion: shop.example.com/v1
kind: Order
metadata: {name: {{ .Release.Name }}-first}
spec: {amount: 1}
{{- end }}
""",
}


@pytest.fixture(scope="module")
def cluster(helm_program: Path, kubectl: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Tool, Tool]]:
    """helm and kubectl."""
    folder = tmp_path_factory.mktemp("helm")
    for name, text in CHART.items():
        path = folder / "chart" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    with embedded_server(folder) as kubeconfig:
        yield Tool(helm_program, kubeconfig, folder), Tool(kubectl, kubeconfig, folder)


def test_helm_installs_upgrades_rolls_back_and_uninstalls_a_release(cluster: tuple[Tool, Tool]) -> None:
    helm, k = (replace(tool, namespace="store") for tool in cluster)
    chart = str(helm.home / "chart")
    assert "STATUS: deployed" in helm("install", "shop", chart, "--create-namespace")
    assert k.json("get", "deployment", "shop")["spec"]["replicas"] == 2
    assert k.json("get", "service", "shop")["spec"]["clusterIP"]
    assert k.json("get", "configmap", "shop-settings")["data"] == {"greeting": "hello"}
    assert k.json("get", "secrets")["items"][0]["type"] == "helm.sh/release.v1"

    assert "STATUS: deployed" in helm("upgrade", "shop", chart, "--set", "replicas=5,greeting=bye")
    assert k.json("get", "deployment", "shop")["spec"]["replicas"] == 5
    assert k.json("get", "order", "shop-first")["spec"] == {"amount": 1}, "the definition was there by then"
    assert helm("get", "values", "shop").endswith("greeting: bye\nreplicas: 5")

    assert "Rollback was a success" in helm("rollback", "shop", "1")
    assert k.json("get", "deployment", "shop")["spec"]["replicas"] == 2
    assert k.json("get", "configmap", "shop-settings")["data"] == {"greeting": "hello"}
    assert [line.split()[0] for line in helm("history", "shop").splitlines()[1:]] == ["1", "2", "3"]

    assert "uninstalled" in helm("uninstall", "shop")
    assert k("get", "deployments,services,roles,configmaps,secrets", "-o", "name") == ""
    assert helm("list", "--short") == ""


def test_a_dry_run_leaves_nothing(cluster: tuple[Tool, Tool]) -> None:
    helm, k = (replace(tool, namespace="default") for tool in cluster)
    output = helm("install", "dry", str(helm.home / "chart"), "--dry-run=server")
    assert "kind: Deployment" in output
    assert "dry" not in k("get", "deployments,secrets", "-o", "name")


def test_a_chart_with_a_wrong_field_is_refused(cluster: tuple[Tool, Tool]) -> None:
    helm, _ = (replace(tool, namespace="default") for tool in cluster)
    refused = helm.fails("install", "wrong", str(helm.home / "chart"), "--set", "replicas=many")
    assert "replicas" in refused
