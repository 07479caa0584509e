"""The real kubectl on the embedded server: the usual commands."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from konverge.apiserver.kubernetes_version import MINOR_VERSION
from tests.real.embedded import Tool, embedded_server

pytestmark = pytest.mark.spec("S-02")

DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {app: web}}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - {name: nginx, image: "nginx:1", ports: [{containerPort: 80}]}
"""
POD = """
apiVersion: v1
kind: Pod
metadata: {name: one}
spec:
  containers: [{name: c, image: busybox}]
"""
DEFINITION = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: cogs.machines.example.com}
spec:
  group: machines.example.com
  scope: Namespaced
  names: {plural: cogs, singular: cog, kind: Cog, shortNames: [cg], categories: [all]}
  versions:
  - name: v1
    served: true
    storage: true
    additionalPrinterColumns: [{name: Teeth, type: integer, jsonPath: .spec.teeth}]
    schema:
      openAPIV3Schema:
        type: object
        description: A cog of a machine.
        properties:
          spec:
            type: object
            required: [teeth]
            properties:
              teeth: {type: integer, description: How many teeth it has.}
"""
COG = """
apiVersion: machines.example.com/v1
kind: Cog
metadata: {name: small}
spec: {teeth: 8}
"""


@pytest.fixture(scope="module")
def cluster(kubectl: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tool]:
    folder = tmp_path_factory.mktemp("kubectl")
    with embedded_server(folder) as kubeconfig:
        yield Tool(kubectl, kubeconfig, folder)


@pytest.fixture
def k(cluster: Tool, request: pytest.FixtureRequest) -> Tool:
    """kubectl in a namespace of the test's own."""
    name = request.node.name.removeprefix("test_").replace("_", "-")[:60].strip("-")
    cluster("create", "namespace", name)
    made = replace(cluster, namespace=name)
    if made.run("get", "serviceaccount", "default").returncode:
        made("create", "serviceaccount", "default")
    return made


def test_apply_reports_created_unchanged_and_configured(k: Tool) -> None:
    assert k("apply", "-f", "-", stdin=DEPLOYMENT) == "deployment.apps/web created"
    assert k("apply", "-f", "-", stdin=DEPLOYMENT) == "deployment.apps/web unchanged"
    changed = DEPLOYMENT.replace("replicas: 2", "replicas: 5")
    assert "replicas: 5" in k.run("diff", "-f", "-", stdin=changed).stdout
    assert k("apply", "-f", "-", stdin=changed) == "deployment.apps/web configured"
    assert k.json("get", "deployment", "web")["spec"]["replicas"] == 5


def test_apply_refuses_fields_that_do_not_exist(k: Tool) -> None:
    wrong = DEPLOYMENT.replace("replicas: 2", "replicaz: 2")
    assert 'unknown field "spec.replicaz"' in k.fails("apply", "-f", "-", stdin=wrong)
    assert 'unknown field "spec.replicaz"' in k.fails("create", "--validate=strict", "-f", "-", stdin=wrong)
    assert "created" in k("create", "--validate=ignore", "-f", "-", stdin=wrong)


@pytest.mark.spec("S-07")
def test_server_side_apply_reports_conflicts(k: Tool) -> None:
    assert k("apply", "--server-side", "-f", "-", stdin=DEPLOYMENT) == "deployment.apps/web serverside-applied"
    other = ("apply", "--server-side", "--field-manager=other", "-f", "-")
    changed = DEPLOYMENT.replace("replicas: 2", "replicas: 3")
    assert 'conflict with "kubectl"' in k.fails(*other, stdin=changed)
    k(*other, "--force-conflicts", stdin=changed)
    assert k.json("get", "deployment", "web")["spec"]["replicas"] == 3


