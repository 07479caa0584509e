"""Snapshots of objects: the same from run to run, other when an object is."""

from __future__ import annotations

import pytest

from konverge.objects.kinds.core_v1 import ConfigMap, Pod
from konverge.objects.meta import ObjectMeta, OwnerReference
from konverge.sim import Cluster
from konverge.testing import masked
from tests.testing.suites import run

pytest_plugins = ["pytester"]

PLUGINS = ("-p", "no:asyncio", "-p", "no:anyio", "-p", "no:xdist", "-p", "no:cacheprovider")
SUITE = """
from konverge.objects.kinds.apps_v1 import Deployment
from konverge.objects.kinds.core_v1 import Pod

async def test_children(cluster, client, operator, object_snapshot):
    async with operator(controllers):
        await client.create(SHOP)
        await settled(cluster)
        assert await client.list(Deployment, "default") == object_snapshot
        assert await client.list(Pod, "default") == object_snapshot
"""


@pytest.mark.spec("O-50")
def test_the_same_at_another_seed_and_other_when_the_object_is(pytester: pytest.Pytester) -> None:
    assert run(pytester, SUITE, "--snapshot-update", plugins=PLUGINS).ret == 0
    written = next(pytester.path.rglob("*.ambr")).read_text()
    assert "kind: Deployment" in written
    assert "resourceVersion" not in written
    assert "managedFields" not in written
    assert "creationTimestamp: <time>" in written
    assert "uid: <uid 1>" in written
    run(pytester, SUITE, "--konverge-seed", "99", plugins=PLUGINS).assert_outcomes(passed=1)
    changed = SUITE.replace("SHOP)", "WebApp(metadata=SHOP.metadata, spec=WebAppSpec(image='nginx:2')))")
    other = run(pytester, changed, plugins=PLUGINS)
    other.assert_outcomes(failed=1)
    other.stdout.fnmatch_lines(["*nginx:2*"])


@pytest.mark.spec("O-50")
def test_where_a_pod_runs_is_masked_and_that_it_runs_is_not() -> None:
    status = {
        "hostIP": "10.0.0.1",
        "hostIPs": [{"ip": "10.0.0.1"}],
        "podIP": "10.1.0.7",
        "podIPs": [{"ip": "10.1.0.7"}],
    }
    assert masked({"spec": {"nodeName": "node-2"}, "status": status}) == {
        "spec": {"nodeName": "<node>"},
        "status": {"hostIP": "<address>", "hostIPs": ["<address>"], "podIP": "<address>", "podIPs": ["<address>"]},
    }
    assert masked({"spec": {"nodeName": ""}, "status": {"podIP": None}}) == {
        "spec": {"nodeName": ""},
        "status": {"podIP": None},
    }


@pytest.mark.spec("O-50")
def test_references_still_show_which_object_they_mean() -> None:
    uids = ["11111111-1111-4111-8111-111111111111", "22222222-2222-4222-8222-222222222222"]
    owners = [OwnerReference(api_version="v1", kind="A", name=f"web-{n}", uid=uids[n]) for n in (0, 1)]
    maps = [
        ConfigMap(metadata=ObjectMeta(name="web-0", generate_name="web-", uid=uids[0])),
        ConfigMap(metadata=ObjectMeta(name="web-1", generate_name="web-", uid=uids[1], owner_references=[owners[0]])),
        ConfigMap(metadata=ObjectMeta(name="c", owner_references=owners), data={"of": "web-1 and web-10"}),
    ]
    first, second, third = masked(maps)
    names = [first["metadata"]["name"], second["metadata"]["name"]]
    assert names == ["web-<generated 1>", "web-<generated 2>"]
    assert first["metadata"]["uid"] != second["metadata"]["uid"]
    assert second["metadata"]["ownerReferences"][0]["uid"] == first["metadata"]["uid"]
    assert [owner["name"] for owner in third["metadata"]["ownerReferences"]] == names


@pytest.mark.spec("O-50")
@pytest.mark.virtual
async def test_a_listing_is_a_list_of_its_objects() -> None:
    async with Cluster(controllers=False, kubelet=False, scheduler=False) as cluster:
        for name in ("a", "b"):
            await cluster.client.create(
                ConfigMap(metadata=ObjectMeta(name=name, namespace="default"), data={"x": name})
            )
        shown = masked(await cluster.client.list(ConfigMap, "default"))
        assert [(obj["kind"], obj["metadata"]["name"], obj["data"]) for obj in shown] == [
            ("ConfigMap", "a", {"x": "a"}),
            ("ConfigMap", "b", {"x": "b"}),
        ]
        assert masked(await cluster.client.list(Pod)) == []
