"""What goes wrong on purpose: phrases in an annotation of the object, or in a ConfigMap of its namespace.

    kubectl annotate vm web-vm sim.konverge.dev/fault="crash times=2"
    kubectl create configmap konverge-kubevirt-faults --from-literal=dv.web-system=import-404 --from-literal=vm=no-agent

Several faults are separated by semicolons. A key of the ConfigMap is the short name of a kind and the name of an
object; without a name it is for all objects of the kind. Cluster-wide objects are in the ConfigMap of `default`. What
is taken away again is over: everything goes on from where it was.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from konverge.objects.kinds.core_v1 import ConfigMap
from konverge.objects.meta import Object
from konverge.runtime import Context, Request, Watches
from konverge.runtime.context import Caches

ANNOTATION = "sim.konverge.dev/fault"
CONFIG_MAP = "konverge-kubevirt-faults"
CLUSTER = "default"

KNOWN: dict[str, dict[str, str]] = {
    "vm": {
        "unschedulable": "no node takes it (seconds=20: for so long)",
        "crash": "the guest fails while it starts (times=2: so often; after=30: after so many seconds of running)",
        "shutdown": "the guest switches itself off (after=30)",
        "image-pull": "the image of the launcher cannot be pulled",
        "no-agent": "the guest has no agent",
        "ip-vanishes": "the agent reports no addresses for a moment (after=20, seconds=3)",
        "slow-delete": "it stays for seconds=60 after its instance has gone",
        "rwo": "its disks cannot be migrated, whatever their access modes say",
    },
    "dv": {
        "import-404": "the source does not exist: the importer restarts for ever",
        "import-fatal": "the checksum does not fit: the import has failed for good",
        "stuck": "nothing moves",
        "no-profile": "CDI does not know the class: it refuses `storage` without access modes",
        "collected": "it is deleted after seconds=10 of success, and its claim stays, as older releases did",
    },
    "pvc": {"lost": "its volume has gone"},
    "vmim": {"fails": "the target does not come up", "stuck": "it never ends"},
    "vmsnapshot": {"fails": "the storage refuses", "stuck": "it never ends"},
    "vmrestore": {"fails": "the storage refuses", "stuck": "it never ends"},
    "nncp": {"degraded": "the nodes refuse it and roll back", "stuck": "it never ends"},
}
"""By the short name of a kind: its faults, and what they do."""

Faults = dict[str, dict[str, str]]
"""By name: the settings that came with it."""


def read(text: str) -> Faults:
    """
    >>> read("crash times=2; no-agent")
    {'crash': {'times': '2'}, 'no-agent': {}}
    """
    faults: Faults = {}
    for part in text.split(";"):
        name, *settings = part.split()[:8] or [""]
        if name:
            pairs = (word.partition("=") for word in settings)
            faults[name] = {key: value for key, _, value in pairs}
    return faults


async def of(ctx: Context[Any], short: str, *others: Object | None) -> Faults:
    """The faults of the object that is reconciled; `others` are objects whose annotations count as well."""
    obj = ctx.obj
    namespace = obj.metadata.namespace or CLUSTER
    switches = await ctx.get(ConfigMap, CONFIG_MAP, namespace)
    data: Mapping[str, str] = switches.data if switches is not None else {}
    texts = [data.get(short, ""), data.get(f"{short}.{obj.metadata.name}", "")]
    texts += [other.metadata.annotations.get(ANNOTATION, "") for other in (*others, obj) if other is not None]
    faults: Faults = {}
    for text in filter(None, texts):
        faults |= read(text)
    for name in [fault for fault in faults if fault not in KNOWN[short]]:
        ctx.warning("UnknownFault", f"{name!r} is no fault of a {short}; there are: {', '.join(KNOWN[short])}")
        del faults[name]
    return faults


def switches(kind: type[Any]) -> Watches[ConfigMap]:
    """A change of the ConfigMap concerns all objects of the kind in its namespace."""
    return Watches(ConfigMap, lookup=_everyone(kind), field_selector=f"metadata.name={CONFIG_MAP}")


def _everyone(kind: type[Any]) -> Callable[[ConfigMap, Caches], Iterable[Request]]:
    def lookup(config_map: ConfigMap, caches: Caches) -> Iterable[Request]:
        lister = caches.lister(kind)
        where = config_map.metadata.namespace if kind.resource.namespaced else None
        objects = lister.list(where) if lister is not None else []
        return [Request(obj.metadata.namespace, obj.metadata.name) for obj in objects]

    return lookup
