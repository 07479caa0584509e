"""Priority and fairness: too many requests at once, to kube-apiserver and to ours."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import ExitStack, closing
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from tests.real.extension_server import GROUP, Extended, extended, front_proxy
from tests.real.sides import side_of
from tools.control_plane import ControlPlane

pytestmark = [pytest.mark.real, pytest.mark.spec("S-50")]

Sides = tuple[Extended, Extended]
FLOW = "/apis/flowcontrol.apiserver.k8s.io/v1"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
COATS = f"/apis/{GROUP}/v1/namespaces/default/coats"
UIDS = ("x-kubernetes-pf-flowschema-uid", "x-kubernetes-pf-prioritylevel-uid")
EVERYTHING = {
    "resourceRules": [
        {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "clusterScope": True, "namespaces": ["*"]}
    ],
    "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
}


@pytest.fixture(scope="module")
def both(binaries: Path, embedded_server: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sides]:
    """kube-apiserver and ours, each with an extension server that can be waited for, and users who may do that."""
    folder = tmp_path_factory.mktemp("flows")
    role = {"metadata": {"name": "waiters"}, "rules": [{"apiGroups": [GROUP], "resources": ["*"], "verbs": ["*"]}]}
    subject = {"kind": "Group", "name": "waiters", "apiGroup": "rbac.authorization.k8s.io"}
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "waiters"}
    binding = {"metadata": {"name": "waiters"}, "subjects": [subject], "roleRef": reference}
    with ExitStack() as stack:
        plane = stack.enter_context(ControlPlane(binaries, extra_args=front_proxy(folder)))
        real = stack.enter_context(extended(plane.kubeconfig, folder / "real"))
        ours = stack.enter_context(extended(embedded_server, folder / "ours"))
        for side in (real, ours):
            side.is_available()
            for plural, body in (("clusterroles", role), ("clusterrolebindings", binding)):
                assert side.ask("POST", f"{RBAC}/{plural}", body)[0] == 201
        yield real, ours


def level(side: Extended, name: str, **limited: Any) -> None:
    """A level for the requests of a user of the same name."""
    spec = {"type": "Limited", "limited": {"lendablePercent": 0, "borrowingLimitPercent": 0, **limited}}
    body = {"metadata": {"name": name}, "spec": spec}
    assert side.ask("POST", f"{FLOW}/prioritylevelconfigurations", body)[0] == 201
    schema = {
        "priorityLevelConfiguration": {"name": name},
        "matchingPrecedence": 50,
        "distinguisherMethod": {"type": "ByUser"},
        "rules": [{"subjects": [{"kind": "User", "user": {"name": name}}], **EVERYTHING}],
    }
    assert side.ask("POST", f"{FLOW}/flowschemas", {"metadata": {"name": name}, "spec": schema})[0] == 201
    uid = uid_of(side, "flowschemas", name)
    end = time.monotonic() + 60
    while raw(side, "/version", name)[1].get(UIDS[0]) != uid:  # the real server learns of it by and by
        assert time.monotonic() < end
        time.sleep(0.1)


def uid_of(side: Extended, plural: str, name: str) -> str:
    place = side.side
    place.connection.request("GET", f"{FLOW}/{plural}/{name}", None, place.headers)
    return str(json.loads(place.connection.getresponse().read())["metadata"]["uid"])


def raw(side: Extended, path: str, user: str) -> tuple[int, dict[str, str], bytes]:
    with closing(side_of(side.kubeconfig)) as place:
        headers = {**place.headers, "Impersonate-User": user, "Impersonate-Group": "waiters"}
        place.connection.request("GET", path, None, headers)
        response = place.connection.getresponse()
        fields = {name.lower(): value for name, value in response.headers.items()}
        return response.status, fields, response.read()


def at_once(side: Extended, user: str, served: int, refused: int) -> list[tuple[int, dict[str, str], bytes]]:
    """The answers to requests that are held until the others are refused, in the order of their codes."""
    with ThreadPoolExecutor(served + refused) as threads:
        asked = [threads.submit(raw, side, f"{COATS}/held", user) for _ in range(served + refused)]
        early = [future.result() for future in islice(as_completed(asked, timeout=120), refused)]
        for _ in range(served):
            assert side.ask("GET", f"{COATS}/next")[0] == 200
        answers = [future.result() for future in asked]
    assert {answer[0] for answer in early} == {429}
    return sorted(answers, key=lambda answer: answer[0])


def refusal(answer: tuple[int, dict[str, str], bytes]) -> Any:
    names = ("content-type", "retry-after", "x-content-type-options", "cache-control")
    return answer[0], {name: answer[1].get(name) for name in names}, answer[2]


def test_who_finds_no_seat_is_refused(both: Sides) -> None:
    refused = []
    for side in both:
        level(side, "jail", nominalConcurrencyShares=0, limitResponse={"type": "Reject"})
        answers = at_once(side, "jail", 1, 2)
        assert [answer[0] for answer in answers] == [200, 429, 429]
        for plural, field in zip(("flowschemas", "prioritylevelconfigurations"), UIDS, strict=True):
            assert {answer[1][field] for answer in answers} == {uid_of(side, plural, "jail")}
        refused.append([refusal(answer) for answer in answers[1:]])
    assert refused[1] == refused[0]


def test_a_queue_that_is_full_refuses(both: Sides) -> None:
    refused = []
    queuing = {"queues": 1, "handSize": 1, "queueLengthLimit": 1}
    for side in both:
        level(side, "lane", nominalConcurrencyShares=1, limitResponse={"type": "Queue", "queuing": queuing})
        answers = at_once(side, "lane", 4, 1)  # three seats, and one place to wait
        assert [answer[0] for answer in answers] == [200, 200, 200, 200, 429]
        refused.append(refusal(answers[-1]))
    assert refused[1] == refused[0]


@pytest.mark.parametrize(
    ("path", "user"),
    [
        ("/readyz", "someone"),
        ("/version", "someone"),
        ("/api/v1/nodes", "system:kube-scheduler"),
        ("/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/a", "system:kube-controller-manager"),
        ("/api/v1/namespaces/kube-system/pods", "system:serviceaccount:kube-system:someone"),
        ("/api/v1/namespaces/default/pods/a/log", "someone"),
    ],
)
def test_the_same_schema_and_level_are_found(both: Sides, path: str, user: str) -> None:
    found = []
    for side in both:
        headers = raw(side, path, user)[1]
        names = {
            uid_of(side, plural, item["metadata"]["name"]): item["metadata"]["name"]
            for plural in ("flowschemas", "prioritylevelconfigurations")
            for item in side.ask("GET", f"{FLOW}/{plural}")[2]["items"]
        }
        found.append([names.get(headers.get(field, ""), headers.get(field)) for field in UIDS])
    assert found[1] == found[0]
