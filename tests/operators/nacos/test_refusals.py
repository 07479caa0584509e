"""What the definition refuses on the embedded server, what got in under an older definition, and the longest names."""

from __future__ import annotations

import pytest

from konverge.client import Invalid
from konverge.objects.kinds.apps_v1 import StatefulSet
from konverge.objects.kinds.batch_v1 import Job
from konverge.objects.kinds.core_v1 import Pod, Service
from konverge.operators.nacos.desired import InvalidSpec
from tests.operators.nacos.specs import BAD, GOOD
from tests.operators.nacos.test_children import desired_of
from tests.operators.nacos.world import CLUSTER, MYSQL, SPACE, a_world

pytestmark = [pytest.mark.virtual, pytest.mark.spec("N-02")]


async def test_the_definition_refuses_with_the_path_of_the_field() -> None:
    async with a_world() as world:
        for spec, path, message in BAD:
            with pytest.raises(Invalid) as refused:
                await world.create("nacos", spec)
            causes = {cause.field: cause.message for cause in refused.value.details.causes}
            assert message in causes.get(path, ""), (spec, causes)
        for number, spec in enumerate(GOOD.values()):
            await world.create(f"good-{number}", spec)


@pytest.mark.parametrize(
    ("spec", "path"),
    [
        ({"volume": {"requests": {"storage": "0"}}}, "spec.volume.requests.storage"),
        ({"volume": {"requests": {"storage": "-1"}}}, "spec.volume.requests.storage"),
        ({"volume": {"persistentVolumeSize": "-1Gi"}}, "spec.volume.persistentVolumeSize"),
        (
            {"volume": {"volumeClaimTemplate": {"spec": {"resources": {"requests": {"storage": "0"}}}}}},
            "spec.volume.volumeClaimTemplate.spec.resources.requests.storage",
        ),
        ({"volume": {"enabled": True, "volumeClaimTemplate": {"spec": {}}}}, "spec.volume.requests"),
        ({"volume": {"emptyDir": {"sizeLimit": "0"}}}, "spec.volume.emptyDir.sizeLimit"),
        ({"resources": {"requests": {"cpu": "-1"}}}, "spec.resources.requests.cpu"),
        ({"resources": {"limits": {"memory": "-1"}}}, "spec.resources.limits.memory"),
        (
            {"resources": {"requests": {"cpu": 1, "memory": "1025Mi"}, "limits": {"cpu": 1, "memory": "1Gi"}}},
            "spec.resources.requests.memory",
        ),
    ],
)
def test_amounts_are_checked_again(spec: dict[str, object], path: str) -> None:
    with pytest.raises(InvalidSpec) as wrong:
        desired_of(spec)
    assert str(wrong.value).startswith(f"{path}: ")


WITH_JOB = {**MYSQL, "mysqlInitImage": "mysql:8"}


def test_a_name_too_long_for_the_job_is_checked_again() -> None:
    assert desired_of(WITH_JOB, "n" * 48).mysql_init
    assert desired_of(MYSQL, "n" * 50)
    assert desired_of({**CLUSTER, "mysqlInitImage": "mysql:8"}, "n" * 50)
    with pytest.raises(InvalidSpec, match=r"^metadata.name: with mysqlInitImage .* at most 48"):
        desired_of(WITH_JOB, "n" * 49)


async def test_the_longest_names_work() -> None:
    """Every name and label that is made of them is accepted, up to the hash of the pods' revision."""
    job, plain = "j" * 48, "p" * 50
    async with a_world() as world, world.operating():
        world.mysql()
        with pytest.raises(Invalid, match="at most 48"):
            await world.create(job + "j", WITH_JOB)
        await world.up(plain, CLUSTER)
        await world.create(job, WITH_JOB)
        await world.advance(30.0)
        assert await world.client.get(Job, f"{job}-mysql-sql-init", SPACE)
        await world.until(job)
        for name in (job, plain):
            assert await world.client.get(Service, f"{name}-headless", SPACE)
            stateful_set = await world.client.get(StatefulSet, name, SPACE)
            assert len(stateful_set.status.update_revision or "") <= 63
            pods = await world.client.list(Pod, SPACE, label_selector=f"app={name},middleware=nacos")
            assert {
                pod.metadata.labels["controller-revision-hash"] for pod in pods if pod.metadata.name[-2] == "-"
            } == {stateful_set.status.update_revision}