def test_create_commands_send_protobuf(k: Tool) -> None:
    """These commands send protobuf."""
    assert k("create", "deployment", "made", "--image=nginx", "--replicas=3") == "deployment.apps/made created"
    assert k("create", "configmap", "settings", "--from-literal=a=b") == "configmap/settings created"
    assert k("create", "secret", "generic", "keys", "--from-literal=a=b") == "secret/keys created"
    assert k("create", "role", "reader", "--verb=get,list", "--resource=pods").endswith("created")
    assert k("create", "rolebinding", "readers", "--role=reader", "--user=jane").endswith("created")
    assert k("create", "serviceaccount", "bot") == "serviceaccount/bot created"
    assert k("create", "token", "bot").count(".") == 2
    assert k("create", "job", "once", "--image=busybox").endswith("created")
    assert k("create", "cronjob", "often", "--image=busybox", "--schedule=* * * * *").endswith("created")
    assert k("create", "quota", "limits", "--hard=pods=3").endswith("created")
    assert k("create", "service", "clusterip", "front", "--tcp=80:8080").endswith("created")
    assert k("create", "ingress", "in", "--rule=a.example.com/=front:80").endswith("created")
    assert k("create", "poddisruptionbudget", "pdb", "--selector=a=b", "--min-available=1").endswith("created")
    assert k.json("get", "deployment", "made")["spec"]["replicas"] == 3
    assert k.json("get", "secret", "keys")["data"] == {"a": "Yg=="}
    assert "already exists" in k.fails("create", "configmap", "settings")


@pytest.mark.spec("S-12")
def test_auth_commands_answer_by_the_roles(k: Tool) -> None:
    k("create", "role", "reader", "--verb=get", "--resource=pods")
    k("create", "rolebinding", "readers", "--role=reader", "--user=jane")
    assert k("auth", "can-i", "delete", "nodes") == "yes"
    assert k("auth", "can-i", "get", "pods", "--as=jane") == "yes"
    assert k.run("auth", "can-i", "delete", "pods", "--as=jane").stdout.strip() == "no"
    assert "system:masters" in k("auth", "whoami")
    assert 'User "jane" cannot list resource "secrets"' in k.fails("get", "secrets", "--as=jane")


@pytest.mark.spec("S-11")
def test_get_prints_every_output_format(k: Tool) -> None:
    k("apply", "-f", "-", stdin=DEPLOYMENT)
    header, row = k("get", "deployments", "-o", "wide").splitlines()
    assert header.split() == ["NAME", "READY", "UP-TO-DATE", "AVAILABLE", "AGE", "CONTAINERS", "IMAGES", "SELECTOR"]
    assert [row.split()[i] for i in (0, 1, 2, 3, 5, 6, 7)] == ["web", "0/2", "0", "0", "nginx", "nginx:1", "app=web"]
    assert k("get", "deploy", "-o", "name") == "deployment.apps/web"
    assert k("get", "deploy", "web", "-o", "jsonpath={.spec.replicas}") == "2"
    assert k("get", "deploy", "-o", "custom-columns=N:.metadata.name", "--no-headers") == "web"
    assert k("get", "all").splitlines()[1].startswith("deployment.apps/web")
    assert k("get", "deploy", "-l", "app=web", "--show-labels").splitlines()[1].endswith("app=web")
    assert k("get", "deploy", "--field-selector=metadata.name=web", "-o", "name") == "deployment.apps/web"
    assert k("get", "deploy", "-o", "yaml").startswith("apiVersion: v1\nitems:\n- apiVersion: apps/v1\n")
    assert k.run("get", "deploy", "-l", "app=none").stderr.startswith("No resources found")


@pytest.mark.spec("S-11")
def test_get_shows_the_state_of_a_pod(k: Tool) -> None:
    k("apply", "-f", "-", stdin=POD)
    assert k("get", "pod", "one").splitlines()[1].split()[:4] == ["one", "0/1", "Pending", "0"]
    crashed = {"name": "c", "image": "busybox", "imageID": "", "ready": False, "restartCount": 4}
    crashed["state"] = {"waiting": {"reason": "CrashLoopBackOff"}}
    status = {"status": {"phase": "Running", "containerStatuses": [crashed]}}
    k("patch", "pod", "one", "--subresource=status", "--type=merge", "-p", json.dumps(status))
    assert k("get", "pod", "one").splitlines()[1].split()[:4] == ["one", "0/1", "CrashLoopBackOff", "4"]


