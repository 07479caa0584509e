"""PGEnsure and RotateAdmin: what the database is asked for, when, and what the status keeps of the answer."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from konverge.operators.nacos.database import DatabaseError, Target, Tls
from konverge.operators.nacos.database.operations import AdminOutcome, Databases, SchemaOutcome
from konverge.operators.nacos.steps.database import pg_ensure, rotate_admin
from konverge.operators.nacos.steps.outcome import CONTINUE, PARAMETER, SYSTEM, StepError
from tests.operators.nacos.steps.bench import Bench, ago
from tests.operators.nacos.world import EMBEDDED, MYSQL, POSTGRES

pytestmark = [pytest.mark.virtual, pytest.mark.spec("N-03", "N-05", "N-06")]
TARGET = Target(
    engine="postgresql", host="pg", port=5432, database="nacos", username="nacos", password="word", tls=Tls()
)


class Asked(Databases):
    """Keeps each call, and answers as it is told to."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, Target, dict[str, Any]]] = []
        self.performed = True
        self.error: DatabaseError | None = None

    def _note(self, question: str, target: Target, options: dict[str, Any]) -> None:
        self.calls.append((question, target, options))
        if self.error is not None:
            raise self.error

    async def check(self, target: Target, **options: Any) -> None:
        self._note("check", target, options)

    async def ensure_schema(self, target: Target, **options: Any) -> SchemaOutcome:
        self._note("schema", target, options)
        return SchemaOutcome(performed=self.performed, version=4, message="made" if self.performed else "as it was")

    async def rotate_admin(self, target: Target, **options: Any) -> AdminOutcome:
        self._note("admin", target, options)
        return AdminOutcome(performed=self.performed, message="written" if self.performed else "as it was")

    @property
    def questions(self) -> list[str]:
        return [question for question, _, _ in self.calls]


def bench_of(spec: dict[str, Any] = POSTGRES, **admin: str) -> tuple[Bench, Asked]:
    databases = Asked()
    bench = Bench(spec, databases=databases)
    bench.secret("pg", username="nacos", password="word")
    bench.secret("admin", **(admin or {"username": "nacos", "password": "first"}))
    return bench, databases


def changed(**spec: Any) -> dict[str, Any]:
    return {**POSTGRES, **spec}


# ------------------------------------------------------------------ PGEnsure


@pytest.mark.spec("N-74")
async def test_an_authority_is_needed_also_where_the_operator_makes_no_tables() -> None:
    postgres = {**POSTGRES["postgres"], "tls": {"caSecretRef": {"name": "ca"}}}
    bench, databases = bench_of(changed(pgInit={"enabled": False}, postgres=postgres))
    with pytest.raises(StepError, match="get secret default/ca failed"):
        await pg_ensure(bench.state)
    bench.secret("ca", **{"ca.crt": "PEM"})
    assert await pg_ensure(bench.state) is CONTINUE
    assert databases.calls == []


@pytest.mark.parametrize("spec", [EMBEDDED, MYSQL, changed(pgInit={"enabled": False})])
async def test_other_databases_and_users_who_make_the_tables_themselves(spec: dict[str, Any]) -> None:
    bench, databases = bench_of(spec)
    assert await pg_ensure(bench.state) is CONTINUE
    assert databases.calls == []
    assert bench.condition("DatabaseReady") == ""


async def test_the_first_look_makes_the_tables() -> None:
    init = {"timeoutSeconds": 9, "schemaVersion": 4, "policy": "BumpVersion"}
    bench, databases = bench_of(changed(pgInit=init))
    assert await pg_ensure(bench.state) is CONTINUE
    options = {"line": "2.4", "policy": "BumpVersion", "schema_version": 4, "timeout": 9, "default_admin": False}
    assert databases.calls == [("schema", TARGET, options)]
    pg = bench.status.pg
    assert (pg.initialized, pg.init_version, pg.last_result, pg.last_message) == (True, 4, "Success", "made")
    assert pg.last_init_time == ago(0)
    assert bench.condition("DatabaseReady") == "True Writable"
    assert bench.reasons == ["Normal DatabaseInitialized"]


