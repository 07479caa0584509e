"""The pages of the operators that come with Konverge; they are examples of `konverge.console.Page` as well.

The kinds come from the operators' own classes, and a test compares every path with their schemas.
"""

from __future__ import annotations

from konverge.console.pages import Action, Card, Column, Form, Input, Page, Version
from konverge.operators.nacos.resource import Nacos
from konverge.operators.webapp.kind import WebApp
from konverge.operators.wukong.resource import Wukong
from konverge.service.options import Catalogue

_REPLICAS = Input("replicas", "Replicas", "number", path="spec.replicas", required=True)

WEBAPP = Page.of(
    WebApp,
    title="Web applications",
    columns=[
        Column("Phase", "status.phase", "health"),
        Column("Ready", "status.readyReplicas", "number"),
        Column("Wanted", "spec.replicas", "number"),
        Column("Image", "spec.image"),
        Column("Message", "status.message"),
    ],
    cards=[
        Card("Message", "status.message"),
        Card("Image", "spec.image"),
        Card("Environment", "spec.env", "links"),
        Card("Last reconcile", "status.lastReconcileTime"),
        Card("Conditions", "status.conditions", "conditions"),
    ],
    actions=[
        Action("scale", "Scale", patch={"spec": {"replicas": {"$form": "replicas"}}}, form=[_REPLICAS]),
        Action(
            "image",
            "Change the image",
            patch={"spec": {"image": {"$form": "image"}}},
            form=[Input("image", "Image", path="spec.image", required=True)],
        ),
    ],
    sample={"metadata": {"name": "hello"}, "spec": {"image": "nginx:1.27", "replicas": 3, "port": 80}},
)

NACOS = Page.of(
    Nacos,  # created as it is stored, without a conversion; shown in v1beta1, which API servers prefer
    title="Nacos",
    columns=[
        Column("Phase", "status.phase", "health"),
        Column("Type", "spec.type"),
        Column("Version", "status.version"),
        Column("Ready", "status.readyReplicas", "number"),
        Column("Wanted", "spec.replicas", "number"),
        Column("Leader", "status.leader"),
        Column("Database", "status.applied.database"),
    ],
    cards=[
        Card("Leader", "status.leader"),
        Card("Version", "status.version"),
        Card("Database", "status.applied.database"),
        Card("Image", "spec.image"),
        Card(
            "Members",
            "status.servers",
            "table",
            columns=[
                Column("Pod", "name"),
                Column("Role", "role"),
                Column("Instance", "address"),
                Column("Node", "nodeName"),
                Column("Ready", "ready"),
                Column("Message", "message"),
            ],
        ),
        Card(
            "What happened",
            "status.events",
            "table",
            columns=[
                Column("Code", "code", "number"),
                Column("Message", "message"),
                Column("First", "firstAppearTime", "time"),
                Column("Last", "lastTransitionTime", "time"),
            ],
        ),
        Card("Conditions", "status.conditions", "conditions"),
    ],
    actions=[
        Action("scale", "Scale", patch={"spec": {"replicas": {"$form": "replicas"}}}, form=[_REPLICAS]),
        Action(
            "upgrade",
            "Change the version",
            patch={"spec": {"image": {"$form": "image"}}},
            confirm="The members restart one after the other.",
            form=[Input("image", "Image", path="spec.image", required=True)],
        ),
        Action(
            "hibernate",
            "Hibernate",
            patch={"spec": {"hibernate": True}},
            confirm="All members end. Volumes, Secrets, Services and content stay.",
        ),
        Action("wake", "Wake", patch={"spec": {"hibernate": False}}),
    ],
    sample={
        "metadata": {"name": "nacos"},
        "spec": {
            "type": "cluster",
            "image": "nacos/nacos-server:v2.4.3",
            "replicas": 3,
            "database": {"type": "embedded"},
            "volume": {"enabled": True, "requests": {"storage": "1Gi"}},
        },
    },
    create=Form("nacos", [Version(offer.version, offer.image, offer.default) for offer in Catalogue().offers()]),
)

WUKONG = Page.of(
    Wukong,
    title="Virtual machines",
    columns=[
        Column("Phase", "status.phase", "health"),
        Column("Power", "status.powerState"),
        Column("IP", "status.primaryIP"),
        Column("Node", "status.nodeName"),
        Column("CPU", "spec.cpu", "number"),
        Column("Memory", "spec.memory", "quantity"),
        Column("Message", "status.message"),
    ],
    cards=[
        Card("Message", "status.message"),
        Card("Power", "status.powerState"),
        Card("Address", "status.primaryIP"),
        Card("Screen", "status.console.vnc"),
        Card("Serial console", "status.console.serial"),
        Card(
            "Disks",
            "status.volumes",
            "table",
            columns=[
                Column("Name", "name"),
                Column("Claim", "pvcName"),
                Column("Size", "size", "quantity"),
                Column("Phase", "phase"),
                Column("Progress", "progress"),
                Column("Message", "message"),
            ],
        ),
        Card(
            "Networks",
            "status.networks",
            "table",
            columns=[
                Column("Name", "name"),
                Column("Address", "ipAddress"),
                Column("MAC", "macAddress"),
                Column("Definition", "nadName"),
            ],
        ),
        Card("After a restart", "status.pendingChanges", "links"),
        Card("Conditions", "status.conditions", "conditions"),
    ],
    actions=[
        Action("start", "Start", patch={"spec": {"powerState": "Running"}}),
        Action("stop", "Stop", patch={"spec": {"powerState": "Stopped"}}, confirm="The machine is shut down."),
        Action("pause", "Pause", patch={"spec": {"powerState": "Paused"}}),
        Action(
            "restart",
            "Restart",
            patch={"spec": {"restartAt": {"$now": True}}},
            confirm="The machine is restarted once.",
        ),
    ],
    sample={
        "metadata": {"name": "machine"},
        "spec": {"cpu": 2, "memory": "2Gi", "disks": [{"name": "system", "size": "10Gi"}]},
    },
)

PAGES = [NACOS, WEBAPP, WUKONG]
