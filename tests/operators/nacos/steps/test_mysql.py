"""MySQL: the Job before anything of its line, its failure and its repetition, and the check of the server."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from konverge.objects.kinds.batch_v1 import Job, JobCondition
from konverge.objects.kinds.core_v1 import ConfigMap
from konverge.operators.nacos.database import DatabaseError, Target
from konverge.operators.nacos.steps.mysql import check_mysql, ensure_mysql_job
from konverge.operators.nacos.steps.outcome import CONTINUE, PARAMETER, SYSTEM, StepError
from tests.operators.nacos.steps.bench import Bench, ago
from tests.operators.nacos.steps.test_database import Asked
from tests.operators.nacos.world import MYSQL

pytestmark = [pytest.mark.virtual, pytest.mark.spec("N-07", "N-08")]
JOB: dict[str, Any] = {**MYSQL, "image": "n:v2.4.3", "mysqlInitImage": "mysql:8"}
NAME = "nacos-mysql-sql-init"
TARGET = Target(engine="mysql", host="my", port=3306, database="nacos", username="nacos", password="word")


def bench_of(spec: dict[str, Any] = JOB) -> tuple[Bench, Asked]:
    databases = Asked()
    return Bench(spec, databases=databases), databases


async def with_job(spec: dict[str, Any] = JOB) -> tuple[Bench, Asked, Job]:
    bench, databases = bench_of(spec)
    await ensure_mysql_job(bench.state)
    bench.sent.clear()
    bench.state.changes.clear()
    job = bench.objects.stored["Job", NAME]
    assert isinstance(job, Job)
    return bench, databases, job


def ended(job: Job, type: str, seconds: float = 0.0, status: str = "True") -> None:
    other = JobCondition(type="Suspended", status="True")
    condition = JobCondition(type=type, status=status, last_transition_time=ago(seconds), reason="BackoffLimitExceeded")
    job.status.conditions = [other, condition]


async def test_the_script_and_the_job_come_first() -> None:
    bench, _ = bench_of()
    outcome = await ensure_mysql_job(bench.state)
    assert (outcome.kind, outcome.reason, outcome.progress) == ("wait", "InitJobCreated", True)
    assert bench.sent == [f"apply ConfigMap {NAME}", f"create Job {NAME}"]
    script = bench.objects.need(ConfigMap, NAME).data["SQL_SCRIPT"]
    assert "CREATE TABLE IF NOT EXISTS config_info" in script
    assert "INSERT INTO users" not in script, "no default user since 2.4"


async def test_the_default_user_of_older_servers() -> None:
    bench, _ = bench_of({**JOB, "image": "n:v2.3.2"})
    await ensure_mysql_job(bench.state)
    assert "INSERT INTO users" in bench.objects.need(ConfigMap, NAME).data["SQL_SCRIPT"]


async def test_a_version_that_is_not_known() -> None:
    bench, _ = bench_of({**JOB, "image": "mine:latest"})
    bench.status.version = ""
    bench.state.desired = bench.read()
    with pytest.raises(StepError) as wrong:
        await ensure_mysql_job(bench.state)
    assert wrong.value.outcome.code == PARAMETER
    assert bench.sent == []


async def test_a_job_that_is_complete_lets_the_servers_start() -> None:
    bench, databases, job = await with_job()
    ended(job, "Complete")
    assert await ensure_mysql_job(bench.state) is CONTINUE
    assert bench.sent == []
    assert databases.calls == []
    assert bench.condition("DatabaseReady") == ""


async def test_a_job_that_runs_is_waited_for() -> None:
    bench, databases, job = await with_job()
    ended(job, "Complete", status="False")
    outcome = await ensure_mysql_job(bench.state)
    assert (outcome.kind, outcome.reason) == ("wait", "InitJobRunning")
    assert databases.questions == ["check"], "it waits in silence for a server that is away"
    bench.state.tools.databases_checked.forget(bench.state.key)
    databases.error = DatabaseError("Unreachable", "no route")
    outcome = await ensure_mysql_job(bench.state)
    assert (outcome.kind, outcome.code, outcome.reason) == ("failed", SYSTEM, "DatabaseUnreachable")
    databases.error = DatabaseError("DatabaseMissing", "the Job creates it")
    assert (await ensure_mysql_job(bench.state)).reason == "InitJobRunning"


async def test_a_job_that_failed_is_kept_for_a_while_and_then_tried_again() -> None:
    bench, _, job = await with_job()
    ended(job, "Failed", seconds=290)
    outcome = await ensure_mysql_job(bench.state)
    assert (outcome.kind, outcome.code, outcome.reason) == ("failed", SYSTEM, "InitJobFailed")
    assert "(BackoffLimitExceeded)" in outcome.message
    assert bench.condition("DatabaseReady") == "False InitJobFailed"
    assert bench.sent == []
    ended(job, "Failed", seconds=300)
    job.status.conditions[1].message = "a text"
    outcome = await ensure_mysql_job(bench.state)
    assert "(a text)" in outcome.message
    assert bench.sent == [f"delete Job {NAME}"]
    assert (await ensure_mysql_job(bench.state)).reason == "InitJobCreated"


async def test_a_job_that_succeeds_after_a_failure_clears_it() -> None:
    bench, _, job = await with_job()
    ended(job, "Failed")
    await ensure_mysql_job(bench.state)
    ended(job, "Complete")
    assert await ensure_mysql_job(bench.state) is CONTINUE
    assert bench.condition("DatabaseReady") == "Unknown InitJobComplete"
    bench.state.condition("DatabaseReady", False, "Unreachable")
    await ensure_mysql_job(bench.state)
    assert bench.condition("DatabaseReady") == "False Unreachable", "another fault stays"


async def test_a_job_that_is_being_deleted_is_waited_for() -> None:
    bench, _, job = await with_job()
    job.metadata.deletion_timestamp = ago(1)
    ended(job, "Complete")
    outcome = await ensure_mysql_job(bench.state)
    assert (outcome.kind, outcome.reason, outcome.progress) == ("wait", "InitJobRestarting", False)
    assert bench.sent == []


@pytest.mark.parametrize(
    "spec",
    [
        {**JOB, "image": "n:v2.5.0"},
        {**JOB, "database": {**MYSQL["database"], "mysqlHost": "other"}},
        {**JOB, "mysqlInitImage": "mysql:9"},
    ],
)
async def test_another_line_or_server_takes_another_job(spec: dict[str, Any]) -> None:
    bench, _, job = await with_job()
    ended(job, "Complete")
    bench.context.obj.spec = spec
    bench.state.desired = bench.read()
    outcome = await ensure_mysql_job(bench.state)
    assert (outcome.kind, outcome.reason, outcome.progress) == ("wait", "InitJobRestarting", True)
    assert bench.sent[-1] == f"delete Job {NAME}"
    assert (await ensure_mysql_job(bench.state)).reason == "InitJobCreated"


async def test_another_patch_level_needs_no_other_job() -> None:
    bench, _, job = await with_job()
    ended(job, "Complete")
    bench.context.obj.spec = {**JOB, "image": "n:v2.4.9"}
    bench.state.desired = bench.read()
    assert await ensure_mysql_job(bench.state) is CONTINUE
    assert bench.sent == []


# ------------------------------------------------------------------ the check


async def test_the_server_is_checked_once_a_minute() -> None:
    bench, databases = bench_of()
    assert await check_mysql(bench.state) is CONTINUE
    assert databases.calls == [("check", TARGET, {"timeout": 10.0})]
    assert bench.condition("DatabaseReady") == "True Writable"
    await asyncio.sleep(59.0)
    await check_mysql(bench.state)
    assert len(databases.calls) == 1
    await asyncio.sleep(1.0)
    await check_mysql(bench.state)
    assert len(databases.calls) == 2


async def test_a_server_that_the_operator_does_not_reach_is_not_checked_on_demand() -> None:
    bench, databases = bench_of({**JOB, "database": {**MYSQL["database"], "mysqlCheck": False}})
    assert await check_mysql(bench.state) is CONTINUE
    assert databases.calls == []


async def test_a_server_that_does_not_work() -> None:
    bench, databases = bench_of()
    databases.error = DatabaseError("Unreachable", "text")
    for count in (1, 2):
        outcome = await check_mysql(bench.state)
        assert (outcome.kind, outcome.code, outcome.reason) == ("failed", SYSTEM, "DatabaseUnreachable")
        assert len(databases.calls) == count, "again with the next reconcile"
    assert bench.condition("DatabaseReady") == "False Unreachable"


async def test_without_a_driver_the_servers_start_anyway() -> None:
    bench, databases = bench_of()
    databases.error = DatabaseError("DriverMissing", "install it")
    assert await check_mysql(bench.state) is CONTINUE
    assert bench.condition("DatabaseReady") == "Unknown DriverMissing"
    assert bench.state.tools.databases_checked.fresh(bench.state.key, "", 60.0) is False
