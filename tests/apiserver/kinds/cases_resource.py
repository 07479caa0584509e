"""resource.k8s.io: every declared and every hand-written rule of its kinds, broken once, on create and on update.

A case is an edit of a valid object: JSON pointers into its spec (or status) with their new values. Creates and updates
are dry runs, so that the cases do not depend on each other. Recorded and replayed by `tests.apiserver.exchanges`.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

from tests.apiserver.exchanges import Step

Edit = dict[str, Any]
REMOVED: Any = object()
GROUP = "/apis/resource.k8s.io/v1"
NAMESPACE = "dra"
ADMIN_NAMESPACE = "dra-admin"
DRY = "?dryRun=All"
RBAC_GROUP = "rbac.authorization.k8s.io"
JSON_PATCH = {"content-type": "application/json-patch+json"}
UUID = "8a9ab8ee-3c4e-4a41-9d6b-0d3e1f2a4b5c"
LONG = "a" * 64


def edited(base: Any, edit: Edit) -> Any:
    """A copy of an object with values set (or removed) at JSON pointers; missing maps are made."""
    result = copy.deepcopy(base)
    for pointer, value in edit.items():
        *way, last = (part.replace("~1", "/") for part in pointer.split("/")[1:])
        place = result
        for part in way:
            place = place[int(part)] if isinstance(place, list) else place.setdefault(part, {})
        if isinstance(place, list) and last == "-":
            place.append(value)
        elif value is REMOVED:
            del place[int(last) if isinstance(place, list) else last]
        else:
            place[int(last) if isinstance(place, list) else last] = value
    return result


def numbered(count: int, prefix: str = "n") -> list[str]:
    return [f"{prefix}{number}" for number in range(count)]


# --- what claims, templates, classes and results share

SELECTOR = {"cel": {"expression": "device.driver == 'gpu.example.com'"}}
OPAQUE = {"opaque": {"driver": "gpu.example.com", "parameters": {}}}
TOLERATION = {"key": "example.com/broken", "operator": "Equal", "value": "yes", "effect": "NoSchedule"}
CONDITION = {
    "type": "Ready",
    "status": "True",
    "reason": "AllGood",
    "message": "",
    "lastTransitionTime": "2024-01-01T00:00:00Z",
}

EXPRESSIONS = [
    "",
    "1 +",
    "1",
    "device.nothing",
    "unknown.driver",
    "device.driver",
    "device.attributes['a'].b",
    "device.attributes['a'].b == 1",
    "device.attributes['a'].b.isGreaterThan(semver('1.0.0'))",
    "device.capacity['a'].b.isGreaterThan(quantity('1Gi'))",
    "device.capacity['a'].b == 1",
    "device.allowMultipleAllocations",
    "'a' in device.attributes",
    "cel.bind(d, device.attributes['a'], d.b)",
    "cel.bind(d, device.driver, d)",
    "cel.bind(1, device.driver, true)",
    "other.bind(d, device.driver, true)",
    "device.attributes.all(x, device.attributes.all(y, device.attributes.all(z, "
    "device.attributes.all(w, x == y && z == w && x.matches('a*b*c*')))))",
    "'x' == '" + "x" * 10240 + "'",
]


def selectors(place: str) -> Iterator[Edit]:
    yield {place: [SELECTOR] * 33}
    yield {place: [{}]}
    yield {place: [{"cel": {}}]}
    for expression in EXPRESSIONS:
        yield {place: [{"cel": {"expression": expression}}]}


def configurations(place: str) -> Iterator[Edit]:
    yield {place: [OPAQUE] * 33}
    yield {place: [{}]}
    opaque = f"{place}/0/opaque"
    yield {opaque: {}}
    for driver in ("", "A b", "Gpu.Example.com", LONG, "-a", LONG + "_"):
        yield {f"{opaque}/driver": driver}
    for parameters in (REMOVED, None, {}, [], "text", 1, {"a": "x" * 10240}):
        yield {f"{opaque}/parameters": parameters}


def tolerations(place: str) -> Iterator[Edit]:
    yield {place: [TOLERATION]}
    yield {place: [TOLERATION] * 17}
    yield {place: [{}]}
    for name, values in {
        "key": ("", "a b", "/x", "x" * 70),
        "operator": ("", "Exists", "Maybe"),
        "value": ("a b", LONG),
        "effect": ("", "None", "PreferNoSchedule"),
        "tolerationSeconds": (-1, 10),
    }.items():
        for value in values:
            yield {place: [{**TOLERATION, name: value}]}
    yield {place: [{"operator": "Exists"}]}


def qualified_names(place: str) -> Iterator[Edit]:
    for name in (
        "",
        "model",
        "/model",
        "gpu.example.com/",
        "gpu.example.com/1model",
        "gpu.example.com/" + "m" * 33,
        LONG + "/model",
        "Gpu.example.com/model",
        "a_b/model",
        "a/b/c",
        "not-an-identifier",
    ):
        yield {place: name}


# --- ResourceClaim and ResourceClaimTemplate

CLAIM_SPEC = {
    "devices": {
        "requests": [
            {"name": "gpu", "exactly": {"deviceClassName": "gpu.example.com"}},
            {
                "name": "any",
                "firstAvailable": [
                    {"name": "big", "deviceClassName": "big.example.com"},
                    {"name": "small", "deviceClassName": "small.example.com"},
                ],
            },
        ],
        "constraints": [{"requests": ["gpu"], "matchAttribute": "gpu.example.com/model"}],
        "config": [{"requests": ["gpu"], **OPAQUE}],
    }
}
REQUEST = "/devices/requests/0"
EXACTLY = f"{REQUEST}/exactly"
FIRST = "/devices/requests/1/firstAvailable"
NAMES = ("", "Bad", "a.b", LONG, "a_" + LONG)
CLASSES = ("", "Bad", "a..b", "a" * 254)


def request_edits(place: str) -> Iterator[Edit]:
    """What an exact request and an alternative have in common."""
    for name in CLASSES:
        yield {f"{place}/deviceClassName": name}
    yield {f"{place}/deviceClassName": REMOVED}
    for mode, count in (("All", 0), ("All", 2), ("ExactCount", -1), ("ExactCount", 3), ("Some", 1), ("", -2)):
        yield {f"{place}/allocationMode": mode, f"{place}/count": count}
    yield from selectors(f"{place}/selectors")
    yield from tolerations(f"{place}/tolerations")
    yield {f"{place}/derivedAttributes": [{"name": "", "expression": ""}]}
    yield {f"{place}/capacity": {"requests": {"gpu.example.com/memory": "1Gi"}}}
    for name in ("memory", "a/b/c", "/x", ""):
        yield {f"{place}/capacity": {"requests": {name: "1Gi"}}}


def claim_edits() -> Iterator[Edit]:
    yield {}
    yield {"/devices": {}}
    for name in NAMES:
        yield {f"{REQUEST}/name": name, "/devices/constraints": [], "/devices/config": []}
    yield {REQUEST: {"name": "gpu"}}
    yield {f"{REQUEST}/firstAvailable": [{"name": "big", "deviceClassName": "big.example.com"}]}
    yield {f"{REQUEST}/firstAvailable": []}
    yield {"/devices/requests/-": {"name": "gpu", "exactly": {"deviceClassName": "other.example.com"}}}
    yield {"/devices/requests/-": {"exactly": {"count": 2, "deviceClassName": "other.example.com"}, "name": "gpu"}}
    many = [{"name": name, "exactly": {"deviceClassName": "x"}} for name in numbered(33)]
    yield {"/devices/requests": many, "/devices/constraints": [], "/devices/config": []}
    yield from request_edits(EXACTLY)
    yield {f"{EXACTLY}/adminAccess": True}
    yield {f"{EXACTLY}/adminAccess": False}
    for name in NAMES:
        yield {f"{FIRST}/0/name": name}
    yield {f"{FIRST}/1/name": "big"}
    yield {FIRST: [{"name": name, "deviceClassName": "x"} for name in numbered(9)]}
    yield from request_edits(f"{FIRST}/0")
    for place in ("/devices/constraints/0", "/devices/config/0"):
        for names in (["gone"], ["any/big"], ["any/gone"], ["a/b/c"], ["Bad"], ["gpu", "gpu"], ["gpu/x"], [""], []):
            yield {f"{place}/requests": names}
        yield {f"{place}/requests": numbered(33)}
    yield {"/devices/constraints/0/matchAttribute": REMOVED}
    yield {"/devices/constraints": [{"matchAttribute": "gpu.example.com/model"}] * 33}
    yield {"/devices/constraints/0/distinctAttribute": "gpu.example.com/id"}
    yield from qualified_names("/devices/constraints/0/matchAttribute")
    for edit in qualified_names("/devices/constraints/0/distinctAttribute"):
        yield {"/devices/constraints/0/matchAttribute": REMOVED, **edit}
    yield from configurations("/devices/config")
    yield {  # several at once: the order of the messages
        f"{REQUEST}/name": "Bad",
        f"{EXACTLY}/deviceClassName": "",
        f"{FIRST}/0/deviceClassName": "",
        f"{FIRST}/1/allocationMode": "Some",
        "/devices/constraints/0/matchAttribute": "model",
        "/devices/config/0/opaque/driver": "",
        "/devices/config/0/opaque/parameters": [],
    }


CLAIM_UPDATES: list[Edit] = [
    {},
    {f"{REQUEST}/name": "Bad"},
    {f"{EXACTLY}/deviceClassName": "other.example.com"},
    {f"{EXACTLY}/count": 2},
    {"/devices/config": REMOVED},
    {"/devices/constraints/0/matchAttribute": "model"},
]


# --- the status of a ResourceClaim

RESULT = {"request": "gpu", "driver": "gpu.example.com", "pool": "node-1", "device": "gpu-0"}
ALLOCATION = {"devices": {"results": [RESULT], "config": [{"source": "FromClaim", "requests": ["gpu"], **OPAQUE}]}}
POD = {"resource": "pods", "name": "p", "uid": "1"}
DEVICE_STATUS = {"driver": "gpu.example.com", "pool": "node-1", "device": "gpu-0"}
STATUS = {"allocation": ALLOCATION, "reservedFor": [POD], "devices": [DEVICE_STATUS]}
ALLOCATED = "/allocation/devices/results/0"
ALLOCATED_CONFIG = "/allocation/devices/config"
POOLS = ("", "A", "a/b", "a//b", "a/B", "/", "a" * 254)
NODE_TERM = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["node-1"]}]}


def node_selectors(place: str) -> Iterator[Edit]:
    yield {place: {"nodeSelectorTerms": [NODE_TERM]}}
    yield {place: {"nodeSelectorTerms": [NODE_TERM, NODE_TERM]}}
    yield {place: {"nodeSelectorTerms": []}}
    yield {place: {"nodeSelectorTerms": [{"matchFields": [{"key": "bad", "operator": "In", "values": ["a"]}]}]}}
    yield {place: {"nodeSelectorTerms": [{"matchExpressions": [{"key": "a b", "operator": "Maybe"}]}]}}


def binding_conditions(place: str) -> Iterator[Edit]:
    for conditions, failures in (
        (["a"], ["b"]),
        (["a"], []),
        ([], ["b"]),
        (["a", "a"], ["b"]),
        (["a"], ["b", "b"]),
        (["a"], ["a"]),
        (["a b"], ["c d"]),
        (numbered(5), ["b"]),
        (["a"], numbered(5)),
    ):
        given = {"bindingConditions": conditions, "bindingFailureConditions": failures}
        yield {f"{place}/{name}": names for name, names in given.items() if names}


def status_edits() -> Iterator[Edit]:
    yield {}
    yield {"/reservedFor": [{}]}
    yield {"/reservedFor": [POD, POD]}
    yield {"/reservedFor": [{**POD, "uid": name} for name in numbered(257)]}
    yield {"/reservedFor": [{**POD, "uid": name} for name in numbered(256)]}
    for name in ("resource", "name", "uid"):
        yield {"/reservedFor": [{**POD, name: ""}]}
    yield {"/allocation": REMOVED, "/devices": REMOVED}
    yield {"/allocation": REMOVED, "/reservedFor": REMOVED}
    for request in ("gone", "any/big", "a/b/c", "Bad", ""):
        yield {f"{ALLOCATED}/request": request}
    for driver in ("", "A b", "Gpu.Example.com", LONG):
        yield {f"{ALLOCATED}/driver": driver, "/devices": []}
    for pool in POOLS:
        yield {f"{ALLOCATED}/pool": pool, "/devices": []}
    for device in NAMES:
        yield {f"{ALLOCATED}/device": device, "/devices": []}
    for share in ("", "x", UUID.upper(), UUID, "{" + UUID + "}", UUID.replace("-", "")):
        yield {f"{ALLOCATED}/shareID": share, "/devices/0/shareID": share}
    yield {"/allocation/devices/results": [RESULT] * 33}
    yield {f"{ALLOCATED}/adminAccess": True}
    yield {f"{ALLOCATED}/skipNodeOperations": ["NodePrepareResources"]}
    yield {f"{ALLOCATED}/consumedCapacity": {"/bad": "1"}}
    yield from tolerations(f"{ALLOCATED}/tolerations")
    yield from binding_conditions(ALLOCATED)
    yield from node_selectors("/allocation/nodeSelector")
    for source in ("", "FromNowhere", "FromClass"):
        yield {f"{ALLOCATED_CONFIG}/0/source": source}
    for names in (["gone"], ["gpu", "gpu"], numbered(33)):
        yield {f"{ALLOCATED_CONFIG}/0/requests": names}
    for edit in configurations(ALLOCATED_CONFIG):
        if edit != {ALLOCATED_CONFIG: [OPAQUE] * 33}:
            yield edit
    yield {ALLOCATED_CONFIG: [{"source": "FromClaim", **OPAQUE}] * 65}
    device = "/devices/0"
    for name, values in {
        "driver": ("", "A b", "other.example.com", LONG),
        "pool": POOLS,
        "device": (*NAMES, "gpu-1"),
        "shareID": ("", UUID),
    }.items():
        for value in values:
            yield {f"{device}/{name}": value}
    yield {"/devices": [DEVICE_STATUS, DEVICE_STATUS]}
    yield {"/devices": [DEVICE_STATUS, {"networkData": {"ips": ["10.0.0.1/24"]}, **DEVICE_STATUS}]}
    yield {f"{device}/data": {}}
    for data in ([], "text", None, {"a": "x" * 10240}):
        yield {f"{device}/data": data}
    yield {f"{device}/conditions": [{**CONDITION, "type": f"Ready{name}"} for name in numbered(9)]}
    yield {f"{device}/conditions": [CONDITION, CONDITION]}
    yield from conditions(f"{device}/conditions")
    network = f"{device}/networkData"
    yield {network: {}}
    yield {f"{network}/interfaceName": "x" * 257}
    yield {f"{network}/hardwareAddress": "x" * 129}
    yield {f"{network}/ips": [f"10.0.0.{number}/24" for number in range(17)]}
    for addresses in (["10.0.0.1/24", "10.0.0.1/24"], ["10.0.0.1"], ["x"], ["010.0.0.1/24"], ["2001:DB8::1/64"], [""]):
        yield {f"{network}/ips": addresses}
    yield {f"{network}/ips": ["::ffff:10.0.0.1/120"]}


def conditions(place: str) -> Iterator[Edit]:
    for name, values in {
        "type": ("", "a b"),
        "status": ("", "Maybe"),
        "reason": ("", "1", "x" * 1025),
        "message": ("x" * 32769,),
        "observedGeneration": (-1,),
    }.items():
        for value in values:
            yield {place: [{**CONDITION, name: value}]}


STORED_STATUS_UPDATES: list[Edit] = [
    {},
    {f"{ALLOCATED}/device": "gpu-1"},
    {ALLOCATED_CONFIG: []},
    {"/allocation": REMOVED, "/reservedFor": REMOVED},
    {"/allocation": REMOVED},
    {"/reservedFor/-": {**POD, "uid": "2"}},
    {"/devices/0/conditions": [{**CONDITION, "status": "Maybe"}]},
    {"/devices/0/networkData": {"ips": ["10.0.0.1/24", "10.0.0.1/24"]}},
    {"/devices/0/shareID": "x"},
]


# --- DeviceClass

CLASS_SPEC = {"selectors": [SELECTOR], "config": [OPAQUE], "extendedResourceName": "example.com/gpu"}


def class_edits() -> Iterator[Edit]:
    yield {}
    yield from selectors("/selectors")
    yield from configurations("/config")
    for name in (
        "",
        "gpu",
        "kubernetes.io/gpu",
        "x.kubernetes.io/gpu",
        "requests.example.com/gpu",
        "requests.gpu",
        "example.com/",
        "/gpu",
        "example.com/a b",
        "a/b/c",
        "example.com/" + "x" * 64,
        "Example.com/gpu",
    ):
        yield {"/extendedResourceName": name}
    yield {"/selectors": [{}], "/config": [{"opaque": {}}], "/extendedResourceName": "cpu"}


# --- ResourceSlice

DEVICE = {
    "name": "gpu-0",
    "attributes": {"model": {"string": "a100"}},
    "capacity": {"memory": {"value": "80Gi"}},
}
SLICE_SPEC = {
    "driver": "gpu.example.com",
    "pool": {"name": "node-1", "generation": 1, "resourceSliceCount": 1},
    "nodeName": "node-1",
    "devices": [DEVICE],
}
TAINT = {"key": "example.com/broken", "value": "yes", "effect": "NoSchedule", "timeAdded": "2024-01-01T00:00:00Z"}
COUNTERS = {"name": "memory", "counters": {"bytes": {"value": "10Gi"}}}
CONSUMES = {"counterSet": "memory", "counters": {"bytes": {"value": "1Gi"}}}
FIRST_DEVICE = "/devices/0"
NODE = "/nodeName"


def many_devices(count: int, **more: Any) -> list[Any]:
    return [{"name": name, **more} for name in numbered(count)]


def slice_edits() -> Iterator[Edit]:
    yield {}
    for driver in ("", "A b", LONG, "Gpu.example.com"):
        yield {"/driver": driver}
    for pool in POOLS:
        yield {"/pool/name": pool}
    for name, values in {"resourceSliceCount": (0, -1), "generation": (-1, 0)}.items():
        for value in values:
            yield {f"/pool/{name}": value}
    yield {"/pool": {}}
    for node in ("", "Bad", "other"):
        yield {NODE: node}
    yield {NODE: REMOVED}
    yield {"/allNodes": True}
    yield {NODE: REMOVED, "/allNodes": False}
    yield {NODE: REMOVED, "/allNodes": True}
    yield {NODE: REMOVED, "/perDeviceNodeSelection": False}
    yield {NODE: REMOVED, "/allNodes": True, "/perDeviceNodeSelection": True}
    for edit in node_selectors("/nodeSelector"):
        yield {NODE: REMOVED, **edit}
        yield edit
    yield {"/devices": many_devices(129)}
    yield {"/devices": many_devices(128)}
    yield {"/devices": many_devices(65, taints=[TAINT])}
    yield {"/devices": many_devices(65, consumesCounters=[CONSUMES])}
    yield {"/devices": []}
    yield {"/devices/-": DEVICE}
    for name in NAMES:
        yield {f"{FIRST_DEVICE}/name": name}
    yield from device_edits()
    yield from capacity_edits()
    yield from counter_edits()
    yield from placement_edits()
    yield {"/partitionTypeAttribute": "model"}
    yield {"/skipNodeOperations": ["NodePrepareResources"]}
    yield {"/skipNodeOperations": ["Other"]}
    yield {
        "/driver": "",
        "/pool/name": "",
        NODE: REMOVED,
        f"{FIRST_DEVICE}/name": "",
        f"{FIRST_DEVICE}/attributes": {"model": {}},
        f"{FIRST_DEVICE}/taints": [{}],
        "/sharedCounters": [{}],
    }


def device_edits() -> Iterator[Edit]:
    attributes = f"{FIRST_DEVICE}/attributes"
    for name in ("", "1x", "/x", "a/", "a/b/c", "A/x", "a_/x", "a" * 33, LONG + "/x", "gpu.example.com/" + "x" * 50):
        yield {attributes: {name: {"int": 1}}}
        yield {f"{FIRST_DEVICE}/capacity": {name: {"value": "1"}}}
    for value in (
        {},
        {"int": 1, "bool": True},
        {"string": ""},
        {"string": "x" * 65},
        {"version": "1.2"},
        {"version": ""},
        {"version": "1.2.3-alpha.1+build"},
        {"version": "1.2.3+" + "x" * 64},
        {"ints": [1]},
        {"strings": []},
        {"string": "x", "strings": ["y"]},
        {"versions": ["x"]},
    ):
        yield {attributes: {"model": value}}
    yield {attributes: {"x" * 100: {"string": "x" * 65}}}
    yield {attributes: {name: {"int": 1} for name in numbered(32)}}
    yield {attributes: {name: {"int": 1} for name in numbered(33)}}
    taints = f"{FIRST_DEVICE}/taints"
    yield {taints: [TAINT]}
    yield {taints: [TAINT] * 17}
    yield {taints: [{}]}
    for name, values in {
        "key": ("", "a b", "/x"),
        "value": ("", "a b", LONG),
        "effect": ("", "None", "PreferNoSchedule"),
    }.items():
        for value in values:
            yield {taints: [{**TAINT, name: value}]}
    yield from binding_conditions(FIRST_DEVICE)
    yield {f"{FIRST_DEVICE}/nodeAllocatableResources": {"cpu": {}}}


def capacity_edits() -> Iterator[Edit]:
    memory = f"{FIRST_DEVICE}/capacity/memory"
    shared = {f"{FIRST_DEVICE}/allowMultipleAllocations": True}
    policy = f"{memory}/requestPolicy"
    yield {policy: {"default": "1Gi"}}
    yield {f"{FIRST_DEVICE}/allowMultipleAllocations": False, policy: {}}
    for value in (
        {},
        {"default": "1Gi"},
        {"default": "1Gi", "validValues": ["1Gi", "2Gi"]},
        {"validValues": ["1Gi"]},
        {"default": "3Gi", "validValues": ["1Gi", "2Gi"]},
        {"default": "1Gi", "validValues": ["2Gi", "1Gi"]},
        {"default": "1Gi", "validValues": ["1Gi", "1024Mi"]},
        {"default": "1Gi", "validValues": ["1Gi", "90Gi"]},
        {"default": "1", "validValues": [str(number) for number in range(1, 12)]},
        {"default": "1Gi", "validValues": ["1Gi"], "validRange": {"min": "1Gi"}},
        {"validRange": {"min": "1Gi"}},
        {"default": "1Gi", "validRange": {}},
        {"default": "1Gi", "validRange": {"min": "1Gi"}},
        {"default": "1Gi", "validRange": {"min": "90Gi"}},
        {"default": "1Gi", "validRange": {"min": "2Gi"}},
        {"default": "3Gi", "validRange": {"min": "1Gi", "max": "2Gi"}},
        {"default": "2Gi", "validRange": {"min": "2Gi", "max": "1Gi"}},
        {"default": "1Gi", "validRange": {"min": "1Gi", "max": "90Gi"}},
        {"default": "1Gi", "validRange": {"min": "1Gi", "step": "0"}},
        {"default": "1Gi", "validRange": {"min": "1Gi", "step": "-1"}},
        {"default": "1Gi", "validRange": {"min": "1Gi", "step": "80Gi"}},
        {"default": "4Gi", "validRange": {"min": "1Gi", "max": "6Gi", "step": "2Gi"}},
        {"default": "3Gi", "validRange": {"min": "1Gi", "max": "5Gi", "step": "2Gi"}},
        {"default": "-1", "validRange": {"min": "-2", "step": "1"}},
        {"default": "1500m", "validRange": {"min": "1", "step": "1"}},
        {"default": "1500m", "validValues": ["1500m", "1600m"]},
        {"default": "1Gi", "validRange": {"min": "1Gi", "step": "10E"}},
    ):
        yield {**shared, policy: value}
    yield {**shared, memory: {"value": "0"}}


def counter_edits() -> Iterator[Edit]:
    only: Edit = {"/devices": REMOVED}
    counters = "/sharedCounters"
    yield {counters: [COUNTERS]}
    yield {**only, counters: [COUNTERS]}
    yield {**only, counters: []}
    yield {**only, counters: [COUNTERS, COUNTERS]}
    yield {**only, counters: [{**COUNTERS, "name": name} for name in numbered(9)]}
    yield {**only, counters: [{}]}
    for name in NAMES:
        yield {**only, counters: [{**COUNTERS, "name": name}]}
        yield {**only, counters: [{"name": "memory", "counters": {name: {"value": "1"}}}]}
    yield {**only, counters: [{"name": "memory", "counters": {name: {"value": "1"} for name in numbered(33)}}]}
    consumes = f"{FIRST_DEVICE}/consumesCounters"
    yield {consumes: [CONSUMES]}
    yield {consumes: [CONSUMES, CONSUMES]}
    yield {consumes: [{**CONSUMES, "counterSet": name} for name in numbered(3)]}
    yield {consumes: [{}]}
    for name in NAMES:
        yield {consumes: [{**CONSUMES, "counterSet": name}]}
        yield {consumes: [{"counterSet": "memory", "counters": {name: {"value": "1"}}}]}
    yield {consumes: [{"counterSet": "memory", "counters": {name: {"value": "1"} for name in numbered(33)}}]}
    yield {consumes: [{**CONSUMES, "compatibilityGroups": ["Bad"]}]}


def placement_edits() -> Iterator[Edit]:
    """Where each device is, when the slice says that every device says so itself."""
    each: Edit = {NODE: REMOVED, "/perDeviceNodeSelection": True}
    yield {f"{FIRST_DEVICE}/nodeName": "node-1"}
    yield {f"{FIRST_DEVICE}/allNodes": True}
    yield each
    for node in ("node-1", "", "Bad"):
        yield {**each, f"{FIRST_DEVICE}/nodeName": node}
    for everywhere in (True, False):
        yield {**each, f"{FIRST_DEVICE}/allNodes": everywhere}
    yield {**each, f"{FIRST_DEVICE}/allNodes": True, f"{FIRST_DEVICE}/nodeName": "node-1"}
    for edit in node_selectors(f"{FIRST_DEVICE}/nodeSelector"):
        yield {**each, **edit}


# --- DeviceTaintRule

RULE_SPEC = {
    "deviceSelector": {"driver": "gpu.example.com", "pool": "node-1", "device": "gpu-0"},
    "taint": {key: value for key, value in TAINT.items() if key != "timeAdded"},
}


def rule_edits() -> Iterator[Edit]:
    yield {}
    yield {"/deviceSelector": REMOVED}
    yield {"/deviceSelector": {}}
    for name, values in {
        "driver": ("", "A b", LONG, "Gpu.example.com"),
        "pool": POOLS,
        "device": NAMES,
    }.items():
        for value in values:
            yield {f"/deviceSelector/{name}": value}
    for name, values in {
        "key": ("", "a b", "/x"),
        "value": ("", "a b", LONG),
        "effect": ("", "None", "NoExecute", "PreferNoSchedule"),
    }.items():
        for value in values:
            yield {f"/taint/{name}": value}
    yield {"/taint": REMOVED}
    yield {"/taint": {}, "/deviceSelector/pool": "A"}


def rule_status_edits() -> Iterator[Edit]:
    yield {"/conditions": [CONDITION]}
    yield {"/conditions": [CONDITION, CONDITION]}
    yield {"/conditions": [{**CONDITION, "type": f"Ready{name}"} for name in numbered(9)]}
    yield from conditions("/conditions")


# --- the steps


def named(name: str, spec: Any, **metadata: Any) -> Any:
    return {"metadata": {"name": name, **metadata}, "spec": spec}


def collection(plural: str, namespace: str = "") -> str:
    return f"{GROUP}/namespaces/{namespace}/{plural}" if namespace else f"{GROUP}/{plural}"


def creates(place: str, spec: Any, edits: Iterator[Edit]) -> Iterator[Step]:
    for edit in edits:
        yield Step("POST", place + DRY, named("created", edited(spec, edit)))


def updates(place: str, name: str, section: str, base: Any, edits: Iterator[Edit] | list[Edit]) -> Iterator[Step]:
    target = f"{place}/{name}{'/status' if section == 'status' else ''}{DRY}"
    for edit in edits:
        body = [{"op": "add", "path": f"/{section}", "value": edited(base, edit)}]
        yield Step("PATCH", target, body, JSON_PATCH)


def metadata_steps() -> Iterator[Step]:
    """Names, which the API declares for one of the kinds and writes by hand for the others."""
    for place, spec in (
        (collection("resourceclaims", NAMESPACE), CLAIM_SPEC),
        (collection("resourceclaimtemplates", NAMESPACE), {"spec": CLAIM_SPEC}),
        (collection("deviceclasses"), CLASS_SPEC),
        (collection("resourceslices"), SLICE_SPEC),
        (collection("devicetaintrules"), RULE_SPEC),
    ):
        for name in ("", "Bad", "a" * 254, "a/b"):
            yield Step("POST", place + DRY, named(name, spec))
        yield Step("POST", place + DRY, {"metadata": {"generateName": "Bad.generated-"}, "spec": spec})
        yield Step("POST", place + DRY, named("created", spec, labels={"a b": "c d"}))
        yield Step("POST", place + DRY, named("Bad", {}))
        yield Step("POST", place + DRY, {"metadata": {"name": "created"}})


def permission_steps() -> Iterator[Step]:
    """Callers who may write the status of claims, and not all that is in it."""
    rbac, subject = "/apis/rbac.authorization.k8s.io/v1", {"kind": "Group", "apiGroup": RBAC_GROUP, "name": "writers"}
    grants = {
        "writer": [(["resourceclaims/status", "resourceclaims"], ["get", "patch"], [])],
        "driver": [(["resourceclaims/driver"], ["arbitrary-node:patch"], ["other.example.com"])],
        "node": [(["resourceclaims/driver"], ["associated-node:patch"], ["gpu.example.com"])],
        "binder": [(["resourceclaims/binding"], ["patch"], [])],
    }
    for name, granted in grants.items():
        rules = [
            {"apiGroups": ["resource.k8s.io"], "resources": resources, "verbs": verbs, "resourceNames": names}
            for resources, verbs, names in granted
        ]
        ref = {"apiGroup": RBAC_GROUP, "kind": "ClusterRole", "name": f"claims-{name}"}
        subjects = [subject if name == "writer" else {**subject, "name": name}]
        yield Step("POST", f"{rbac}/clusterroles", {"metadata": {"name": ref["name"]}, "rules": rules})
        binding = {"metadata": {"name": ref["name"]}, "roleRef": ref, "subjects": subjects}
        yield Step("POST", f"{rbac}/clusterrolebindings", binding, settle=0.1)
    account = {"Impersonate-User": "system:serviceaccount:dra:driver"}
    on_node = {**account, "Impersonate-Extra-authentication.kubernetes.io%2Fnode-name": "node-1"}
    placed = {"/allocation/nodeSelector": {"nodeSelectorTerms": [NODE_TERM]}}
    device = {"/devices/0/conditions": [CONDITION]}
    edits: list[Edit] = [{}, {"/devices": []}, placed, {**placed, **device}, {"/reservedFor": [], **device}]
    other = {"/devices": [{**DEVICE_STATUS, "driver": "other.example.com"}]}
    for caller in ({"Impersonate-User": "ann"}, account, on_node):
        for groups in ([], ["driver"], ["node"], ["binder"], ["binder", "driver"], ["binder", "node"]):
            headers = {**caller, "Impersonate-Group": ["writers", *groups], **JSON_PATCH}
            for edit in (*edits, other):
                body = [{"op": "add", "path": "/status", "value": edited(STATUS, edit)}]
                yield Step("PATCH", f"{collection('resourceclaims', NAMESPACE)}/stored/status{DRY}", body, headers)


def template_steps() -> Iterator[Step]:
    place = collection("resourceclaimtemplates", NAMESPACE)
    wrapped = [{f"/spec{pointer}": value for pointer, value in edit.items()} for edit in claim_edits()]
    yield from creates(place, {"spec": CLAIM_SPEC}, iter(wrapped))
    for metadata in ({"labels": {"a b": "c"}}, {"annotations": {"a b": "c"}}, {"labels": {"a": "b c"}}, {"name": "x"}):
        yield Step("POST", place + DRY, named("created", {"metadata": metadata, "spec": CLAIM_SPEC}))
    yield Step("POST", place, named("stored", {"spec": CLAIM_SPEC}))
    changed = [{f"/spec{pointer}": value for pointer, value in edit.items()} for edit in CLAIM_UPDATES]
    yield from updates(place, "stored", "spec", {"spec": CLAIM_SPEC}, changed)
    yield from updates(place, "stored", "spec", {"spec": CLAIM_SPEC}, [{"/metadata": {"labels": {"a": "b"}}}])


def claim_steps() -> Iterator[Step]:
    place = collection("resourceclaims", NAMESPACE)
    yield from creates(place, CLAIM_SPEC, claim_edits())
    admin = edited(CLAIM_SPEC, {f"{EXACTLY}/adminAccess": True})
    privileged = collection("resourceclaims", ADMIN_NAMESPACE)
    yield Step("POST", privileged, named("stored", admin))
    granted = edited(STATUS, {f"{ALLOCATED}/adminAccess": True})
    for _ in range(2):  # the second one finds what the first one was granted
        body = [{"op": "add", "path": "/status", "value": granted}]
        yield Step("PATCH", f"{privileged}/stored/status", body, JSON_PATCH)
    yield Step("POST", place, named("stored", CLAIM_SPEC))
    yield from updates(place, "stored", "spec", CLAIM_SPEC, CLAIM_UPDATES)
    yield from updates(place, "stored", "status", STATUS, status_edits())
    yield Step("POST", place, named("allocated", CLAIM_SPEC, finalizers=["example.com/hold"]))
    body = [{"op": "add", "path": "/status", "value": STATUS}]
    yield Step("PATCH", f"{place}/allocated/status", body, JSON_PATCH)
    yield from updates(place, "allocated", "status", STATUS, STORED_STATUS_UPDATES)
    yield Step("DELETE", f"{place}/allocated")
    yield from updates(place, "allocated", "status", STATUS, [{"/reservedFor/-": {**POD, "uid": "2"}}])
    yield from updates(place, "allocated", "status", STATUS, [{"/reservedFor": []}])


def changeable_steps(plural: str, spec: Any, edits: Any) -> Iterator[Step]:
    """A kind whose spec may change: the same edits on create and on update."""
    place = collection(plural)
    yield from creates(place, spec, edits())
    yield Step("POST", place, named("stored", spec))
    yield from updates(place, "stored", "spec", spec, edits())


def steps() -> Iterator[Step]:
    labels = {"resource.kubernetes.io/admin-access": "true"}
    yield Step("POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
    yield Step("POST", "/api/v1/namespaces", {"metadata": {"name": ADMIN_NAMESPACE, "labels": labels}})
    yield from metadata_steps()
    yield from claim_steps()
    yield from permission_steps()
    yield from template_steps()
    yield from changeable_steps("deviceclasses", CLASS_SPEC, class_edits)
    yield from changeable_steps("resourceslices", SLICE_SPEC, slice_edits)
    for selector in ("spec.nodeName=node-1", "spec.driver=other", "spec.pool.name=node-1", "spec.allNodes=true"):
        yield Step("GET", f"{collection('resourceslices')}?fieldSelector={selector}")
    yield from changeable_steps("devicetaintrules", RULE_SPEC, rule_edits)
    yield Step("PUT", f"{collection('devicetaintrules')}/stored{DRY}", named("stored", RULE_SPEC))
    yield from updates(collection("devicetaintrules"), "stored", "status", {}, rule_status_edits())


STEPS = list(steps())
