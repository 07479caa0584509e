"""TLS to MySQL: nothing of another setting is written before a connection with it has succeeded."""

from __future__ import annotations

from typing import Any

import pytest

from konverge.objects.kinds.core_v1 import ConfigMap, ConfigMapVolumeSource, Volume
from konverge.operators.nacos.database import DatabaseError, Tls
from konverge.operators.nacos.steps.make_ensure import make_ensure
from konverge.operators.nacos.steps.mysql_tls import ensure_mysql_tls
from konverge.operators.nacos.steps.outcome import CONTINUE, PARAMETER, SYSTEM, held
from konverge.wire import x509
from tests.operators.nacos.steps.bench import NAME, Bench
from tests.operators.nacos.steps.test_database import Asked
from tests.operators.nacos.world import MYSQL

pytestmark = [pytest.mark.virtual, pytest.mark.spec("N-74")]
STORE = "nacos-mysql-ca"
AUTHORITY, ANOTHER = (x509.authority(name).pem[0].decode() for name in ("one", "another"))
REFUSED = DatabaseError("TlsFailed", "the certificate was refused")


def spec(tls: dict[str, Any] | None, **database: Any) -> dict[str, Any]:
    return {**MYSQL, "image": "n:v2.4.3", "database": {**MYSQL["database"], **database, "tls": tls}}


VERIFIED = spec({"caSecretRef": {"name": "ca"}})


def bench_of(wanted: dict[str, Any], *, runs: dict[str, Any] | None = None) -> tuple[Bench, Asked]:
    """`runs` is the spec of the StatefulSet that exists."""
    databases = Asked()
    bench = Bench(wanted, databases=databases)
    bench.secret("ca", **{"ca.crt": AUTHORITY})
    if runs is not None:
        bench.stateful_set(runs)
    return bench, databases


async def store_of(bench: Bench) -> ConfigMap:
    return bench.objects.need(ConfigMap, STORE)


async def test_without_the_block_nothing_is_asked_or_written() -> None:
    for runs in (None, spec(None)):
        bench, databases = bench_of(spec(None), runs=runs)
        assert await ensure_mysql_tls(bench.state) is CONTINUE
        assert (databases.calls, bench.sent) == ([], [])


async def test_a_new_nacos_has_its_authority_after_a_connection_with_it() -> None:
    bench, databases = bench_of(VERIFIED)
    assert await ensure_mysql_tls(bench.state) is CONTINUE
    ((question, target, options),) = databases.calls
    assert (question, target.tls) == ("check", Tls(mode="verify-full", ca=AUTHORITY))
    assert options == {"timeout": 10.0}
    assert bench.sent == [f"apply ConfigMap {STORE}"]
    assert (await store_of(bench)).data == {"ca.crt": AUTHORITY}


async def test_what_is_in_force_is_not_asked_for_again() -> None:
    bench, databases = bench_of(VERIFIED, runs=VERIFIED)
    await ensure_mysql_tls(bench.state)
    databases.calls.clear()
    bench.sent.clear()
    databases.error = REFUSED
    assert await ensure_mysql_tls(bench.state) is CONTINUE, "the check at the end of MakeEnsure reports it"
    assert (databases.calls, bench.sent) == ([], [])


async def test_another_authority_is_handed_on_when_it_is_proven() -> None:
    bench, databases = bench_of(VERIFIED, runs=VERIFIED)
    await ensure_mysql_tls(bench.state)
    before = bench.objects.need(ConfigMap, STORE)
    bench.secret("ca", **{"ca.crt": ANOTHER})
    bench.sent.clear()
    databases.error = REFUSED
    outcome = await ensure_mysql_tls(bench.state)
    assert (outcome.kind, outcome.code, outcome.reason) == ("failed", SYSTEM, "DatabaseTlsFailed")
    assert bench.sent == []
    assert bench.objects.need(ConfigMap, STORE).data == before.data
    databases.error = None
    assert await ensure_mysql_tls(bench.state) is CONTINUE
    assert databases.calls[-1][1].tls.ca == ANOTHER
    assert bench.objects.need(ConfigMap, STORE).data == {"ca.crt": ANOTHER}
    assert bench.objects.need(ConfigMap, STORE).binary_data != before.binary_data


async def test_a_store_that_others_changed_is_restored() -> None:
    bench, _ = bench_of(VERIFIED, runs=VERIFIED)
    await ensure_mysql_tls(bench.state)
    stored = bench.objects.stored["ConfigMap", STORE]
    assert isinstance(stored, ConfigMap)
    stored.binary_data = {"truststore.jks": "AAAA"}
    bench.sent.clear()
    await ensure_mysql_tls(bench.state)
    assert bench.sent == [f"apply ConfigMap {STORE}"]


@pytest.mark.parametrize(
    ("wanted", "runs", "mode"),
    [
        (spec({"mode": "require"}), spec(None), "require"),
        (spec({"mode": "require"}), spec({"mode": "disable"}), "require"),
        (spec(None), spec({"mode": "require"}), "disable"),
        (spec({"mode": "disable"}), spec({"mode": "require"}), "disable"),
    ],
)
async def test_each_change_is_tried_as_servers_will_connect(
    wanted: dict[str, Any], runs: dict[str, Any], mode: str
) -> None:
    bench, databases = bench_of(wanted, runs=runs)
    assert await ensure_mysql_tls(bench.state) is CONTINUE
    assert [target.tls for _, target, _ in databases.calls] == [Tls(mode=mode)]  # type: ignore[arg-type]
    databases.error = REFUSED
    outcome = await ensure_mysql_tls(bench.state)
    assert outcome.reason == "DatabaseTlsFailed"
    assert bench.condition("DatabaseReady") == "False TlsFailed"
    assert bench.sent == []


