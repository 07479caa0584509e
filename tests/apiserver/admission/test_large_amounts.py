"""Amounts beyond all floats, or thousands of decimal places apart, against LimitRanges and quotas."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from konverge.apiserver.kinds.rules import quantities
from konverge.objects.amounts import add
from konverge.objects.quantity import Quantity
from tests.apiserver.api import Api

NAMESPACE = "/api/v1/namespaces/default"
STRATEGIC = "application/strategic-merge-patch+json"
DRY = {"dryRun": "All"}
LONG = "9" * 1000 + "e4000"


def container(name: str, limit: str, request: str = "1m") -> dict[str, Any]:
    return {"name": name, "image": "i", "resources": {"requests": {"cpu": request}, "limits": {"cpu": limit}}}


async def refusal(api: Api, *containers: dict[str, Any]) -> str:
    """Why a pod is forbidden; nothing if it is not."""
    pod = {"metadata": {"name": "p"}, "spec": {"containers": list(containers)}}
    answer = await api.send("POST", f"{NAMESPACE}/pods", pod, query=DRY)
    assert answer.status in (201, 403), answer.body
    return "" if answer.status == 201 else str(json.loads(answer.body)["message"])


async def limited(api: Api, **limit: Any) -> None:
    await api.create("default", f"{NAMESPACE}/serviceaccounts")
    await api.create("l", f"{NAMESPACE}/limitranges", spec={"limits": [{"type": "Container", **limit}]})


@pytest.mark.spec("S-71")
@pytest.mark.parametrize(
    ("bound", "limit", "request_", "ratio"),
    [
        ("2", "2m", "1m", ""),
        ("2", "2001m", "1", "2.001000"),
        ("2", "1e18", "1", "1000000000000000000.000000"),
        ("2", "1e300", "1e299", "10.000000"),
        ("2", "1e400", "1m", "+Inf"),
        ("2", "1e5000", "1m", "+Inf"),
        ("2", "2e5000", "1e5000", ""),
        ("2", "2001e4997", "1e5000", "+Inf"),
        ("2e400", "2e400", "1", ""),
        ("2e400", "2001e397", "1", "+Inf"),
        ("1e5000", "2", "1m", ""),
        ("1e5000", "1e4997", "1m", ""),
        ("1e5000", "1001e4994", "1m", "+Inf"),
        ("1e306", "1e307", "1", "+Inf"),
        ("4025m", "161m", "40m", "4.025000"),
    ],
)
async def test_a_ratio_of_any_size_is_judged(api: Api, bound: str, limit: str, request_: str, ratio: str) -> None:
    """The last is refused by the real server too: it compares floats."""
    await limited(api, maxLimitRequestRatio={"cpu": bound})
    problem = await refusal(api, container("c", limit, request_))
    assert (f"but provided ratio is {ratio}" in problem) if ratio else not problem


@pytest.mark.spec("S-71")
@pytest.mark.parametrize(
    ("part", "bound", "limit", "problem"),
    [
        ("max", "2", "1e5000", "maximum cpu usage per Container is 2, but limit is 100e4998"),
        ("max", "2", "2001m", "maximum cpu usage per Container is 2, but limit is 2001m"),
        ("max", "2", "2", ""),
        ("max", "1e5000", "1e5000", ""),
        ("max", "1e5000", "11e4999", "maximum cpu usage per Container is 100e4998, but limit is 110e4998"),
        ("max", "1e5000", "2", ""),
        ("min", "1e5000", "1e5000", "minimum cpu usage per Container is 100e4998, but request is 1m"),
        ("min", "1m", "1e5000", ""),
        ("min", "2m", "1e5000", "minimum cpu usage per Container is 2m, but request is 1m"),
    ],
)
async def test_a_bound_of_any_size_is_kept(api: Api, part: str, bound: str, limit: str, problem: str) -> None:
    await limited(api, **{part: {"cpu": bound}})
    refused = await refusal(api, container("c", limit))
    assert refused.endswith(problem) if problem else not refused


@pytest.mark.spec("S-71")
@pytest.mark.parametrize("amounts", [("1", "1e5000"), ("1e5000", "1"), (LONG, "1")])
async def test_the_containers_of_a_pod_are_added_up(api: Api, amounts: tuple[str, str]) -> None:
    await api.create("default", f"{NAMESPACE}/serviceaccounts")
    await api.create("l", f"{NAMESPACE}/limitranges", spec={"limits": [{"type": "Pod", "max": {"cpu": "2"}}]})
    problem = await refusal(api, *(container(f"c{index}", limit) for index, limit in enumerate(amounts)))
    largest = str(max(map(Quantity, amounts)))
    assert problem.endswith(f"maximum cpu usage per Pod is 2, but limit is {largest}")


@pytest.mark.spec("S-71")
def test_beside_an_amount_that_is_far_larger_another_is_nothing() -> None:
    total = {"cpu": Quantity("1")}
    for more in ("1", "1e5000", "1"):
        add(total, {"cpu": Quantity(more), "memory": Quantity(more)})
    assert total == {"cpu": Quantity("1e5000"), "memory": Quantity("1e5000")}


async def quota(api: Api, hard: dict[str, str], used: dict[str, str]) -> None:
    await api.create("default", f"{NAMESPACE}/serviceaccounts")
    await api.create("q", f"{NAMESPACE}/resourcequotas", spec={"hard": hard})
    await api.patch(f"{NAMESPACE}/resourcequotas/q/status", {"status": {"hard": hard, "used": used}})


@pytest.mark.spec("S-71")
@pytest.mark.parametrize(
    ("hard", "limit", "allowed"),
    [
        ("10", "1e5000", False),
        ("10", "1e400", False),
        ("10", "9", True),
        ("10", "9001m", False),
        ("1e5000", "1", True),
        ("1e5000", "1e5000", False),
        ("1e6000", "1e5000", False),
    ],
)
async def test_a_quota_is_kept_by_any_amount(api: Api, hard: str, limit: str, allowed: bool) -> None:
    """What is used afterwards cannot be said where the amounts are too far apart."""
    await quota(api, {"limits.cpu": hard}, {"limits.cpu": "1"})
    problem = await refusal(api, container("c", limit))
    asked, most = Quantity(limit), Quantity(hard)
    numbers = f"requested: limits.cpu={asked}, used: limits.cpu=1, limited: limits.cpu={most}"
    assert problem == ("" if allowed else f'pods "p" is forbidden: exceeded quota: q, {numbers}')


@pytest.mark.spec("S-71")
@pytest.mark.parametrize(("size", "code"), [("1e5000", 403), ("11", 403), ("9999m", 201), ("10", 201)])
async def test_a_claim_of_any_size_counts(api: Api, size: str, code: int) -> None:
    await quota(api, {"requests.storage": "10"}, {"requests.storage": "0"})
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}}
    claim = {"metadata": {"name": "c"}, "spec": spec}
    await api.call("POST", f"{NAMESPACE}/persistentvolumeclaims", claim, expect=code)


@pytest.mark.spec("S-71")
@pytest.mark.parametrize(
    ("ratio", "least", "most", "problem"),
    [
        ("1e400", "1", "4", "ratio 10e399 is greater than max/min = 4.000000"),
        ("1e5000", "1", "4", "ratio 100e4998 is greater than max/min = 4.000000"),
        ("2", "1m", "1e400", ""),
        ("2", "1m", "1e5000", ""),
        ("1e400", "1m", "1e5000", ""),
        ("5", "1", "4", "ratio 5 is greater than max/min = 4.000000"),
        ("4", "1", "4", ""),
    ],
)
async def test_a_limit_range_of_any_size_is_judged(api: Api, ratio: str, least: str, most: str, problem: str) -> None:
    limit = {"type": "Container", "maxLimitRequestRatio": {"cpu": ratio}, "min": {"cpu": least}, "max": {"cpu": most}}
    body = {"metadata": {"name": "l"}, "spec": {"limits": [limit]}}
    answer = await api.call("POST", f"{NAMESPACE}/limitranges", body, expect=422 if problem else 201)
    assert problem in answer.get("message", "")


@pytest.mark.spec("S-71")
@pytest.mark.parametrize(("whole", "code"), [("2e5000", 201), ("2", 422)])
async def test_the_resources_of_a_pod_are_compared_with_those_of_its_containers(
    api: Api, whole: str, code: int
) -> None:
    await api.create("default", f"{NAMESPACE}/serviceaccounts")
    containers = [container("a", "1", "1"), container("b", "1e5000", "1e5000")]
    resources = {"requests": {"cpu": whole}, "limits": {"cpu": "3e5000"}}
    pod = {"metadata": {"name": "p"}, "spec": {"containers": containers, "resources": resources}}
    await api.call("POST", f"{NAMESPACE}/pods", pod, expect=code)


@pytest.mark.spec("S-71")
async def test_a_negative_amount_of_any_size_is_refused(api: Api) -> None:
    await api.create("default", f"{NAMESPACE}/serviceaccounts")
    for amount in ("-1", "-1e400", "-1e5000"):
        pod = {"metadata": {"name": "p"}, "spec": {"containers": [container("c", "1", amount)]}}
        refused = await api.call("POST", f"{NAMESPACE}/pods", pod, expect=422)
        assert "must be greater than or equal to 0" in refused["message"]


@pytest.mark.parametrize(("text", "sign"), [("1e5000", 1), ("-1e5000", -1)])
def test_an_amount_that_cannot_be_counted_is_beyond_those_that_can(text: str, sign: int) -> None:
    assert quantities.amount(text) * sign > quantities.amount("9" * 4000 + "e4000") > 0
    assert quantities.quotient(quantities.amount(text), 1) == sign * math.inf == quantities.quotient(10**400, sign)
    assert quantities.quotient(-quantities.amount(text), -sign) == math.inf


@pytest.mark.spec("S-71")
@pytest.mark.parametrize(("amount", "shown"), [("-1e5000", -(2**63)), ("-1e400", -(2**63)), ("-7", -7)])
async def test_a_volume_of_a_negative_size_is_refused(api: Api, amount: str, shown: int) -> None:
    spec = {"capacity": {"storage": amount}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/x"}}
    body = {"metadata": {"name": "v"}, "spec": spec}
    refused = await api.call("POST", "/api/v1/persistentvolumes", body, expect=422)
    assert f"Invalid value: {shown}: must be a valid resource quantity" in refused["message"]


@pytest.mark.spec("S-71")
@pytest.mark.parametrize(
    ("hard", "before", "after", "code"),
    [
        ("1e5000", "1e5000", "2", 200),
        ("1e5000", "1", "1e5000", 403),
        ("10", "1", "1e5000", 403),
        ("10", "1", "10", 200),
        ("10", "1", "11", 403),
    ],
)
async def test_a_claim_grows_or_shrinks_by_any_amount(api: Api, hard: str, before: str, after: str, code: int) -> None:
    await api.create("grows", "/apis/storage.k8s.io/v1/storageclasses", provisioner="x", allowVolumeExpansion=True)
    await quota(api, {"requests.storage": hard}, {"requests.storage": "0"})
    path, sizes = f"{NAMESPACE}/persistentvolumeclaims", [{"requests": {"storage": size}} for size in (before, after)]
    spec = {"accessModes": ["ReadWriteOnce"], "resources": sizes[0], "storageClassName": "grows"}
    await api.create("c", path, spec=spec)
    await api.patch(f"{path}/c/status", {"status": {"phase": "Bound", "capacity": {"storage": "1"}}})
    await api.patch(f"{path}/c", {"spec": {"resources": sizes[1]}}, expect=code)


@pytest.mark.spec("S-71")
@pytest.mark.parametrize(
    ("cpu", "problem"),
    [("1e5000", "cpu, requested: 100e4998, allocatable: 2000"), ("3", "requested: 3000, "), ("2", "")],
)
async def test_a_pod_grows_as_far_as_its_node(api: Api, cpu: str, problem: str) -> None:
    await api.create("default", f"{NAMESPACE}/serviceaccounts")
    await api.create("n", "/api/v1/nodes", status={"allocatable": {"cpu": "2", "memory": "1Gi"}})
    await api.create("p", f"{NAMESPACE}/pods", spec={"nodeName": "n", "containers": [container("c", "1", "1")]})
    resized = {"spec": {"containers": [container("c", cpu, cpu)]}}
    answer = await api.send("PATCH", f"{NAMESPACE}/pods/p/resize", resized, content_type=STRATEGIC)
    assert answer.status == (403 if problem else 200), answer.body
    assert problem in answer.body.decode()
