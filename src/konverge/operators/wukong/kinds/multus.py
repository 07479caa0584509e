"""`NetworkAttachmentDefinition`, k8s.cni.cncf.io/v1: the configuration of a CNI plugin, as a JSON text.

Its plural has hyphens: `network-attachment-definitions`.
"""

from __future__ import annotations

from typing import ClassVar

from konverge.objects import Model, Object, Resource, field


class NetworkAttachmentDefinitionSpec(Model):
    """The text."""

    config: str = ""


class NetworkAttachmentDefinition(Object):
    """A network beside that of the pods."""

    resource: ClassVar[Resource] = Resource(
        "k8s.cni.cncf.io", "v1", "NetworkAttachmentDefinition", "network-attachment-definitions"
    )

    spec: NetworkAttachmentDefinitionSpec = field(default_factory=NetworkAttachmentDefinitionSpec)