@pytest.mark.parametrize(
    ("reason", "new", "running"),
    [
        ("TlsFailed", "DatabaseTlsFailed", "DatabaseTlsFailed"),
        ("Unreachable", "", "DatabaseUnreachable"),
        ("DatabaseMissing", "", "DatabaseDatabaseMissing"),
        ("AuthenticationFailed", "", "DatabaseAuthenticationFailed"),
        ("DriverMissing", "", ""),
    ],
)
async def test_servers_that_run_keep_what_works(reason: Any, new: str, running: str) -> None:
    bench, databases = bench_of(VERIFIED)
    databases.error = DatabaseError(reason, "no")
    assert (await ensure_mysql_tls(bench.state)).reason == new
    bench, databases = bench_of(VERIFIED, runs=spec(None))
    databases.error = DatabaseError(reason, "no")
    assert (await ensure_mysql_tls(bench.state)).reason == running
    assert ("ConfigMap", STORE) not in bench.objects.stored or not running


async def test_where_the_operator_does_not_connect_only_the_secret_is_looked_at() -> None:
    wanted = spec({"caSecretRef": {"name": "ca"}}, mysqlCheck=False)
    bench, databases = bench_of(wanted, runs=spec(None))
    databases.error = REFUSED
    assert await ensure_mysql_tls(bench.state) is CONTINUE
    assert databases.calls == []
    assert bench.sent == [f"apply ConfigMap {STORE}"]


@pytest.mark.parametrize(
    ("values", "code", "reason", "text"),
    [
        (None, SYSTEM, "SecretMissing", "get secret default/ca failed"),
        ({}, PARAMETER, "SecretMalformed", "missing key ca.crt"),
        ({"ca.crt": ""}, PARAMETER, "SecretMalformed", "missing key ca.crt"),
        ({"other": AUTHORITY}, PARAMETER, "SecretMalformed", "missing key ca.crt"),
        ({"ca.crt": "nonsense"}, PARAMETER, "DatabaseInvalidTarget", "not a bundle of certificates in PEM"),
    ],
)
async def test_an_authority_that_is_none(values: dict[str, str] | None, code: int, reason: str, text: str) -> None:
    bench, databases = bench_of(VERIFIED, runs=spec(None))
    del bench.objects.stored["Secret", "ca"]
    if values is not None:
        bench.secret("ca", **values)
    outcome = await ensure_mysql_tls(bench.state)
    assert (outcome.code, outcome.reason) == (code, reason)
    assert text in outcome.message
    assert (databases.calls, bench.sent) == ([], [])


async def test_the_key_of_the_authority() -> None:
    bench, databases = bench_of(spec({"caSecretRef": {"name": "ca", "key": "root"}}))
    bench.secret("ca", root=ANOTHER)
    await ensure_mysql_tls(bench.state)
    assert databases.calls[0][1].tls.ca == ANOTHER


async def test_parameters_of_the_users_own_are_not_judged() -> None:
    given = {"env": [{"name": "MYSQL_SERVICE_DB_PARAM", "value": "useSSL=true"}]}
    bench, databases = bench_of({**spec(None), **given}, runs=spec({"mode": "require"}))
    assert await ensure_mysql_tls(bench.state) is CONTINUE
    assert databases.calls == []


# ------------------------------------------------------------------ in MakeEnsure


async def test_nothing_is_written_and_the_servers_are_looked_after() -> None:
    bench, databases = bench_of(VERIFIED, runs=spec(None))
    databases.error = REFUSED
    assert await make_ensure(bench.state) is CONTINUE
    assert bench.sent == []
    assert bench.state.unapplied is not None
    assert bench.state.unapplied.reason == "DatabaseTlsFailed"


async def test_no_server_is_created_that_could_not_connect() -> None:
    bench, databases = bench_of({**VERIFIED, "mysqlInitImage": "mysql:8"})
    databases.error = REFUSED
    assert (await make_ensure(bench.state)).reason == "DatabaseTlsFailed"
    assert bench.sent == []


async def test_the_authority_stays_until_no_pod_mounts_it() -> None:
    bench, _ = bench_of(VERIFIED)
    await ensure_mysql_tls(bench.state)
    bench.context.obj.spec = spec(None)
    bench.state.desired = bench.state.now = bench.read()
    pods = bench.pods(1)
    pods[0].spec.volumes = [Volume(name="other"), Volume(name="x", config_map=ConfigMapVolumeSource(name=STORE))]
    bench.objects.put(*pods)
    await make_ensure(bench.state)
    assert ("ConfigMap", STORE) in bench.objects.stored
    pods[0].spec.volumes = [Volume(name="x", config_map=ConfigMapVolumeSource(name="another"))]
    bench.objects.put(*pods)
    await make_ensure(bench.state)
    assert ("ConfigMap", STORE) not in bench.objects.stored


async def test_one_that_is_used_is_not_removed() -> None:
    bench, _ = bench_of(VERIFIED)
    await make_ensure(bench.state)
    assert f"delete ConfigMap {STORE}" not in bench.sent
    assert bench.objects.find(ConfigMap, STORE) is not None
    assert bench.objects.find(ConfigMap, NAME) is not None


async def test_while_an_edit_is_held_an_authority_that_was_deleted_comes_back() -> None:
    bench, _ = bench_of(VERIFIED, runs=VERIFIED)
    bench.state.held = held("ChangeHeld", "an edit")
    await make_ensure(bench.state)
    assert bench.objects.find(ConfigMap, STORE) is not None
    bench.secret("ca", **{"ca.crt": ANOTHER})
    bench.sent.clear()
    await make_ensure(bench.state)
    assert bench.sent == [], "what exists stays as it is"
