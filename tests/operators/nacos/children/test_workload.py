"""The StatefulSet and its pods: volumes, claims, probes, overlays, budgets."""

from __future__ import annotations

from typing import Any

import pytest

from konverge.objects import Quantity, to_dict
from konverge.objects.kinds.core_v1 import PersistentVolumeClaim, VolumeResourceRequirements
from konverge.operators.nacos.children.mysql_job import mysql_init_job
from konverge.operators.nacos.children.overlay import merge
from konverge.operators.nacos.children.pod_template import pod_template
from konverge.operators.nacos.children.stateful_set import disruption_budget, stateful_set, storage_of, wants_budget
from tests.operators.nacos.test_children import desired_of
from tests.operators.nacos.world import CLUSTER, EMBEDDED, MYSQL, POSTGRES, STANDALONE

pytestmark = pytest.mark.spec("N-07", "N-08", "N-17")
SIZED: dict[str, Any] = {"enabled": True, "requests": {"storage": "10Gi"}}


def pod(spec: dict[str, Any]) -> dict[str, Any]:
    made: dict[str, Any] = to_dict(pod_template(desired_of(spec), "", ""))["spec"]
    return made


def volumes(spec: dict[str, Any]) -> dict[str, Any]:
    return {volume.pop("name"): volume for volume in pod(spec).get("volumes", [])}


def mounts(spec: dict[str, Any]) -> dict[str, tuple[str, str]]:
    listed = pod(spec)["containers"][0].get("volumeMounts", [])
    return {mount["name"]: (mount["mountPath"], mount.get("subPath", "")) for mount in listed}


DATA = {"db": ("/home/nacos/data", "")}


@pytest.mark.parametrize(
    ("volume", "expected", "claims"),
    [
        ({}, {}, False),
        (SIZED, {}, True),
        ({"persistentVolumeSize": "1Gi"}, {}, True),
        ({"volumeClaimTemplate": {"spec": {"resources": {"requests": {"storage": "1Gi"}}}}}, {}, True),
        ({**SIZED, "emptyDir": {"medium": "Memory"}}, {"emptyDir": {"medium": "Memory"}}, False),
        ({**SIZED, "hostPath": {"path": "/a"}, "emptyDir": {}}, {"hostPath": {"path": "/a"}}, False),
    ],
)
def test_where_the_data_is(volume: dict[str, Any], expected: dict[str, Any], claims: bool) -> None:
    spec = {**EMBEDDED, "volume": volume}
    assert volumes(spec) == ({"db": expected} if expected else {})
    assert mounts(spec) == (DATA if volume else {})
    made = stateful_set(desired_of(spec)).spec
    assert [claim.metadata.name for claim in made.volume_claim_templates] == (["db"] if claims else [])
    assert (made.persistent_volume_claim_retention_policy is not None) == claims


@pytest.mark.parametrize(
    ("volume", "deleted"),
    [
        ({}, "Retain"),
        ({"deletionPolicy": "Delete"}, "Delete"),
        ({"deletionPolicy": "Delete", "keepAfterDeletion": True}, "Retain"),
        ({"deletionPolicy": "Retain"}, "Retain"),
    ],
)
def test_what_becomes_of_the_claims(volume: dict[str, Any], deleted: str) -> None:
    policy = stateful_set(desired_of({**EMBEDDED, "volume": {**SIZED, **volume}})).spec
    kept = policy.persistent_volume_claim_retention_policy
    assert kept is not None
    assert (kept.when_deleted, kept.when_scaled) == (deleted, "Retain")


def claim(volume: dict[str, Any]) -> dict[str, Any]:
    made: dict[str, Any] = to_dict(stateful_set(desired_of({**EMBEDDED, "volume": volume})))
    return dict(made["spec"]["volumeClaimTemplates"][0])


