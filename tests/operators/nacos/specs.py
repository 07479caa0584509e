"""Specs that the schema accepts and refuses; asked of the embedded server and of the real one."""

from __future__ import annotations

from typing import Any

from tests.operators.nacos.test_children import CASES
from tests.operators.nacos.world import CLUSTER, STANDALONE

MYSQL = {
    "type": "mysql",
    "mysqlHost": "mysql.nacos",
    "mysqlDb": "nacos",
    "mysqlUser": "******",
    "mysqlPort": "3306",
    "mysqlPassword": "******",
}
RESOURCES = {"limits": {"cpu": "1", "memory": "4Gi"}, "requests": {"cpu": "500m", "memory": "2Gi"}}
GOOD: dict[str, dict[str, Any]] = {
    "the document's standalone": STANDALONE,
    "the document's cluster": {**CLUSTER, "database": MYSQL, "resources": RESOURCES},
    "amounts at their limits": {
        **CLUSTER,
        "resources": {"requests": {"cpu": 1, "memory": "1024Mi"}, "limits": {"cpu": "1000m", "memory": "1Gi"}},
        "volume": {"enabled": True, "requests": {"storage": 1}},
        "livenessProbe": {"httpGet": {"path": "/", "port": 8848}, "initialDelaySeconds": 0},
        "service": {"type": "NodePort", "nodePorts": {"client": 30848, "rpc": 30849}},
    },
    "tls for clients": {**CLUSTER, "tls": {"secretRef": {"name": "tls"}, "plaintext": "Refused"}},
    "tls of databases": {
        **CLUSTER,
        "database": {**MYSQL, "tls": {"mode": "verify-ca", "caSecretRef": {"name": "ca"}}},
        "postgres": {"tls": {"caSecretRef": {"name": "ca", "key": "root.pem"}}},
    },
    "small on purpose": {**CLUSTER, "replicas": 1, "allowSmallClusters": True},
    "nothing but defaults": {},
    "scaled without restarts": {**CLUSTER, "scaleWithoutRestarts": True, "podSecurity": "Baseline"},
    "the fork's": {
        "type": "cluster",
        "image": "nacos-server:v2.4.3-pg",
        "replicas": 3,
        "postgres": {"host": "pg", "port": "5432", "database": "nacos", "credentialsSecretRef": {"name": "pg"}},
        "pgInit": {"enabled": True, "timeoutSeconds": 20, "schemaVersion": 1, "policy": "IfNotPresent"},
        "adminCredentialsSecretRef": {"name": "admin", "passwordHashKey": "passwordHash"},
        "identitySecretRef": {"name": "identity", "keyKey": "identity_key", "valueKey": "identity_value"},
        "userConfigRef": {"name": "user", "key": "user.properties"},
        "internalConfigRef": {"name": "internal"},
        "finalConfigName": "final",
        "volume": {
            "volumeClaimTemplate": {"metadata": {"name": "db"}, "spec": {"accessModes": ["ReadWriteOnce"]}},
            "persistentVolumeSize": "1Gi",
            "keepAfterDeletion": True,
        },
        "certification": {
            "enabled": True,
            "token": "t",
            "token_expire_seconds": "18000",
            "cache_enabled": True,
        },
        "function_mode": "naming",
        "livenessProbe": {"httpGet": {"path": "/", "port": 8848}},
        "k8sWrapper": {"PodSpec": {"anything": {"goes": ["here"]}}},
    },
    **CASES,
}

