"""The resource: `nacos.nacos.io`, version v1alpha1, as a class; and with a spec that nobody has checked."""

from __future__ import annotations

from typing import Any

from konverge.objects import Column, CustomResource, Object, Rule, Scale, crd, field
from konverge.objects.kinds.apiextensions_v1 import CustomResourceDefinition
from konverge.operators.nacos.spec import NacosSpec
from konverge.operators.nacos.status import NacosStatus

GROUP = "nacos.io"
PAUSE = "nacos.io/pause-reconciliation"
"""While this annotation is `true`, the operator leaves everything as it is."""
NAME = r"^[a-z]([-a-z0-9]*[a-z0-9])?$"
LONGEST_NAME = 50
"""Names of Services and of the pods' revisions are made of it, and end at 63."""


class Nacos(
    CustomResource[NacosSpec, NacosStatus],
    group=GROUP,
    version="v1alpha1",
    plural="nacos",
    scale=Scale(selector=".status.selector"),
    columns=[
        Column("Replicas", ".spec.replicas"),
        Column("Ready", ".status.phase"),
        Column("Type", ".spec.type"),
        Column("DbType", ".spec.database.type"),
        Column("Version", ".status.version"),
        Column("CreateTime", ".metadata.creationTimestamp", type="string"),
    ],
    rules=[
        Rule(
            f"self.metadata.name.matches('{NAME}') && size(self.metadata.name) <= {LONGEST_NAME}",
            message=f"the name becomes that of Services: at most {LONGEST_NAME} lower-case letters, digits and '-', "
            "beginning with a letter",
        )
    ],
):
    """A Nacos server or cluster, with its storage and its Services."""


class AnyNacos(Object):
    """The same resource as the operator reads it: a spec that got past an older definition must not stop the watch."""

    spec: dict[str, Any] = field(default_factory=dict)
    status: NacosStatus = field(default_factory=NacosStatus)


AnyNacos.resource = Nacos.resource


def definition() -> CustomResourceDefinition:
    """What a cluster has to know before the first resource."""
    return crd(Nacos)