def test_the_template_of_the_claims() -> None:
    plain = claim(SIZED)
    assert plain["spec"] == {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "10Gi"}}}
    given: dict[str, Any] = {
        "metadata": {"name": "theirs", "labels": {"a": "b"}, "annotations": {"c": "d"}},
        "spec": {
            "accessModes": ["ReadWriteOncePod"],
            "storageClassName": "slow",
            "resources": {"requests": {"storage": "1Gi", "other": "1"}},
            "volumeMode": "Filesystem",
            "selector": {"matchLabels": {"e": "f"}},
            "dataSource": {"kind": "PersistentVolumeClaim", "name": "seed"},
        },
    }
    made = claim({"volumeClaimTemplate": given})
    assert made["metadata"] == {"name": "db", "labels": {"a": "b"}, "annotations": {"c": "d"}}
    assert made["spec"] == given["spec"]
    made = claim({"volumeClaimTemplate": given, "storageClass": "fast", "requests": {"storage": "2Gi"}})
    assert made["spec"]["storageClassName"] == "fast"
    assert made["spec"]["resources"]["requests"] == {"storage": "2Gi", "other": "1"}
    made = claim({"volumeClaimTemplate": given, "persistentVolumeSize": "3Gi", "requests": {"storage": "2Gi"}})
    assert made["spec"]["resources"]["requests"]["storage"] == "3Gi"


def test_the_size_of_a_claim() -> None:
    made = PersistentVolumeClaim()
    assert storage_of(made) == Quantity(0)
    made.spec.resources = VolumeResourceRequirements()
    assert storage_of(made) == Quantity(0)
    made.spec.resources = VolumeResourceRequirements(requests={"storage": Quantity("1Gi")})
    assert storage_of(made) == Quantity("1Gi")


CA = {"tls": {"mode": "verify-ca", "caSecretRef": {"name": "ca"}}}


@pytest.mark.parametrize(
    ("spec", "names"),
    [
        ({**EMBEDDED, "config": "a=1"}, ["final-config"]),
        ({**EMBEDDED, "image": "n:v2.0.4", "config": "a=1"}, ["config"]),
        ({**EMBEDDED, "image": "n:v2.0.4"}, []),
        (POSTGRES, ["final-config"]),
        ({**POSTGRES, "postgres": {**POSTGRES["postgres"], **CA}}, ["final-config", "postgres-ca"]),
        ({**EMBEDDED, "postgres": CA}, []),
    ],
)
def test_what_is_mounted_is_there(spec: dict[str, Any], names: list[str]) -> None:
    assert list(volumes(spec)) == list(mounts(spec)) == names


def test_where_files_are_mounted() -> None:
    assert mounts({**EMBEDDED, "config": "a=1"}) == {
        "final-config": ("/home/nacos/conf/application.properties", "application.properties")
    }
    assert volumes({**EMBEDDED, "config": "a=1"}) == {"final-config": {"configMap": {"name": "nacos-final-config"}}}
    old = {**EMBEDDED, "image": "n:v2.0.4", "config": "a=1"}
    assert mounts(old) == {"config": ("/home/nacos/init.d/custom.properties", "custom.properties")}
    assert volumes(old) == {"config": {"configMap": {"name": "nacos"}}}
    postgres = {**POSTGRES, "postgres": {**POSTGRES["postgres"], **CA}}
    assert volumes(postgres)["postgres-ca"] == {"secret": {"secretName": "ca"}}
    (mount,) = [entry for entry in pod(postgres)["containers"][0]["volumeMounts"] if entry["name"] == "postgres-ca"]
    assert mount == {"name": "postgres-ca", "mountPath": "/home/nacos/postgres-ca", "readOnly": True}


# ------------------------------------------------------------------ containers


def probe(path: str, port: int, period: int, failures: int) -> dict[str, Any]:
    return {
        "httpGet": {"path": path, "port": port, "scheme": "HTTP"},
        "periodSeconds": period,
        "timeoutSeconds": 4,
        "failureThreshold": failures,
    }


