"""The pages of the operators that come with Konverge; they are examples of `konverge.console.Page` as well.

The kinds come from the operators' own classes, and a test compares every path with their schemas.
"""

from __future__ import annotations

from konverge.console.pages import Action, Card, Column, Form, Input, Page, Version
from konverge.operators.nacos.resource import Nacos
from konverge.operators.webapp.kind import WebApp
from konverge.operators.wukong.resource import Wukong, WukongSnapshot
from konverge.service.options import Catalogue

_CHINESE = {
    "Address": "地址",
    "After a restart": "重启后生效",
    "All members end. Volumes, Secrets, Services and content stay.": "成员全部结束；卷、Secret、Service 和内容保留。",
    "CPU": "CPU",
    "Change the image": "更换镜像",
    "Change the version": "更换版本",
    "Claim": "持久卷申领",
    "Code": "代码",
    "Conditions": "状况",
    "Database": "数据库",
    "Definition": "定义",
    "Disks": "磁盘",
    "Environment": "环境变量",
    "Error": "错误",
    "First": "首次",
    "Hibernate": "休眠",
    "How it was taken": "创建方式",
    "IP": "IP",
    "Image": "镜像",
    "Instance": "实例",
    "Last": "最近",
    "Last reconcile": "最近一次调谐",
    "Leader": "领导者",
    "Left out": "未包含",
    "MAC": "MAC",
    "Machine": "虚拟机",
    "Members": "成员",
    "Memory": "内存",
    "Message": "消息",
    "Nacos": "Nacos",
    "Name": "名称",
    "Networks": "网络",
    "Node": "节点",
    "Pause": "暂停",
    "Phase": "阶段",
    "Pod": "Pod",
    "Power": "电源",
    "Progress": "进度",
    "Ready": "就绪",
    "Replicas": "副本数",
    "Restart": "重启",
    "Restore a snapshot": "恢复快照",
    "Role": "角色",
    "Scale": "伸缩",
    "Screen": "屏幕",
    "Serial console": "串行控制台",
    "Size": "大小",
    "Snapshot": "快照",
    "Snapshots of machines": "虚拟机快照",
    "Start": "启动",
    "Stop": "停止",
    "Taken": "创建时间",
    "The machine is restarted once.": "虚拟机将重启一次。",
    "The machine is shut down.": "虚拟机将关闭。",
    "The machine is stopped, and its disks are put back.": "虚拟机将停止，其磁盘恢复到快照时的状态。",
    "The members restart one after the other.": "成员将逐个重启。",
    "Type": "类型",
    "Version": "版本",
    "Virtual machines": "虚拟机",
    "Wake": "唤醒",
    "Wanted": "期望",
    "Web applications": "Web 应用",
    "What happened": "发生了什么",
}
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
    chinese=_CHINESE,
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
    chinese=_CHINESE,
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
        Action(
            "restore",
            "Restore a snapshot",
            patch={"spec": {"restoreFromSnapshot": {"$form": "snapshot"}}},
            confirm="The machine is stopped, and its disks are put back.",
            form=[Input("snapshot", "Snapshot", path="spec.restoreFromSnapshot", required=True)],
        ),
    ],
    sample={
        "metadata": {"name": "machine"},
        "spec": {"cpu": 2, "memory": "2Gi", "disks": [{"name": "system", "size": "10Gi"}]},
    },
    chinese=_CHINESE,
)

SNAPSHOTS = Page.of(
    WukongSnapshot,
    title="Snapshots of machines",
    columns=[
        Column("Phase", "status.phase", "health"),
        Column("Machine", "spec.wukongName"),
        Column("Taken", "status.creationTime", "time"),
        Column("Error", "status.error"),
    ],
    cards=[
        Card("Machine", "spec.wukongName"),
        Card("Error", "status.error"),
        Card("Disks", "status.volumes", "links"),
        Card("Left out", "status.excludedVolumes", "links"),
        Card("How it was taken", "status.indications", "links"),
        Card("Conditions", "status.conditions", "conditions"),
    ],
    actions=[],
    sample={"metadata": {"name": "machine-1"}, "spec": {"wukongName": "machine"}},
    chinese=_CHINESE,
)

PAGES = [NACOS, WEBAPP, WUKONG, SNAPSHOTS]
