"""Values from Secrets: where each one is taken from, and what is said when it is missing."""

from __future__ import annotations

from typing import Any

import pytest

from konverge.objects.kinds.core_v1 import Secret
from konverge.objects.meta import ObjectMeta
from konverge.operators.nacos import names
from konverge.operators.nacos.database import Target, Tls
from konverge.operators.nacos.server import Identity
from konverge.operators.nacos.steps.outcome import PARAMETER, SYSTEM, StepError
from konverge.operators.nacos.steps.secrets import (
    identity_of,
    mysql_target,
    optional_value,
    postgres_target,
    read_secret,
    secrets_digest,
    value_of,
)
from tests.operators.nacos.steps.bench import Bench
from tests.operators.nacos.world import EMBEDDED, MYSQL, POSTGRES

pytestmark = [pytest.mark.virtual, pytest.mark.spec("N-03")]
KEYS = {"usernameKey": "u", "passwordKey": "p"}


async def test_a_missing_secret_and_missing_keys() -> None:
    bench = Bench(EMBEDDED)
    with pytest.raises(StepError, match="get secret default/absent failed") as wrong:
        await read_secret(bench.state, "absent")
    assert (wrong.value.outcome.code, wrong.value.outcome.reason) == (SYSTEM, "SecretMissing")
    secret = bench.secret("login", empty="", user="me")
    assert value_of(secret, "user") == "me"
    assert (optional_value(secret, "absent"), optional_value(secret, "empty")) == ("", "")
    for key in ("absent", "empty"):
        with pytest.raises(StepError, match=f"secret login missing key {key}") as wrong:
            value_of(secret, key)
        assert (wrong.value.outcome.code, wrong.value.outcome.reason) == (PARAMETER, "SecretMalformed")


@pytest.mark.parametrize("data", ["no base64!", "/////w=="])
async def test_a_value_that_is_not_text(data: str) -> None:
    secret = Secret(metadata=ObjectMeta(name="login"), data={"k": data})
    with pytest.raises(StepError, match="secret login key k is not text") as wrong:
        optional_value(secret, "k")
    assert (wrong.value.outcome.code, wrong.value.outcome.reason) == (PARAMETER, "SecretMalformed")


async def test_the_target_in_postgres() -> None:
    postgres: dict[str, Any] = {
        "host": "pg",
        "port": "5433",
        "database": "db",
        "credentialsSecretRef": {"name": "login", **KEYS},
        "tls": {"mode": "verify-full", "serverName": "pg.example", "caSecretRef": {"name": "ca", "key": "root"}},
    }
    bench = Bench({**POSTGRES, "postgres": postgres})
    bench.secret("login", u="me", p="word")
    bench.secret("ca", **{"root": "PEM", "ca.crt": "OTHER"})
    target = Target(
        engine="postgresql",
        host="pg",
        port=5433,
        database="db",
        username="me",
        password="word",
        tls=Tls(mode="verify-full", ca="PEM", server_name="pg.example"),
    )
    assert await postgres_target(bench.state) == target
    postgres["tls"]["caSecretRef"] = {"name": "ca"}
    bench.state.desired = bench.read()
    assert (await postgres_target(bench.state)).tls.ca == "OTHER"


async def test_the_target_in_mysql() -> None:
    bench = Bench(MYSQL)
    expected = Target(engine="mysql", host="my", port=3306, database="nacos", username="nacos", password="word")
    assert await mysql_target(bench.state) == expected
    for name in ("", "login"):
        database = {**MYSQL["database"], "mysqlCredentialsSecretRef": {"name": name, **KEYS}}
        bench = Bench({**MYSQL, "database": database})
        bench.secret("login", u="me", p="secret")
        target = await mysql_target(bench.state)
        assert (target.username, target.password) == (("me", "secret") if name else ("nacos", "word"))


async def test_the_identity() -> None:
    spec = {**EMBEDDED, "identitySecretRef": {"name": "mine", "keyKey": "k", "valueKey": "v"}}
    bench = Bench(spec)
    with pytest.raises(StepError):
        await identity_of(bench.state)
    bench.secret("mine", k="header", v="value")
    assert await identity_of(bench.state) == Identity("header", "value")
    bench = Bench({**EMBEDDED, "identitySecretRef": {"name": ""}})
    assert await identity_of(bench.state) is None
    generated = bench.secret("nacos-auth", identity_key="h", identity_value="x", token="t")
    assert await identity_of(bench.state) is None, "a Secret of others"
    bench.owned(generated)
    assert await identity_of(bench.state) == Identity("h", "x")


# ------------------------------------------------------------------ the digest of what the pods take


async def digest(bench: Bench) -> str:
    return await secrets_digest(bench.state)


async def test_the_digest_follows_every_value_that_the_pods_take() -> None:
    bench = Bench(POSTGRES)
    bench.secret("pg", username="me", password="word", other="x")
    first = await digest(bench)
    assert len(first) == 16
    bench.secret("pg", username="me", password="word", other="y")
    assert await digest(bench) == first, "another key"
    bench.secret("pg", username="me", password="other")
    second = await digest(bench)
    bench.secret("pg", username="you", password="word")
    third = await digest(bench)
    bench.secret("pg", username="me", password="word").metadata.uid = "another"
    fourth = await digest(bench)
    assert len({first, second, third, fourth}) == 4


async def test_without_secrets_there_is_no_digest() -> None:
    assert await digest(Bench(EMBEDDED)) == ""
    assert await digest(Bench(MYSQL)) == ""


@pytest.mark.parametrize("missing", ["secret", "key"])
async def test_a_missing_value_keeps_the_digest_that_is_in_use(missing: str) -> None:
    bench = Bench(POSTGRES)
    if missing == "key":
        bench.secret("pg", username="me")
    assert await digest(bench) == ""
    live = bench.stateful_set()
    assert await digest(bench) == ""
    live.spec.template.metadata.annotations = {names.SECRETS_DIGEST: "in use"}
    assert await digest(bench) == "in use"