@pytest.mark.parametrize(
    ("image", "port", "live", "ready"),
    [
        ("n:v2.4.3", 8848, "/nacos/v1/console/health/liveness", "/nacos/v1/console/health/readiness"),
        ("n:v3.0.0", 8080, "/v3/console/health/liveness", "/v3/console/health/readiness"),
        ("n:latest", 8848, "/nacos/actuator/health", "/nacos/actuator/health"),
    ],
)
def test_the_probes_fit_the_version(image: str, port: int, live: str, ready: str) -> None:
    container = pod({"image": image})["containers"][0]
    assert container["livenessProbe"] == probe(live, port, 10, 6)
    assert container["readinessProbe"] == probe(ready, port, 5, 3)
    assert container["startupProbe"] == probe(live, port, 5, 60)


def test_the_users_probes() -> None:
    mine = {"httpGet": {"path": "/", "port": 1}}
    names = ("livenessProbe", "readinessProbe", "startupProbe")
    container = pod(dict.fromkeys(names, mine))["containers"][0]
    assert [container[name] for name in names] == [mine, mine, mine]
    container = pod({"livenessProbe": mine})["containers"][0]
    assert container["livenessProbe"] == mine
    assert "startupProbe" not in container, "it would ask for another path than the user's"
    assert container["readinessProbe"] != mine


@pytest.mark.parametrize(
    ("image", "ports"),
    [
        ("n:v2.4.3", ["client", "rpc", "new-rpc", "cluster-rpc"]),
        ("n:v3.0.0", ["client", "rpc", "new-rpc", "cluster-rpc", "console"]),
        ("n:latest", ["client", "rpc", "new-rpc", "cluster-rpc", "console"]),
    ],
)
def test_the_ports_of_the_container(image: str, ports: list[str]) -> None:
    listed = pod({"image": image})["containers"][0]["ports"]
    assert [port["name"] for port in listed] == ports
    assert {port["protocol"] for port in listed} == {"TCP"}
    numbers = {"client": 8848, "rpc": 7848, "new-rpc": 9848, "cluster-rpc": 9849, "console": 8080}
    assert all(port["containerPort"] == numbers[port["name"]] for port in listed)


def test_what_the_user_says_about_pods() -> None:
    spec: dict[str, Any] = {
        **EMBEDDED,
        "imagePullSecrets": [{"name": "pull"}],
        "tolerations": [{"key": "k", "operator": "Exists"}],
        "nodeSelector": {"disk": "ssd"},
        "podSecurityContext": {"fsGroup": 1},
        "securityContext": {"runAsUser": 7},
        "resources": {"requests": {"cpu": "1"}},
        "affinity": {"nodeAffinity": {}},
    }
    made = pod(spec)
    assert made["imagePullSecrets"] == [{"name": "pull"}]
    assert made["tolerations"] == spec["tolerations"]
    assert made["nodeSelector"] == {"disk": "ssd"}
    assert made["securityContext"] == {"fsGroup": 1}
    assert made["affinity"] == {"nodeAffinity": {}}
    container = made["containers"][0]
    assert container["securityContext"] == {"runAsUser": 7}
    assert container["resources"] == {"requests": {"cpu": "1"}}
    assert (container["name"], container["image"]) == ("nacos", EMBEDDED["image"])


def test_what_pods_have_by_default() -> None:
    made = pod(EMBEDDED)
    assert made["automountServiceAccountToken"] is False
    assert made["enableServiceLinks"] is False
    context = {"allowPrivilegeEscalation": False, "seccompProfile": {"type": "RuntimeDefault"}}
    assert made["containers"][0]["securityContext"] == context
    (term,) = made["affinity"]["podAntiAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"]
    assert term["weight"] == 100
    assert term["podAffinityTerm"]["topologyKey"] == "kubernetes.io/hostname"
    labels = {"app": "nacos", "middleware": "nacos", "component": "nacos"}
    assert term["podAffinityTerm"]["labelSelector"] == {"matchLabels": labels}
    assert "affinity" not in pod(STANDALONE)
    assert "initContainers" not in made


def test_digests_are_annotations_where_there_are_any() -> None:
    desired = desired_of(EMBEDDED)
    assert pod_template(desired, "", "").metadata.annotations == {}
    assert pod_template(desired, "a", "").metadata.annotations == {"nacos.io/config-digest": "a"}
    assert pod_template(desired, "", "b").metadata.annotations == {"nacos.io/secrets-digest": "b"}
    labels = pod_template(desired, "", "").metadata.labels
    assert labels == {"team": "a", "app": "nacos", "middleware": "nacos", "component": "nacos"}


