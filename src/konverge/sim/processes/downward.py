"""What a pod may know of itself: `fieldRef` and `resourceFieldRef`, as text. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import ceil

from konverge.objects.kinds.core_v1 import Container, Pod, ResourceFieldSelector
from konverge.objects.quantity import Quantity

_KEYED = re.compile(r"metadata\.(labels|annotations)\['(.+)'\]")


class DownwardError(ValueError):
    """A field that is not offered."""


@dataclass(frozen=True, slots=True)
class Self:
    """A pod on its node."""

    pod: Pod
    pod_ip: str
    host_ip: str
    allocatable: Mapping[str, Quantity] = field(default_factory=dict)

    @property
    def hostname(self) -> str:
        return self.pod.spec.hostname or self.pod.metadata.name[:63].rstrip("-.")

    def field(self, path: str) -> str:
        """The value of a fieldRef."""
        meta, spec = self.pod.metadata, self.pod.spec
        keyed = _KEYED.fullmatch(path)
        if keyed is not None:
            group: Mapping[str, str] = getattr(meta, keyed[1])
            return group.get(keyed[2], "")
        values = {
            "metadata.name": meta.name,
            "metadata.namespace": meta.namespace,
            "metadata.uid": meta.uid,
            "metadata.labels": _lines(meta.labels),
            "metadata.annotations": _lines(meta.annotations),
            "spec.nodeName": spec.node_name or "",
            "spec.serviceAccountName": spec.service_account_name or "default",
            "status.podIP": self.pod_ip,
            "status.podIPs": self.pod_ip,
            "status.hostIP": self.host_ip,
            "status.hostIPs": self.host_ip,
        }
        if path not in values:
            raise DownwardError(f"unsupported fieldPath: {path}")
        return values[path]

    def amount(self, selector: ResourceFieldSelector, container: str) -> str:
        """The value of a resourceFieldRef, in units of its divisor, rounded up."""
        which, _, name = selector.resource_.partition(".")
        if which not in ("limits", "requests") or not name:
            raise DownwardError(f"unsupported container resource: {selector.resource_}")
        value = self._asked(selector.container_name or container, which, name)
        divisor = selector.divisor if selector.divisor is not None and selector.divisor != Quantity(0) else Quantity(1)
        return str(ceil(value.fraction / divisor.fraction))

    def _asked(self, container: str, which: str, name: str) -> Quantity:
        spec: Container | None = next(
            (
                declared
                for declared in (*self.pod.spec.containers, *self.pod.spec.init_containers)
                if declared.name == container
            ),
            None,
        )
        asked: Mapping[str, Quantity] = {}
        if spec is not None and spec.resources is not None:
            asked = spec.resources.limits if which == "limits" else spec.resources.requests
        if name in asked:
            return asked[name]
        return self.allocatable.get(name, Quantity(0)) if which == "limits" else Quantity(0)


def _lines(group: Mapping[str, str]) -> str:
    return "\n".join(f"{key}={json.dumps(value, ensure_ascii=False)}" for key, value in sorted(group.items()))
