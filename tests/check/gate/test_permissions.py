"""What an account may not do, and what nobody can do here."""

from __future__ import annotations

import asyncio
import functools
from contextlib import suppress
from typing import Any

import pytest

from konverge.check.accounts import granted
from konverge.check.model import Plan, Run, Setup, Subject, Task
from konverge.check.oracles import judge
from konverge.check.prepare import prepare
from konverge.check.reference import reference_of
from konverge.check.run import VirtualRest, perform
from konverge.sim import Cluster, VirtualLoop
from tests.check.small import DEFINITION, Api, Caches, Refused, Small, create


def asking(*targets: str) -> Run:
    """Of an operator that may read things, and asks for these as well."""

    async def ask(api: Api, caches: Caches) -> None:
        for target in targets:
            with suppress(Refused):
                await api.call("GET", target)

    api = "rbac.authorization.k8s.io"
    rules = [{"apiGroups": ["demo.dev"], "resources": ["things"], "verbs": ["*"]}]
    role = {"apiVersion": f"{api}/v1", "kind": "ClusterRole", "metadata": {"name": "me"}, "rules": rules}
    binding = {
        "apiVersion": f"{api}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "me"},
        "roleRef": {"apiGroup": api, "kind": "ClusterRole", "name": "me"},
        "subjects": [{"kind": "ServiceAccount", "name": "me", "namespace": "default"}],
    }
    objects, account = granted([role, binding], "default")
    setup = Setup(objects=(DEFINITION, *objects), account=account, nodes=0)
    task = Task(subject=Subject(target="small"), setup=setup, steps=(create("create"),), plan=Plan("reference"))

    async def performed() -> Run:
        async with Cluster(nodes=0) as cluster:
            token = await prepare(cluster, setup)
            await cluster.settle()
            return await perform(task, Small(ask), VirtualRest(), cluster, token)

    factory: Any = functools.partial(VirtualLoop, 0)
    with asyncio.Runner(loop_factory=factory) as runner:
        return runner.run(performed())


def alarms(run: Run) -> list[str]:
    return [alarm.field for alarm in judge(run, reference_of(run, run)) if alarm.oracle == "permissions"]


@pytest.mark.spec("K-40")
def test_a_resource_that_the_account_may_not_read_is_said() -> None:
    run = asking("/api/v1/namespaces/default/pods", "/apis/apps/v1/namespaces/default/statefulsets/a/scale")
    assert sorted(alarms(run)) == ["get apps/statefulsets/scale", "list pods"]


@pytest.mark.spec("K-40")
def test_what_is_asked_to_learn_what_a_cluster_is_needs_no_permission() -> None:
    run = asking("/version/openshift", "/oapi/v1", "/apis/route.openshift.io/v1/routes", "/metrics")
    refused = [exchange.resource for exchange in run.exchanges if exchange.status == 403]
    assert refused[:4] == ["/version/openshift", "/oapi/v1", "route.openshift.io/routes", "/metrics"]
    assert alarms(run) == []