# ------------------------------------------------------------------ the set


def test_the_stateful_set() -> None:
    made = to_dict(stateful_set(desired_of(EMBEDDED), "a", "b"))["spec"]
    assert made["replicas"] == 3
    assert made["serviceName"] == "nacos-headless"
    assert made["podManagementPolicy"] == "Parallel"
    assert made["updateStrategy"] == {"type": "OnDelete"}
    assert set(made["template"]["metadata"]["annotations"].values()) == {"a", "b"}
    assert "serviceName" not in to_dict(stateful_set(desired_of(STANDALONE)))["spec"]


@pytest.mark.parametrize(
    ("spec", "most"),
    [
        ({"replicas": 3}, 1),
        ({"replicas": 5}, 1),
        ({"replicas": 5, "podDisruptionBudget": {"maxUnavailable": 2}}, 2),
        ({"replicas": 5, "podDisruptionBudget": {"maxUnavailable": 4}}, 2),
        ({"replicas": 4, "podDisruptionBudget": {"maxUnavailable": 4}}, 1),
        ({"replicas": 3, "podDisruptionBudget": {"enabled": False}}, None),
        ({"replicas": 2, "allowSmallClusters": True}, None),
        ({"type": "standalone", "replicas": 1}, None),
    ],
)
def test_a_drain_never_costs_the_quorum(spec: dict[str, Any], most: int | None) -> None:
    desired = desired_of({**EMBEDDED, **spec})
    assert wants_budget(desired) == (most is not None)
    if most is not None:
        budget = disruption_budget(desired)
        assert budget.metadata.name == "nacos"
        assert budget.spec.max_unavailable == most
        assert budget.spec.selector is not None
        assert budget.spec.selector.match_labels == {"app": "nacos", "middleware": "nacos", "component": "nacos"}


def test_a_budget_of_a_small_cluster_still_lets_one_go() -> None:
    desired = desired_of({**EMBEDDED, "replicas": 1, "allowSmallClusters": True})
    assert disruption_budget(desired).spec.max_unavailable == 1


# ------------------------------------------------------------------ the Job


JOB: dict[str, Any] = {**MYSQL, "mysqlInitImage": "mysql:8"}


def job(**spec: Any) -> dict[str, Any]:
    made: dict[str, Any] = to_dict(mysql_init_job(desired_of({**JOB, **spec}), "abc"))
    return made


def test_the_job_creates_database_and_tables() -> None:
    made = job(imagePullSecrets=[{"name": "pull"}], nodeSelector={"a": "b"}, tolerations=[{"key": "k"}])
    assert made["metadata"]["annotations"]["nacos.io/script-digest"] == "abc"
    assert made["metadata"]["name"] == "nacos-mysql-sql-init"
    assert made["spec"]["backoffLimit"] == 6
    template = made["spec"]["template"]
    labels = {"app": "nacos-mysql-sql-init", "middleware": "nacos", "component": "mysql-init"}
    assert template["metadata"]["labels"] == labels, "no Service selects it"
    spec = template["spec"]
    assert (spec["restartPolicy"], spec["automountServiceAccountToken"]) == ("Never", False)
    assert spec["imagePullSecrets"] == [{"name": "pull"}]
    assert (spec["nodeSelector"], spec["tolerations"]) == ({"a": "b"}, [{"key": "k"}])
    containers = [*spec["initContainers"], *spec["containers"]]
    names = ["mysql-ping-database", "mysql-create-database", "mysql-sql-init"]
    assert [container["name"] for container in containers] == names
    for container, word in zip(containers, ("mysqladmin $at ping", "CREATE DATABASE", "$SQL_SCRIPT"), strict=True):
        assert container["image"] == "mysql:8"
        assert container["command"][:2] == ["/bin/sh", "-c"]
        assert word in container["command"][2]
        assert "word" not in container["command"][2]
        env = {entry["name"]: entry.get("value") for entry in container["env"]}
        assert env.pop("SQL_SCRIPT", None) is None
        assert env == {
            "MYSQL_HOST": "my",
            "MYSQL_PORT": "3306",
            "MYSQL_DB": "nacos",
            "MYSQL_USER": "nacos",
            "MYSQL_PASS": "word",
        }
    script = containers[2]["env"][-1]
    assert script["valueFrom"]["configMapKeyRef"] == {"name": "nacos-mysql-sql-init", "key": "SQL_SCRIPT"}
    assert [len(container["env"]) for container in containers] == [5, 5, 6]