@pytest.mark.parametrize(
    ("image", "admin", "default"),
    [
        ("n:v2.3.2", None, True),
        ("n:v2.4.0", None, False),
        ("n:v2.3.2", {"name": "admin"}, False),
        ("n:v2.3.2", {"name": ""}, True),
    ],
)
async def test_the_default_user_of_older_servers(image: str, admin: dict[str, Any] | None, default: bool) -> None:
    bench, databases = bench_of(changed(image=image, adminCredentialsSecretRef=admin))
    await pg_ensure(bench.state)
    assert databases.calls[0][2]["default_admin"] == default


async def test_tables_that_were_there_are_no_event() -> None:
    bench, databases = bench_of()
    databases.performed = False
    await pg_ensure(bench.state)
    assert bench.reasons == []
    assert bench.status.pg.last_init_time == ago(0), "when it was seen first"
    bench.status.pg.last_init_time = "earlier"
    bench.state.tools.databases_checked.forget(bench.state.key)
    await pg_ensure(bench.state)
    assert bench.status.pg.last_init_time == "earlier"
    databases.performed = True
    bench.state.tools.databases_checked.forget(bench.state.key)
    await pg_ensure(bench.state)
    assert bench.status.pg.last_init_time == ago(0)


async def test_a_healthy_database_is_checked_once_a_minute() -> None:
    bench, databases = bench_of(changed(pgInit={"timeoutSeconds": 9}))
    await pg_ensure(bench.state)
    await asyncio.sleep(59.0)
    assert await pg_ensure(bench.state) is CONTINUE
    assert databases.questions == ["schema"]
    await asyncio.sleep(1.0)
    await pg_ensure(bench.state)
    assert databases.questions == ["schema", "check"]
    assert databases.calls[1][1:] == (TARGET, {"timeout": 9})
    await asyncio.sleep(59.0)
    await pg_ensure(bench.state)
    assert len(databases.calls) == 2


async def test_a_new_process_looks_at_the_tables_again() -> None:
    bench, databases = bench_of()
    bench.status.pg.initialized = True
    bench.since("DatabaseReady", "True", 10)
    await pg_ensure(bench.state)
    assert databases.questions == ["schema"]


@pytest.mark.parametrize(
    "spec",
    [
        changed(postgres={**POSTGRES["postgres"], "host": "other"}),
        changed(postgres={**POSTGRES["postgres"], "port": "5433"}),
        changed(postgres={**POSTGRES["postgres"], "tls": {"mode": "require"}}),
        changed(image="n:v3.0.0"),
        changed(pgInit={"schemaVersion": 2}),
    ],
)
async def test_other_settings_are_another_database(spec: dict[str, Any]) -> None:
    bench, databases = bench_of()
    await pg_ensure(bench.state)
    bench.context.obj.spec = spec
    bench.state.desired = bench.read()
    await pg_ensure(bench.state)
    assert databases.questions == ["schema", "schema"]


async def test_another_password_is_tried_at_once() -> None:
    bench, databases = bench_of()
    await pg_ensure(bench.state)
    bench.secret("pg", username="nacos", password="other")
    await pg_ensure(bench.state)
    assert [target.password for _, target, _ in databases.calls] == ["word", "other"]


@pytest.mark.parametrize(
    ("reason", "code"), [("Unreachable", SYSTEM), ("ReadOnly", SYSTEM), ("InvalidTarget", PARAMETER)]
)
async def test_a_database_that_does_not_work(reason: Any, code: int) -> None:
    bench, databases = bench_of()
    await pg_ensure(bench.state)
    await asyncio.sleep(61.0)
    databases.error = DatabaseError(reason, "text")
    outcome = await pg_ensure(bench.state)
    assert (outcome.kind, outcome.code, outcome.reason) == ("failed", code, f"Database{reason}")
    assert outcome.message == "text"
    assert bench.condition("DatabaseReady") == f"False {reason}"
    pg = bench.status.pg
    assert (pg.last_result, pg.last_message, pg.initialized) == ("Failed", "text", True)
    databases.error = None
    assert await pg_ensure(bench.state) is CONTINUE, "at once, and not in a minute"
    assert databases.questions == ["schema", "check", "schema"]
    assert bench.condition("DatabaseReady") == "True Writable"
    assert (pg.last_result, pg.last_message) == ("Success", "made")