BAD: list[tuple[dict[str, Any], str, str]] = [
    (
        {**CLUSTER, "scaleWithoutRestarts": True, "podSecurity": "Restricted"},
        "spec.scaleWithoutRestarts",
        "cannot write their list of members",
    ),
    (
        {**CLUSTER, "networkPolicy": {"egress": {"enabled": True}}},
        "spec.networkPolicy.egress.enabled",
        "there is no NetworkPolicy without networkPolicy.enabled: true",
    ),
    ({"type": "other"}, "spec.type", "supported values"),
    ({"type": "cluster", "replicas": 2}, "spec.replicas", "a cluster needs at least 3 replicas"),
    ({"type": "standalone", "replicas": 3}, "spec.replicas", "a standalone has 1 replica"),
    ({"type": "cluster", "allowSmallClusters": True, "replicas": 0}, "spec.replicas", "greater than or equal to 1"),
    ({"database": {"type": "oracle"}}, "spec.database.type", "supported values"),
    ({"database": {"type": "mysql"}}, "spec.database.mysqlHost", "needs the server's host"),
    (
        {"database": {"type": "mysql", "mysqlHost": "h", "mysqlUser": "u"}},
        "spec.database.mysqlCredentialsSecretRef",
        "mysqlUser and mysqlPassword",
    ),
    ({"database": {"mysqlPort": "x"}}, "spec.database.mysqlPort", "should match"),
    ({"database": {"mysqlPort": "65536"}}, "spec.database.mysqlPort", "a port is a number from 1 to 65535"),
    ({"postgres": {"port": "0"}}, "spec.postgres.port", "a port is a number from 1 to 65535"),
    ({"tls": {"secretRef": {"name": "t"}, "plaintext": "No"}}, "spec.tls.plaintext", "supported values"),
    ({"tls": {"secretRef": {"name": ""}}}, "spec.tls.secretRef.name", "at least 1 chars"),
    ({"database": {"tls": {"mode": "sometimes"}}}, "spec.database.tls.mode", "supported values"),
    ({"database": {"tls": {"caSecretRef": {}}}}, "spec.database.tls.caSecretRef.name", "name the Secret"),
    ({"image": "nacos server"}, "spec.image", "should match"),
    ({"service": {"nodePorts": {"client": 30848}}}, "spec.service.nodePorts", "choose type NodePort"),
    ({"postgres": {"host": "h", "credentialsSecretRef": {"name": "s"}}}, "spec.postgres.database", "name the database"),
    ({"postgres": {"host": "h", "database": "d"}}, "spec.postgres.credentialsSecretRef.name", "name the Secret"),
    ({"database": {"type": "postgresql"}}, "spec.postgres.host", "needs the server's host"),
    ({"pgInit": {"policy": "Sometimes"}}, "spec.pgInit.policy", "supported values"),
    ({"pgInit": {"timeoutSeconds": 0}}, "spec.pgInit.timeoutSeconds", "greater than or equal to 1"),
    ({"volume": {"enabled": True}}, "spec.volume.requests", "needs requests.storage"),
    ({"volume": {"requests": {"storage": "much"}}}, "spec.volume.requests.storage", "should match"),
    ({"volume": {"requests": {"storage": "0"}}}, "spec.volume.requests", "a size above 0"),
    ({"volume": {"requests": {"storage": 0}}}, "spec.volume.requests", "a size above 0"),
    ({"volume": {"requests": {"storage": "-1"}}}, "spec.volume.requests", "a size above 0"),
    ({"volume": {"requests": {"storage": "-10Gi"}}}, "spec.volume.requests", "a size above 0"),
    ({"volume": {"persistentVolumeSize": "0Gi"}}, "spec.volume.persistentVolumeSize", "a size above 0"),
    (
        {"volume": {"volumeClaimTemplate": {"spec": {"resources": {"requests": {"storage": "-1Gi"}}}}}},
        "spec.volume.volumeClaimTemplate.spec.resources.requests",
        "a size above 0",
    ),
    ({"volume": {"enabled": True, "volumeClaimTemplate": {"spec": {}}}}, "spec.volume.requests", "requests.storage"),
    ({"volume": {"emptyDir": {"sizeLimit": "-1"}}}, "spec.volume.emptyDir.sizeLimit", "a size above 0"),
    ({"resources": {"requests": {"cpu": 2}, "limits": {"cpu": "1500m"}}}, "spec.resources.requests", "above its limit"),
    (
        {"resources": {"requests": {"memory": "1025Mi"}, "limits": {"memory": "1Gi"}}},
        "spec.resources.requests",
        "above its limit",
    ),
    ({"resources": {"requests": {"cpu": "-1"}}}, "spec.resources.requests", "cannot be negative"),
    ({"resources": {"limits": {"memory": "-1"}}}, "spec.resources.limits", "cannot be negative"),
    ({"livenessProbe": {"periodSeconds": -1}}, "spec.livenessProbe", "cannot be negative"),
    ({"readinessProbe": {"failureThreshold": -1}}, "spec.readinessProbe", "cannot be negative"),
    ({"startupProbe": {"timeoutSeconds": -1}}, "spec.startupProbe", "cannot be negative"),
    ({"certification": {"token_expire_seconds": "0"}}, "spec.certification.token_expire_seconds", "should match"),
    ({"pgInit": {"schemaVersion": 2**31}}, "spec.pgInit.schemaVersion", "less than or equal to"),
    (
        {"service": {"type": "NodePort", "nodePorts": {"client": 30848, "new-rpc": 30848}}},
        "spec.service.nodePorts",
        "to one port only",
    ),
    ({"image": ""}, "spec.image", "at least 1 chars"),
    ({"function_mode": "none"}, "spec.function_mode", "supported values"),
    ({"service": {"type": "ExternalName"}}, "spec.service.type", "supported values"),
    ({"ingress": {"enabled": True, "path": "nacos"}}, "spec.ingress.path", "should match"),
    ({"metrics": {"serviceMonitor": {"interval": "often"}}}, "spec.metrics.serviceMonitor.interval", "should match"),
]