def test_only_what_is_about_pods_is_overlaid_on_the_job() -> None:
    overlay: dict[str, Any] = {
        "priorityClassName": "high",
        "restartPolicy": "Always",
        "containers": [{"name": "side", "image": "s"}],
        "initContainers": [{"name": "side", "image": "s"}],
        "volumes": [{"name": "v", "emptyDir": {}}],
    }
    made = job(k8sWrapper={"PodSpec": overlay})["spec"]["template"]["spec"]
    plain = job()["spec"]["template"]["spec"]
    assert made == {**plain, "priorityClassName": "high"}


def test_servers_wait_for_their_tables() -> None:
    (waiting,) = pod(JOB)["initContainers"]
    assert (waiting["name"], waiting["image"]) == ("mysql-check-database", "mysql:8")
    assert "SELECT 1 FROM users" in waiting["command"][2]
    assert "initContainers" not in pod(CLUSTER)


# ------------------------------------------------------------------ overlays


@pytest.mark.parametrize(
    ("base", "overlay", "expected"),
    [
        ({"a": 1}, None, {"a": 1}),
        ({"a": {"b": 1, "c": 2}}, {"a": {"b": 3}}, {"a": {"b": 3, "c": 2}}),
        ({"a": [1]}, {"a": [2]}, {"a": [2]}),
        ({"a": 1}, {"b": None}, {"a": 1, "b": None}),
        ({"a": 1}, {"a": None}, {"a": 1}),
        ({}, {"containers": [{"name": "a"}]}, {"containers": [{"name": "a"}]}),
        ({"containers": [{"name": "a"}]}, {"containers": "none"}, {"containers": "none"}),
        (
            {"volumes": [{"name": "a", "x": 1}]},
            {"volumes": [{"name": "a", "y": 2}]},
            {"volumes": [{"name": "a", "x": 1, "y": 2}]},
        ),
        ({"env": [{"name": "a"}]}, {"env": [{"value": 1}, "x"]}, {"env": [{"name": "a"}, {"value": 1}, "x"]}),
        ({"env": [{"value": 0}, "y"]}, {"env": [{"value": 1}]}, {"env": [{"value": 0}, "y", {"value": 1}]}),
        (
            {"initContainers": [{"name": "a"}, {"name": "b"}]},
            {"initContainers": [{"name": "b", "i": 1}]},
            {"initContainers": [{"name": "a"}, {"name": "b", "i": 1}]},
        ),
        (
            {"ports": [{"containerPort": 1}]},
            {"ports": [{"containerPort": 1, "name": "n"}]},
            {"ports": [{"containerPort": 1, "name": "n"}]},
        ),
        (
            {"volumeMounts": [{"mountPath": "/a", "name": "x"}]},
            {"volumeMounts": [{"mountPath": "/a", "name": "y"}, {"mountPath": "/b"}]},
            {"volumeMounts": [{"mountPath": "/a", "name": "y"}, {"mountPath": "/b"}]},
        ),
        (
            {"hostAliases": [{"ip": "1"}]},
            {"hostAliases": [{"ip": "1", "hostnames": []}]},
            {"hostAliases": [{"ip": "1", "hostnames": []}]},
        ),
        (
            {"imagePullSecrets": [{"name": "a"}]},
            {"imagePullSecrets": [{"name": "a"}]},
            {"imagePullSecrets": [{"name": "a"}]},
        ),
    ],
)
def test_how_overlays_merge(base: Any, overlay: Any, expected: Any) -> None:
    assert merge(base, overlay) == expected
