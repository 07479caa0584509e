"""The real kube-controller-manager on the embedded server: its controllers find everything where they look for it.

There is no scheduler and no kubelet: the tests write the statuses that these would write.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from konverge.client import Client, Forbidden, MergePatch, load_config
from konverge.objects.resource import Resource
from tests.real.clients import programs
from tests.real.clients.controllers import controller_manager
from tests.real.clients.waiting import Objects, until
from tests.real.embedded import embedded_server

pytestmark = pytest.mark.spec("S-01")

Obj = dict[str, Any]

CONFIG_MAPS = Resource("", "v1", "ConfigMap", "configmaps")
NAMESPACES = Resource("", "v1", "Namespace", "namespaces", False)
PODS = Resource("", "v1", "Pod", "pods")
CLAIMS = Resource("", "v1", "PersistentVolumeClaim", "persistentvolumeclaims")
QUOTAS = Resource("", "v1", "ResourceQuota", "resourcequotas")
ACCOUNTS = Resource("", "v1", "ServiceAccount", "serviceaccounts")
DEPLOYMENTS = Resource("apps", "v1", "Deployment", "deployments")
REPLICA_SETS = Resource("apps", "v1", "ReplicaSet", "replicasets")
DAEMON_SETS = Resource("apps", "v1", "DaemonSet", "daemonsets")
JOBS = Resource("batch", "v1", "Job", "jobs")
CRON_JOBS = Resource("batch", "v1", "CronJob", "cronjobs")
SLICES = Resource("discovery.k8s.io", "v1", "EndpointSlice", "endpointslices")
BUDGETS = Resource("policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets")
ROLES = Resource("rbac.authorization.k8s.io", "v1", "ClusterRole", "clusterroles", False)
LEASES = Resource("coordination.k8s.io", "v1", "Lease", "leases")
COGS = Resource("kcm.konverge.dev", "v1", "Cog", "cogs")

CONTAINERS = [{"name": "c", "image": "nginx", "resources": {"requests": {"cpu": "100m"}}}]
LABELS = {"app": "web"}
_numbers = count()


@pytest.fixture(scope="module")
def kubeconfig(binaries: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    program = programs.require(binaries, "kube-controller-manager")
    folder = tmp_path_factory.mktemp("kcm")
    with embedded_server(folder) as path, controller_manager(program, path, folder):
        yield path


@pytest.fixture
async def client(kubeconfig: Path) -> AsyncIterator[Client]:
    async with Client.connect(load_config(kubeconfig=kubeconfig)) as client:
        yield client


@pytest.fixture
async def space(client: Client) -> AsyncIterator[str]:
    """A namespace with its default service account: from then on pods can be made."""
    name = f"space-{next(_numbers)}"
    await make(client, NAMESPACES, name)
    await until(client, ACCOUNTS, name, lambda accounts: "default" in accounts)
    yield name  # noqa: PT022 - async fixtures are generators here


async def make(client: Client, resource: Resource, name: str, namespace: str = "", **rest: Any) -> Obj:
    metadata = {"name": name, **rest.pop("metadata", {})}
    obj = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata, **rest}
    return await client.create(obj, namespace, resource=resource)


def template(**spec: Any) -> Obj:
    return {"metadata": {"labels": LABELS}, "spec": {"containers": CONTAINERS, **spec}}


def workload(replicas: int) -> Obj:
    return {"replicas": replicas, "selector": {"matchLabels": LABELS}, "template": template()}


def condition(obj: Obj, type_: str) -> str:
    conditions = obj.get("status", {}).get("conditions") or []
    return next((condition["status"] for condition in conditions if condition["type"] == type_), "")


async def run_pod(client: Client, namespace: str, name: str, phase: str = "Running") -> None:
    """Write the status that a kubelet would write."""
    ready = "True" if phase == "Running" else "False"
    status = {
        "phase": phase,
        "podIP": "10.1.0.7",
        "podIPs": [{"ip": "10.1.0.7"}],
        "conditions": [{"type": "Ready", "status": ready, "lastTransitionTime": "2026-01-01T00:00:00Z"}],
    }
    await client.patch(PODS, name, MergePatch({"status": status}), namespace, subresource="status")


def owned_by(objects: Objects, owner: Obj) -> list[str]:
    uid = owner["metadata"]["uid"]
    return sorted(
        name
        for name, obj in objects.items()
        if any(reference["uid"] == uid for reference in obj["metadata"].get("ownerReferences") or [])
    )


# ------------------------------------------------------------------ namespaces


async def test_the_controller_manager_elects_itself(client: Client) -> None:
    leases = await until(client, LEASES, "kube-system", lambda leases: "kube-controller-manager" in leases)
    assert leases["kube-controller-manager"]["spec"]["holderIdentity"]


async def test_a_namespace_gets_its_account_and_the_authority(client: Client, space: str) -> None:
    maps = await until(client, CONFIG_MAPS, space, lambda maps: "kube-root-ca.crt" in maps)
    assert maps["kube-root-ca.crt"]["data"]["ca.crt"].startswith("-----BEGIN CERTIFICATE-----")


async def test_a_deleted_namespace_is_emptied_and_removed(client: Client, space: str) -> None:
    await _define_cogs(client)
    await make(client, DEPLOYMENTS, "web", space, spec=workload(2))
    await make(client, COGS, "a", space)
    await make(client, COGS, "held", space, metadata={"finalizers": ["kcm.konverge.dev/held"]})
    await until(client, PODS, space, lambda pods: len(pods) == 2)
    await client.delete(NAMESPACES, space)
    left = await until(
        client, NAMESPACES, "", lambda spaces: condition(spaces[space], "NamespaceFinalizersRemaining") == "True"
    )
    assert left[space]["status"]["phase"] == "Terminating"
    with pytest.raises(Forbidden, match="because it is being terminated"):
        await make(client, CONFIG_MAPS, "late", space)
    await client.patch(COGS, "held", MergePatch({"metadata": {"finalizers": None}}), space)
    await until(client, NAMESPACES, "", lambda spaces: space not in spaces)


async def _define_cogs(client: Client) -> None:
    definitions = Resource("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", False)
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    version = {"name": "v1", "served": True, "storage": True, "schema": schema}
    names = {"kind": "Cog", "plural": "cogs"}
    spec = {"group": COGS.group, "scope": "Namespaced", "names": names, "versions": [version]}
    await make(client, definitions, f"cogs.{COGS.group}", spec=spec)
    await until(client, definitions, "", lambda crds: condition(crds[f"cogs.{COGS.group}"], "Established") == "True")


# ------------------------------------------------------------------ workloads


async def test_a_deployment_rolls_out_and_scales(client: Client, space: str) -> None:
    web = await make(client, DEPLOYMENTS, "web", space, spec=workload(2))
    pods = await until(client, PODS, space, lambda pods: len(pods) == 2)
    sets = await client.list(REPLICA_SETS, space)
    assert owned_by({obj["metadata"]["name"]: obj for obj in sets.items}, web)
    for name in pods:
        await run_pod(client, space, name)
    done = await until(client, DEPLOYMENTS, space, lambda objects: condition(objects["web"], "Available") == "True")
    assert done["web"]["status"]["readyReplicas"] == 2
    await client.patch(DEPLOYMENTS, "web", MergePatch({"spec": {"replicas": 3}}), space, subresource="scale")
    await until(client, PODS, space, lambda pods: len(pods) == 3)
    image = {"spec": {"template": {"spec": {"containers": [{**CONTAINERS[0], "image": "nginx:2"}]}}}}
    await client.patch(DEPLOYMENTS, "web", MergePatch(image), space)
    await until(client, REPLICA_SETS, space, lambda sets: len(sets) == 2)
    await client.delete(DEPLOYMENTS, "web", space, propagation="Foreground")
    await until(client, DEPLOYMENTS, space, lambda deployments: "web" not in deployments)
    await until(client, PODS, space, lambda pods: not pods)  # one that the collector had not seen yet goes later


async def test_a_stateful_set_creates_its_pods_in_order(client: Client, space: str) -> None:
    sets = Resource("apps", "v1", "StatefulSet", "statefulsets")
    claim = {
        "metadata": {"name": "data"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }
    await make(client, sets, "db", space, spec={**workload(2), "serviceName": "db", "volumeClaimTemplates": [claim]})
    pods = await until(client, PODS, space, lambda pods: "db-0" in pods)
    assert list(pods) == ["db-0"]
    assert pods["db-0"]["metadata"]["labels"]["apps.kubernetes.io/pod-index"] == "0"
    await run_pod(client, space, "db-0")
    await until(client, PODS, space, lambda pods: "db-1" in pods)
    assert sorted(claim["metadata"]["name"] for claim in (await client.list(CLAIMS, space)).items) == [
        "data-db-0",
        "data-db-1",
    ]


async def test_a_daemon_set_has_a_pod_for_each_node(client: Client, space: str) -> None:
    nodes = Resource("", "v1", "Node", "nodes", False)
    await make(client, nodes, "node-of-daemon")
    spec = {"selector": {"matchLabels": LABELS}, "template": template()}
    await make(client, DAEMON_SETS, "agent", space, spec=spec)
    pods = await until(client, PODS, space, lambda pods: pods)
    assert "node-of-daemon" in str(next(iter(pods.values()))["spec"]["affinity"])


async def test_a_job_completes(client: Client, space: str) -> None:
    await make(client, JOBS, "once", space, spec={"template": template(restartPolicy="Never")})
    pods = await until(client, PODS, space, lambda pods: pods)
    (name,) = pods
    assert pods[name]["metadata"]["finalizers"] == ["batch.kubernetes.io/job-tracking"]
    await run_pod(client, space, name, phase="Succeeded")
    jobs = await until(client, JOBS, space, lambda jobs: condition(jobs["once"], "Complete") == "True")
    assert jobs["once"]["status"]["succeeded"] == 1


async def test_a_cron_job_makes_the_job_that_is_due(client: Client, space: str) -> None:
    job = {"spec": {"template": template(restartPolicy="Never")}}
    cron = await make(client, CRON_JOBS, "tick", space, spec={"schedule": "0 0 1 1 *", "jobTemplate": job})
    # As if it had run long ago: the run of last new year is due.
    past = MergePatch({"status": {"lastScheduleTime": "2020-06-01T00:00:00Z"}})
    await client.patch(CRON_JOBS, "tick", past, space, subresource="status")
    jobs = await until(client, JOBS, space, lambda jobs: jobs)
    assert owned_by(jobs, cron) == sorted(jobs)


# ------------------------------------------------------------------ what follows from pods


async def test_slices_and_budgets_count_ready_pods(client: Client, space: str) -> None:
    services = Resource("", "v1", "Service", "services")
    nodes = Resource("", "v1", "Node", "nodes", False)
    await make(client, services, "web", space, spec={"selector": LABELS, "ports": [{"port": 80}]})
    await make(client, BUDGETS, "web", space, spec={"minAvailable": 1, "selector": {"matchLabels": LABELS}})
    await make(client, nodes, f"node-{space}")
    spec = {"containers": CONTAINERS, "nodeName": f"node-{space}"}
    await make(client, PODS, "p", space, metadata={"labels": LABELS}, spec=spec)
    await run_pod(client, space, "p")
    slices = await until(client, SLICES, space, lambda slices: any(map(_addresses, slices.values())))
    (slice_,) = slices.values()
    assert _addresses(slice_) == ["10.1.0.7"]
    assert slice_["metadata"]["labels"]["kubernetes.io/service-name"] == "web"
    await until(client, BUDGETS, space, lambda budgets: budgets["web"].get("status", {}).get("currentHealthy") == 1)


def _addresses(slice_: Obj) -> list[str]:
    return [address for endpoint in slice_.get("endpoints") or [] for address in endpoint["addresses"]]


async def test_a_quota_is_counted_and_enforced(client: Client, space: str) -> None:
    await make(client, QUOTAS, "q", space, spec={"hard": {"pods": "2", "requests.cpu": "1"}})
    await until(client, QUOTAS, space, lambda quotas: quotas["q"].get("status", {}).get("used", {}).get("pods") == "0")
    for name in ("a", "b"):
        await make(client, PODS, name, space, spec={"containers": CONTAINERS})
    with pytest.raises(Forbidden, match="exceeded quota: q, requested: pods=1, used: pods=2, limited: pods=2"):
        await make(client, PODS, "c", space, spec={"containers": CONTAINERS})
    quota = await client.get(QUOTAS, "q", space)
    assert quota["status"]["used"] == {"pods": "2", "requests.cpu": "200m"}
    await client.delete(PODS, "a", space)
    await until(client, QUOTAS, space, lambda quotas: quotas["q"]["status"]["used"]["pods"] == "1")


@pytest.mark.parametrize("propagation", ["Background", "Foreground", "Orphan"])
async def test_the_garbage_collector_deletes_or_orphans_children(client: Client, space: str, propagation: Any) -> None:
    owner = await make(client, CONFIG_MAPS, "owner", space)
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["metadata"]["uid"]}
    await make(
        client, CONFIG_MAPS, "child", space, metadata={"ownerReferences": [{**reference, "blockOwnerDeletion": True}]}
    )
    await client.delete(CONFIG_MAPS, "owner", space, propagation=propagation)
    if propagation == "Orphan":
        left = await until(client, CONFIG_MAPS, space, lambda maps: "owner" not in maps)
        assert "ownerReferences" not in left["child"]["metadata"]
    else:
        await until(client, CONFIG_MAPS, space, lambda maps: not {"owner", "child"} & maps.keys())


async def test_roles_are_aggregated(client: Client) -> None:
    labels = {"rbac.authorization.k8s.io/aggregate-to-view": "true"}
    rule = {"apiGroups": [COGS.group], "resources": ["cogs"], "verbs": ["get"]}
    await make(client, ROLES, "cogs-view", metadata={"labels": labels}, rules=[rule])
    await until(client, ROLES, "", lambda roles: rule in (roles["view"]["rules"] or []))
