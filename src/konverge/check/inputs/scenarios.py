"""What users do with fields of known meaning: scale, grow, expose, label, place on nodes, point to a Secret."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from konverge.check.inputs.core_types import QUANTITY
from konverge.check.inputs.fields import Field
from konverge.check.inputs.paths import ABSENT
from konverge.check.inputs.proposals import Proposal, given
from konverge.check.inputs.values import word
from konverge.check.model import Obj

Scenario = Callable[[Field, Any], Iterator[Proposal]]

UNKNOWN_IMAGE = "registry.invalid/none:0"
"""No registry can have this name (RFC 2606): simulated nodes fail to pull it, as real ones do."""


def replicas(field: Field, value: Any) -> Iterator[Proposal]:
    now = given(value, given(field.default, 1))
    step = 2 if now % 2 else 1  # clusters with a quorum stay odd
    yield Proposal(name="scale up", values=(now + step,), worth=95)
    if now - step >= 1:
        yield Proposal(name="scale down", values=(now - step,), worth=90)
    if now:
        yield Proposal(name="scale to zero", values=(0,), worth=60, bad=True)
    yield Proposal(name="a negative number", values=(-1,), worth=20, bad=True)


def doubled(value: str | int) -> str:
    """
    >>> doubled("10Gi"), doubled("500m"), doubled(3)
    ('20Gi', '1000m', '6')
    """
    return _times(value, 2)


def _times(value: str | int, factor: float) -> str:
    text = str(value)
    if not QUANTITY.match(text):
        return "20Gi"
    number, unit = re.match(r"([0-9.]+)(.*)", text.lstrip("+-")).groups()  # type: ignore[union-attr]
    return f"{float(number) * factor:g}{unit}"


def storage_size(field: Field, value: Any) -> Iterator[Proposal]:
    now = given(value, given(field.default, "10Gi"))
    yield Proposal(name="grow", values=(doubled(now),), worth=92, lasting=True)
    if value is not ABSENT:
        yield Proposal(name="shrink", values=(_times(now, 0.5),), worth=55, bad=True, lasting=True)


def quantity(field: Field, value: Any) -> Iterator[Proposal]:
    yield Proposal(name="another amount", values=(doubled(given(value, given(field.default, "1"))),), worth=60)
    yield Proposal(name="nothing of it", values=("0",), worth=25, bad=True)


def amounts(field: Field, value: Any) -> Iterator[Proposal]:
    now = dict(given(value, {}))
    if "storage" in now:
        grown = {**now, "storage": doubled(now["storage"])}
        yield Proposal(name="grow", values=(grown,), worth=92, lasting=True)
    else:
        yield Proposal(name="another amount", values=({**now, "cpu": "50m"}, {**now, "cpu": "60m"}), worth=70)


def resources(field: Field, value: Any) -> Iterator[Proposal]:
    now = dict(given(value, {}))
    requests, limits = dict(now.get("requests") or {}), dict(now.get("limits") or {})
    if "storage" in requests:
        grown = {**now, "requests": {**requests, "storage": doubled(requests["storage"])}}
        yield Proposal(name="grow", values=(grown,), worth=92, lasting=True)
        return
    asked = {**now, "requests": {**requests, "cpu": "30m"}}
    yield Proposal(name="request more", values=(asked, {**asked, "limits": {**limits, "cpu": "2"}}), worth=80)
    if now:
        yield Proposal(name="take it away", values=(ABSENT,), worth=70)
    huge: Obj = {**now, "requests": {**requests, "cpu": "10000"}, "limits": {**limits, "cpu": "10000"}}
    yield Proposal(name="more than any node has", values=(huge,), worth=84, bad=True)
    wrong: Obj = {**now, "requests": {**requests, "cpu": "2"}, "limits": {**limits, "cpu": "1"}}
    yield Proposal(name="limits below the requests", values=(wrong,), worth=35, bad=True)


def named_texts(field: Field, value: Any) -> Iterator[Proposal]:
    """Labels, annotations: add, change, and by the way back remove."""
    now = dict(given(value, {}))
    key = f"{word(field.name)}-a"
    yield Proposal(name="add, change, remove", values=({**now, key: "value-a"}, {**now, key: "value-b"}), worth=94)
    if now:
        less = dict(list(now.items())[1:])
        yield Proposal(name="remove", values=(less if less else ABSENT,), worth=80)


def node_selector(field: Field, value: Any) -> Iterator[Proposal]:
    now = dict(given(value, {}))
    yield Proposal(name="add, remove", values=({**now, "kubernetes.io/os": "linux"},), worth=84)
    yield Proposal(
        name="a selector that no node has", values=({**now, "node-a": "missing"},), worth=82, bad=True
    )  # fmt: skip


def _node_term(required: str) -> Obj:
    return {"matchExpressions": [{"key": required, "operator": "Exists"}]}


def affinity(field: Field, value: Any) -> Iterator[Proposal]:
    now = dict(given(value, {}))
    likes = [{"weight": 1, "preference": _node_term("affinity-a")}]
    mild = {**now, "nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": likes}}
    yield Proposal(name="prefer some nodes", values=(mild,), worth=78)
    needs = {"nodeSelectorTerms": [_node_term("affinity-missing")]}
    strict = {**now, "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": needs}}
    yield Proposal(name="nodes that do not exist", values=(strict,), worth=86, bad=True)


def tolerations(field: Field, value: Any) -> Iterator[Proposal]:
    now = list(given(value, []))
    first = {"key": "toleration-a", "operator": "Exists", "effect": "NoSchedule"}
    second = {**first, "key": "toleration-b"}
    yield Proposal(name="add, replace, remove", values=([*now, first], [*now, second]), worth=85)


def spread(field: Field, value: Any) -> Iterator[Proposal]:
    constraint = {
        "maxSkew": 1,
        "topologyKey": "kubernetes.io/hostname",
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": {"spread-a": "value-a"}},
    }
    yield Proposal(name="add, remove", values=([*given(value, []), constraint],), worth=65)


def image(field: Field, value: Any) -> Iterator[Proposal]:
    now = str(given(value, given(field.default, "registry.k8s.io/pause:3.9")))
    name, colon, _ = now.rpartition(":")
    other = f"{name}:{word(field.name)}-b" if colon and "/" not in now.rpartition(":")[2] else f"{now}:b"
    yield Proposal(name="another image", values=(other,), worth=75)
    yield Proposal(name="an image that does not exist", values=(UNKNOWN_IMAGE,), worth=87, bad=True)


def service_type(field: Field, value: Any) -> Iterator[Proposal]:
    now = given(value, given(field.default, "ClusterIP"))
    others = tuple(kind for kind in ("NodePort", "LoadBalancer", "ClusterIP") if kind != now)
    yield Proposal(name="in turn", values=others, worth=83)
    yield Proposal(name="ExternalName", values=("ExternalName",), worth=20, bad=True)


def environment(field: Field, value: Any) -> Iterator[Proposal]:
    now = list(given(value, []))
    first, second = {"name": "ENV_A", "value": "a"}, {"name": "ENV_B", "value": "b"}
    both = [*now, first, second]
    yield Proposal(name="add, reorder, remove", values=(both, [*reversed(both)], [*now, second]), worth=76)
    yield Proposal(name="the same name twice", values=([*now, first, first],), worth=25, bad=True)


def listed(make: Callable[[str], Obj], worth: int) -> Scenario:
    """Lists of which an item is easily made: sidecars, volumes, ports."""

    def scenario(field: Field, value: Any) -> Iterator[Proposal]:
        now = list(given(value, []))
        name = word(field.name)
        first, second = make(f"{name}-a"), make(f"{name}-b")
        yield Proposal(name="add, replace, remove", values=([*now, first], [*now, second]), worth=worth)

    return scenario


MALFORMED = 80
"""What is worth a text that a program has to read and cannot: those that do not expect it end, at every start."""


def fixed(
    *values: Any, bad: tuple[Any, ...] = (), worth: int = 60, bad_worth: int = 0, name: str = "another value"
) -> Scenario:
    """The same values whatever the field has; those that are objects are merged into it."""

    def scenario(field: Field, value: Any) -> Iterator[Proposal]:
        now = given(value, {})

        def merged(item: Any) -> Any:
            return {**now, **item} if isinstance(item, dict) and isinstance(now, dict) else item

        others = tuple(merged(item) for item in values if merged(item) != value)
        if others:
            yield Proposal(name=name, values=others, worth=worth)
        for item in bad:
            yield Proposal(
                name="a value that cannot work", values=(merged(item),), worth=bad_worth or worth // 2, bad=True
            )

    return scenario


def secret(kind: str) -> Scenario:
    """A name, or an object with a name, of a Secret or a ConfigMap."""

    def scenario(field: Field, value: Any) -> Iterator[Proposal]:
        name = f"{word(field.name)}-a"
        key = "key-a"
        yield Proposal(name=f"a {kind} that is missing", values=(_pointing(field, "missing", key),), worth=58, bad=True)
        content = {"data" if kind == "ConfigMap" else "stringData": {key: "value-a", "username": "a", "password": "a"}}
        made: Obj = {"apiVersion": "v1", "kind": kind, "metadata": {"name": name}, **content}
        yield Proposal(name=f"another {kind}", values=(_pointing(field, name, key),), worth=62, objects=(made,))

    return scenario


def _pointing(field: Field, name: str, key: str) -> Any:
    if field.kind == "string":
        return name
    properties = field.schema.get("properties") or {}
    return {"name": name, **({"key": key} if "key" in properties else {})}


def storage_class(field: Field, value: Any) -> Iterator[Proposal]:
    yield Proposal(name="another class", values=("class-a",), worth=40, bad=True, lasting=True)


def port(field: Field, value: Any) -> Iterator[Proposal]:
    now = given(value, given(field.default, 8080))
    yield Proposal(name="another port", values=(now + 1 if now < 65535 else now - 1,), worth=66)
    yield Proposal(name="no port at all", values=(0,), worth=20, bad=True)
    yield Proposal(name="above all ports", values=(65536,), worth=22, bad=True)


def version(field: Field, value: Any) -> Iterator[Proposal]:
    now = given(value, field.default)
    if isinstance(now, str) and (number := re.search(r"(\d+)(\D*)$", now)):
        newer = f"{now[: number.start()]}{int(number[1]) + 1}{number[2]}"
        yield Proposal(name="the next version", values=(newer,), worth=64)
    yield Proposal(name="no version at all", values=("none",), worth=MALFORMED, bad=True)


def pointer(field: Field, value: Any) -> Iterator[Proposal]:
    """An object with a name: of a ConfigMap if the field says so, else of a Secret."""
    return secret("ConfigMap" if "config" in field.name.lower() else "Secret")(field, value)


SCENARIOS: dict[str, Scenario] = {
    "Replicas": replicas,
    "StorageSize": storage_size,
    "Quantity": quantity,
    "Amounts": amounts,
    "ResourceRequirements": resources,
    "VolumeResourceRequirements": resources,
    "Labels": named_texts,
    "Annotations": named_texts,
    "NodeSelector": node_selector,
    "Affinity": affinity,
    "Tolerations": tolerations,
    "TopologySpreadConstraints": spread,
    "Image": image,
    "ServiceType": service_type,
    "EnvVars": environment,
    "Containers": listed(lambda name: {"name": name, "image": "registry.k8s.io/pause:3.9"}, 68),
    "Volumes": listed(lambda name: {"name": name, "emptyDir": {}}, 60),
    "ContainerPorts": listed(lambda name: {"name": name, "containerPort": 18080 + ord(name[-1])}, 60),
    "ServicePorts": listed(lambda name: {"name": name, "port": 18080 + ord(name[-1])}, 63),
    "LocalObjectReferences": listed(lambda name: {"name": name}, 57),
    "Probe": fixed({"periodSeconds": 7}, {"failureThreshold": 7}, worth=59),
    "PodSecurityContext": fixed({"fsGroup": 1000}, {"runAsUser": 1000}, bad=({"runAsUser": -1},), worth=61),
    "SecurityContext": fixed({"runAsUser": 1000}, bad=({"runAsUser": -1},), worth=61),
    "DaemonSetUpdateStrategy": fixed({"type": "OnDelete"}, worth=45),
    "StorageClass": storage_class,
    "SecretName": secret("Secret"),
    "ConfigMapName": secret("ConfigMap"),
    "SecretKeySelector": pointer,
    "ConfigMapKeySelector": pointer,
    "LocalObjectReference": pointer,
    "SecretReference": pointer,
    "ServiceAccount": fixed(bad=("account-a",), worth=50),
    "PriorityClass": fixed(bad=("priority-a",), worth=50),
    "PullPolicy": fixed("Always", "IfNotPresent", worth=48),
    "Cron": fixed("*/5 * * * *", bad=("never",), worth=64, bad_worth=MALFORMED),
    "Duration": fixed("90s", "45s", bad=("soon", "-1s"), worth=55, bad_worth=MALFORMED - 10),
    "Port": port,
    "Version": version,
}
"""By the core type that a field is of."""