def test_describe_shows_workloads_and_pods(k: Tool) -> None:
    k("apply", "-f", "-", stdin=DEPLOYMENT)
    text = k("describe", "deployment", "web")
    assert "Replicas:               2 desired | 0 updated | 0 total | 0 available | 0 unavailable" in text
    assert "RollingUpdateStrategy:  25% max unavailable, 25% max surge" in text
    k("apply", "-f", "-", stdin=POD)
    assert "Image:" in k("describe", "pod", "one")
    assert "No resource quota." in k("describe", "namespace", k.namespace)


def test_scale_set_and_rollout_change_a_deployment(k: Tool) -> None:
    k("apply", "-f", "-", stdin=DEPLOYMENT)
    assert k("scale", "deployment", "web", "--replicas=4") == "deployment.apps/web scaled"
    assert "expected replicas" in k.fails("scale", "deployment", "web", "--current-replicas=9", "--replicas=1").lower()
    assert k("set", "image", "deployment/web", "nginx=nginx:2") == "deployment.apps/web image updated"
    assert k("set", "env", "deployment/web", "A=b") == "deployment.apps/web env updated"
    assert k("rollout", "restart", "deployment/web") == "deployment.apps/web restarted"
    assert k("rollout", "pause", "deployment/web") == "deployment.apps/web paused"
    assert "No rollout history found" in k("rollout", "history", "deployment/web")
    spec = k.json("get", "deployment", "web")["spec"]
    container = spec["template"]["spec"]["containers"][0]
    assert (spec["replicas"], spec["paused"], container["image"]) == (4, True, "nginx:2")
    assert container["env"] == [{"name": "A", "value": "b"}]
    assert "kubectl.kubernetes.io/restartedAt" in spec["template"]["metadata"]["annotations"]


def test_label_annotate_and_patch_change_an_object(k: Tool) -> None:
    k("apply", "-f", "-", stdin=DEPLOYMENT)
    assert k("label", "deployment", "web", "tier=front") == "deployment.apps/web labeled"
    assert "already has a value" in k.fails("label", "deployment", "web", "tier=back")
    assert k("label", "deployment", "web", "tier-") == "deployment.apps/web unlabeled"
    assert k("annotate", "deployment", "web", "note=x") == "deployment.apps/web annotated"
    strategic = '{"spec":{"template":{"spec":{"containers":[{"name":"side","image":"s"}]}}}}'
    k("patch", "deployment", "web", "-p", strategic)
    k("patch", "deployment", "web", "--type=merge", "-p", '{"spec":{"replicas":7}}')
    k("patch", "deployment", "web", "--type=json", "-p", '[{"op":"add","path":"/metadata/labels/j","value":"1"}]')
    web = k.json("get", "deployment", "web")
    assert [container["name"] for container in web["spec"]["template"]["spec"]["containers"]] == ["side", "nginx"]
    assert web["spec"]["replicas"] == 7
    assert web["metadata"]["labels"] == {"app": "web", "j": "1"}


@pytest.mark.spec("S-06")
def test_wait_sees_conditions_and_deletions(k: Tool) -> None:
    k("apply", "-f", "-", stdin=DEPLOYMENT)
    condition = {"type": "Available", "status": "True", "reason": "r", "message": "m"}
    done = {"status": {"conditions": [condition], "replicas": 2, "availableReplicas": 2, "readyReplicas": 2}}
    k("patch", "deployment", "web", "--subresource=status", "--type=merge", "-p", json.dumps(done))
    assert k("wait", "deployment/web", "--for=condition=Available", "--timeout=90s").endswith("condition met")
    assert k("wait", "deployment/web", "--for=jsonpath={.spec.replicas}=2", "--timeout=90s").endswith("condition met")
    assert k("delete", "deployment", "web").startswith('deployment.apps "web" deleted')
    assert k("wait", "deployment/web", "--for=delete", "--timeout=90s") == ""
    assert 'deployments.apps "web" not found' in k.fails("delete", "deployment", "web")


