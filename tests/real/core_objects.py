"""One rich, valid object of each core kind: what the comparison with the real server takes apart."""

from __future__ import annotations

from typing import Any

Obj = dict[str, Any]

_SELECTOR = {"matchLabels": {"a": "b"}, "matchExpressions": [{"key": "k", "operator": "In", "values": ["v"]}]}
_TERM = {"labelSelector": _SELECTOR, "topologyKey": "zone", "namespaces": ["n"]}
_CLAIM = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}

POD: Obj = {
    "metadata": {"name": "p", "labels": {"app": "x"}},
    "spec": {
        "serviceAccountName": "default",
        "volumes": [
            {"name": "v1", "configMap": {"name": "c", "items": [{"key": "k", "path": "p", "mode": 256}]}},
            {"name": "v2", "hostPath": {"path": "/x", "type": "Directory"}},
            {"name": "v3", "projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}},
            {"name": "v4", "persistentVolumeClaim": {"claimName": "c"}},
            {"name": "v5", "ephemeral": {"volumeClaimTemplate": {"spec": _CLAIM}}},
            {"name": "v6", "nfs": {"server": "s", "path": "/p"}},
        ],
        "initContainers": [
            {"name": "i", "image": "i:1", "restartPolicy": "Always", "startupProbe": {"exec": {"command": ["a"]}}}
        ],
        "containers": [
            {
                "name": "main",
                "image": "app:1",
                "ports": [{"name": "http", "containerPort": 80, "hostPort": 8080, "protocol": "TCP"}],
                "env": [
                    {"name": "A", "value": "b"},
                    {"name": "F", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
                    {"name": "S", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}},
                ],
                "envFrom": [{"prefix": "P_", "configMapRef": {"name": "c"}}],
                "resources": {"limits": {"cpu": "1", "example.com/gpu": "2"}, "requests": {"cpu": "500m"}},
                "volumeMounts": [{"name": "v1", "mountPath": "/a", "subPath": "s"}],
                "volumeDevices": [{"name": "v4", "devicePath": "/dev/x"}],
                "livenessProbe": {"httpGet": {"path": "/h", "port": 80}, "terminationGracePeriodSeconds": 5},
                "readinessProbe": {"tcpSocket": {"port": "http"}},
                "lifecycle": {"preStop": {"sleep": {"seconds": 3}}},
                "securityContext": {"runAsUser": 1, "seccompProfile": {"type": "Localhost", "localhostProfile": "p"}},
            }
        ],
        "dnsPolicy": "None",
        "dnsConfig": {"nameservers": ["1.1.1.1"], "searches": ["a.b"], "options": [{"name": "n"}]},
        "nodeSelector": {"a": "b"},
        "securityContext": {
            "fsGroup": 2,
            "sysctls": [{"name": "net.a", "value": "1"}],
            "fsGroupChangePolicy": "Always",
        },
        "affinity": {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [{"matchExpressions": [{"key": "k", "operator": "Gt", "values": ["1"]}]}]
                }
            },
            "podAntiAffinity": {
                "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "podAffinityTerm": _TERM}]
            },
        },
        "tolerations": [{"key": "k", "operator": "Equal", "value": "v", "effect": "NoExecute", "tolerationSeconds": 5}],
        "hostAliases": [{"ip": "1.2.3.4", "hostnames": ["h.x"]}],
        "topologySpreadConstraints": [
            {"maxSkew": 1, "topologyKey": "z", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": _SELECTOR}
        ],
    },
}

SERVICE: Obj = {
    "metadata": {"name": "s"},
    "spec": {
        "type": "LoadBalancer",
        "ports": [
            {"name": "a", "port": 80, "targetPort": "http", "nodePort": 30123, "appProtocol": "x.y/z"},
            {"name": "b", "port": 81, "targetPort": 8081},
        ],
        "selector": {"a": "b"},
        "sessionAffinity": "ClientIP",
        "sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 5}},
        "externalIPs": ["1.2.3.4"],
        "loadBalancerSourceRanges": ["10.0.0.0/8"],
        "loadBalancerClass": "x.y/z",
        "externalTrafficPolicy": "Local",
        "healthCheckNodePort": 30200,
        "ipFamilies": ["IPv4"],
        "ipFamilyPolicy": "SingleStack",
        "trafficDistribution": "PreferSameZone",
    },
}

NODE: Obj = {
    "metadata": {"name": "n"},
    "spec": {
        "podCIDR": "10.1.0.0/24",
        "podCIDRs": ["10.1.0.0/24", "fd00::/64"],
        "taints": [{"key": "k", "value": "v", "effect": "NoSchedule"}],
    },
    "status": {"capacity": {"cpu": "1", "example.com/g": "1"}, "declaredFeatures": ["A", "B/c"]},
}

LIMIT_RANGE: Obj = {
    "metadata": {"name": "l"},
    "spec": {
        "limits": [
            {
                "type": "Container",
                "max": {"cpu": "4"},
                "min": {"cpu": "1"},
                "default": {"cpu": "3"},
                "defaultRequest": {"cpu": "2"},
                "maxLimitRequestRatio": {"cpu": "2"},
            },
            {"type": "PersistentVolumeClaim", "max": {"storage": "1Gi"}},
        ]
    },
}

QUOTA: Obj = {
    "metadata": {"name": "q"},
    "spec": {
        "hard": {"pods": "4", "requests.cpu": "2", "limits.cpu": "1", "count/a.b": "3"},
        "scopeSelector": {"matchExpressions": [{"scopeName": "PriorityClass", "operator": "In", "values": ["x"]}]},
    },
}

CLAIM: Obj = {
    "metadata": {"name": "c"},
    "spec": {
        **_CLAIM,
        "selector": _SELECTOR,
        "storageClassName": "sc",
        "volumeMode": "Block",
        "dataSource": {"kind": "PersistentVolumeClaim", "name": "x"},
    },
}

VOLUME: Obj = {
    "metadata": {"name": "pv"},
    "spec": {
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteOnce"],
        "persistentVolumeReclaimPolicy": "Delete",
        "csi": {"driver": "d.x", "volumeHandle": "h", "controllerPublishSecretRef": {"name": "n", "namespace": "n"}},
        "nodeAffinity": {
            "required": {"nodeSelectorTerms": [{"matchExpressions": [{"key": "k", "operator": "Exists"}]}]}
        },
    },
}

SECRET: Obj = {
    "metadata": {"name": "s"},
    "type": "kubernetes.io/dockerconfigjson",
    "data": {".dockerconfigjson": "e30="},
}

CONTROLLER: Obj = {
    "metadata": {"name": "rc"},
    "spec": {
        "replicas": 2,
        "minReadySeconds": 3,
        "selector": {"a": "b"},
        "template": {
            "metadata": {"labels": {"a": "b"}},
            "spec": {"containers": [{"name": "c", "image": "i:1"}], "restartPolicy": "Always"},
        },
    },
}

OBJECTS: dict[str, Obj] = {
    "pods": POD,
    "services": SERVICE,
    "nodes": NODE,
    "limitranges": LIMIT_RANGE,
    "resourcequotas": QUOTA,
    "persistentvolumeclaims": CLAIM,
    "persistentvolumes": VOLUME,
    "secrets": SECRET,
    "replicationcontrollers": CONTROLLER,
}
CLUSTER_WIDE = ("nodes", "persistentvolumes")