async def test_a_check_that_passes_clears_the_failure() -> None:
    bench, _ = bench_of()
    await pg_ensure(bench.state)
    pg = bench.status.pg
    pg.last_result, pg.last_message = "Failed", "text"
    bench.status.kube_conditions = []
    await pg_ensure(bench.state)
    assert (pg.last_result, pg.last_message) == ("Success", "")
    pg.last_result, pg.last_message = "Success", "kept"
    await asyncio.sleep(61.0)
    await pg_ensure(bench.state)
    assert pg.last_message == "kept"


async def test_an_image_without_a_version() -> None:
    bench, databases = bench_of(changed(image="mine:latest"))
    bench.status.version = ""
    bench.state.desired = bench.read()
    with pytest.raises(StepError) as wrong:
        await pg_ensure(bench.state)
    assert (wrong.value.outcome.code, wrong.value.outcome.reason) == (PARAMETER, "VersionUnknown")
    assert databases.calls == []


# ------------------------------------------------------------------ RotateAdmin


@pytest.mark.parametrize("ref", [None, {"name": ""}])
async def test_no_secret_no_administrator(ref: dict[str, str] | None) -> None:
    bench, databases = bench_of(changed(adminCredentialsSecretRef=ref))
    assert await rotate_admin(bench.state) is CONTINUE
    assert databases.calls == []


@pytest.mark.parametrize(
    ("image", "rotated", "missed"), [("n:v2.4.0", False, True), ("n:v2.3.2", False, False), ("n:v2.4.0", True, False)]
)
async def test_without_postgres_a_missing_secret_is_reported_early(image: str, rotated: bool, missed: bool) -> None:
    bench, databases = bench_of({**EMBEDDED, "image": image, "adminCredentialsSecretRef": {"name": "missing"}})
    if rotated:
        bench.since("AdminRotated", "True", 10)
    if missed:
        with pytest.raises(StepError, match="get secret default/missing failed"):
            await rotate_admin(bench.state)
    else:
        assert await rotate_admin(bench.state) is CONTINUE
    assert databases.calls == []


async def test_the_password_of_the_secret_is_written_once() -> None:
    bench, databases = bench_of(changed(pgInit={"timeoutSeconds": 9}))
    assert await rotate_admin(bench.state) is CONTINUE
    options = {"username": "nacos", "password_hash": "", "password": "first", "previous": "", "timeout": 9}
    assert databases.calls == [("admin", TARGET, options)]
    admin = bench.status.admin
    assert (admin.username, admin.last_result, admin.last_message) == ("nacos", "Success", "written")
    assert admin.last_secret_resource_version == "5"
    assert admin.last_rotate_time == ago(0)
    assert bench.condition("AdminRotated") == "True Rotated"
    assert bench.message("AdminRotated") == "written"
    assert bench.reasons == ["Normal AdminRotated"]
    await rotate_admin(bench.state)
    assert len(databases.calls) == 1


async def test_a_hash_goes_before_a_password() -> None:
    bench, databases = bench_of(username="boss", password="first", passwordHash="$2a$10$hash")
    bench.status.admin.username = "nacos"
    await rotate_admin(bench.state)
    options = databases.calls[0][2]
    assert (options["password_hash"], options["password"], options["previous"]) == ("$2a$10$hash", "", "nacos")
    assert bench.status.admin.username == "boss"