def test_explain_shows_the_fields_of_a_kind(k: Tool) -> None:
    text = k("explain", "deployment.spec")
    assert text.startswith("GROUP:      apps\nKIND:       Deployment\nVERSION:    v1\n\nFIELD: spec <DeploymentSpec>")
    assert "Number of desired pods." in text
    assert "FIELD: limits <map[string]Quantity>" in k("explain", "pods.spec.containers.resources.limits")
    assert 'field "nothing" does not exist' in k.fails("explain", "pod.nothing")


@pytest.mark.spec("S-08")
def test_custom_resources_work_like_built_in_kinds(k: Tool) -> None:
    k("apply", "-f", "-", stdin=DEFINITION)
    k("wait", "crd/cogs.machines.example.com", "--for=condition=Established", "--timeout=90s")
    assert "cg" in k("api-resources", "--api-group=machines.example.com")
    assert k("apply", "-f", "-", stdin=COG) == "cog.machines.example.com/small created"
    header, row = k("get", "cg").splitlines()
    assert (header.split(), row.split()) == (["NAME", "TEETH"], ["small", "8"])
    assert "small" in k("get", "all")
    assert "A cog of a machine." in k("explain", "cogs")
    assert "How many teeth it has." in k("explain", "cogs.spec.teeth")
    assert 'unknown field "spec.tooth"' in k.fails("apply", "-f", "-", stdin=COG.replace("teeth: 8", "tooth: 1"))
    k("delete", "crd", "cogs.machines.example.com")
    assert "could not find the requested resource" in k.fails("get", "cogs")


def test_a_kind_without_definition_is_refused(k: Tool) -> None:
    """kubectl looks for the kind in OpenAPI v3, then in v2 as protobuf, and then reports the error."""
    unknown = COG.replace("machines.example.com", "unknown.example.com")
    assert 'no matches for kind "Cog" in version "unknown.example.com/v1"' in k.fails("apply", "-f", "-", stdin=unknown)


def test_discovery_commands_list_what_is_served(k: Tool) -> None:
    assert "deployments" in k("api-resources", "--api-group=apps", "-o", "name")
    assert "namespaces" in k("api-resources", "--namespaced=false", "-o", "name").splitlines()
    assert "apps/v1" in k("api-versions").splitlines()
    assert "is running at" in k("cluster-info")
    assert f"Server Version: v{MINOR_VERSION}" in k("version")
    assert k("get", "--raw", "/readyz") == "ok"


def test_events_are_listed(k: Tool) -> None:
    event = """
    apiVersion: v1
    kind: Event
    metadata: {name: e1}
    involvedObject: {kind: Pod, name: one, namespace: NAMESPACE}
    reason: Started
    message: it runs
    type: Normal
    count: 2
    lastTimestamp: "2020-01-01T00:00:00Z"
    """.replace("NAMESPACE", k.namespace)
    k("create", "-f", "-", stdin=event)
    assert k("get", "events").splitlines()[1].split()[1:] == ["Normal", "Started", "pod/one", "it", "runs"]
    assert "it runs" in k("events")


def test_errors_are_those_of_the_real_server(k: Tool) -> None:
    assert k.fails("get", "pods", "none") == 'Error from server (NotFound): pods "none" not found'
    assert "the server doesn't have a resource type" in k.fails("get", "nonsense")
    assert 'namespaces "none" not found' in replace(k, namespace="none").fails("create", "configmap", "c")
    invalid = POD.replace("name: one", "name: One")
    assert "a lowercase RFC 1123 subdomain must consist of" in k.fails("apply", "-f", "-", stdin=invalid)