async def test_rows_that_were_right_already_are_no_event() -> None:
    bench, databases = bench_of()
    databases.performed = False
    await rotate_admin(bench.state)
    assert bench.reasons == []
    assert bench.status.admin.last_rotate_time == ago(0)
    bench.status.admin.last_rotate_time = "earlier"
    bench.status.admin.last_result = "Failed"
    await rotate_admin(bench.state)
    assert bench.status.admin.last_rotate_time == "earlier"
    databases.performed = True
    bench.status.admin.last_result = "Failed"
    await rotate_admin(bench.state)
    assert bench.status.admin.last_rotate_time == ago(0)


async def test_a_hash_is_written_again_only_when_version_and_content_changed() -> None:
    bench, databases = bench_of(username="nacos", passwordHash="$2a$10$hash")
    await rotate_admin(bench.state)

    async def after(version: str, hashed: str) -> int:
        bench.secret("admin", username="nacos", passwordHash=hashed).metadata.resource_version = version
        await rotate_admin(bench.state)
        return len(databases.calls)

    assert await after("6", "$2a$10$hash") == 1, "the same content in another version"
    assert await after("6", "$2a$10$other") == 2
    assert await after("6", "$2a$10$third") == 2, "the version decides first"
    assert await after("7", "$2a$10$third") == 3


async def test_the_name_is_part_of_the_content() -> None:
    bench, databases = bench_of(username="nacos", passwordHash="$2a$10$hash")
    await rotate_admin(bench.state)
    bench.secret("admin", username="boss", passwordHash="$2a$10$hash").metadata.resource_version = "6"
    await rotate_admin(bench.state)
    assert databases.calls[1][2]["previous"] == "nacos"


async def test_a_plain_password_is_written_again_with_each_version() -> None:
    bench, databases = bench_of()
    await rotate_admin(bench.state)
    kept = bench.status.admin.last_secret_checksum
    bench.secret("admin", username="nacos", password="first").metadata.resource_version = "6"
    await rotate_admin(bench.state)
    assert len(databases.calls) == 2
    assert bench.status.admin.last_secret_checksum != kept
    assert len(kept) == 16


async def test_a_checksum_in_the_resource_decides_alone() -> None:
    bench, databases = bench_of(changed(adminSecretChecksum="one"))
    await rotate_admin(bench.state)
    assert bench.status.admin.last_secret_checksum == "one"
    bench.secret("admin", username="nacos", password="second").metadata.resource_version = "6"
    await rotate_admin(bench.state)
    assert len(databases.calls) == 1
    bench.context.obj.spec = changed(adminSecretChecksum="two")
    bench.state.desired = bench.read()
    await rotate_admin(bench.state)
    assert databases.calls[1][2]["password"] == "second"


@pytest.mark.parametrize(("reason", "code"), [("Unreachable", SYSTEM), ("InvalidTarget", PARAMETER)])
async def test_a_rotation_that_fails_is_tried_again(reason: Any, code: int) -> None:
    bench, databases = bench_of()
    await pg_ensure(bench.state)
    databases.error = DatabaseError(reason, "text")
    outcome = await rotate_admin(bench.state)
    assert (outcome.kind, outcome.code, outcome.reason) == ("failed", code, f"Database{reason}")
    admin = bench.status.admin
    assert (admin.last_result, admin.last_message, admin.last_secret_checksum) == ("Failed", "text", "")
    assert bench.condition("AdminRotated") == f"False {reason}"
    ready = "True Writable" if code == PARAMETER else f"False {reason}"
    assert bench.condition("DatabaseReady") == ready, "a wrong Secret is no fault of the database"
    databases.error = None
    assert await rotate_admin(bench.state) is CONTINUE
    assert admin.last_result == "Success"


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ({"password": "p"}, "secret admin missing key username"),
        ({"username": "nacos"}, r"secret admin missing key passwordHash \(or password\)"),
    ],
)
async def test_a_secret_without_its_keys(values: dict[str, str], text: str) -> None:
    bench, databases = bench_of(**values)
    with pytest.raises(StepError, match=text) as wrong:
        await rotate_admin(bench.state)
    assert wrong.value.outcome.code == PARAMETER
    assert databases.calls == []
