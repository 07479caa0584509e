"""The environment of the servers, variable by variable."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from konverge.operators.nacos.children.environment import auth_secret, environment, from_secrets
from tests.operators.nacos.test_children import desired_of
from tests.operators.nacos.world import CLUSTER, EMBEDDED, MYSQL, POSTGRES, STANDALONE

pytestmark = pytest.mark.spec("N-03", "N-08")
OLD, NEW, THIRD = "n:v2.1.0", "n:v2.4.3", "n:v3.0.3"
LONG = "A" * 43


def variables(spec: dict[str, Any]) -> dict[str, str]:
    """Values as they are, those from Secrets as `name/key`."""
    listed = environment(desired_of(spec))
    assert len({variable.name for variable in listed}) == len(listed), "no variable twice"
    values = {}
    for variable in listed:
        source = variable.value_from.secret_key_ref if variable.value_from is not None else None
        values[variable.name] = f"{source.name}/{source.key}" if source is not None else variable.value or ""
    return values


def members(count: int) -> str:
    return " ".join(f"nacos-{i}.nacos-headless.default.svc.cluster.local:8848" for i in range(count))


def test_the_mode() -> None:
    assert variables({**STANDALONE, "image": NEW}) == {
        "PREFER_HOST_MODE": "hostname",
        "MODE": "standalone",
        "EMBEDDED_STORAGE": "embedded",
    }
    assert variables(EMBEDDED) == {
        "PREFER_HOST_MODE": "hostname",
        "MODE": "cluster",
        "NACOS_REPLICAS": "3",
        "NACOS_SERVERS": members(3),
        "EMBEDDED_STORAGE": "embedded",
    }


def test_mysql() -> None:
    login = {"MYSQL_SERVICE_USER": "nacos", "MYSQL_SERVICE_PASSWORD": "word"}
    address = {"MYSQL_SERVICE_HOST": "my", "MYSQL_SERVICE_PORT": "3306", "MYSQL_SERVICE_DB_NAME": "nacos"}
    common = {
        "PREFER_HOST_MODE": "hostname",
        "MODE": "cluster",
        "NACOS_REPLICAS": "3",
        "NACOS_SERVERS": members(3),
        "SPRING_DATASOURCE_PLATFORM": "mysql",
    }
    assert variables(MYSQL) == common | address | login
    empty = {**MYSQL, "database": {**MYSQL["database"], "mysqlCredentialsSecretRef": {"name": ""}}}
    assert variables(empty) == common | address | login
    ref = {"name": "login", "usernameKey": "u", "passwordKey": "p"}
    named = {**MYSQL, "database": {**MYSQL["database"], "mysqlCredentialsSecretRef": ref}}
    secret = {"MYSQL_SERVICE_USER": "login/u", "MYSQL_SERVICE_PASSWORD": "login/p"}
    assert variables(named) == common | address | secret


def test_postgres() -> None:
    values = variables(POSTGRES)
    assert values["SPRING_DATASOURCE_PLATFORM"] == "postgresql"
    assert (values["NACOS_DB_USER"], values["NACOS_DB_PASSWORD"]) == ("pg/username", "pg/password")
    assert "EMBEDDED_STORAGE" not in values


IDENTITY = ("NACOS_AUTH_IDENTITY_KEY", "NACOS_AUTH_IDENTITY_VALUE")
OURS = ("nacos-auth/identity_key", "nacos-auth/identity_value")


def authentication(spec: dict[str, Any]) -> dict[str, str]:
    return {name: value for name, value in variables(spec).items() if name.startswith("NACOS_AUTH_")}


@pytest.mark.parametrize(
    ("image", "certification", "expected"),
    [
        (NEW, {}, {}),
        (THIRD, {}, {"NACOS_AUTH_TOKEN": "nacos-auth/token"}),
        ("mine:latest", {}, {"NACOS_AUTH_TOKEN": "nacos-auth/token"}),
        (THIRD, {"token": LONG}, {"NACOS_AUTH_TOKEN": LONG}),
        (THIRD, {"tokenSecretRef": {"name": "t"}, "token": LONG}, {"NACOS_AUTH_TOKEN": "t/token"}),
        (THIRD, {"tokenSecretRef": {"name": "t", "key": "k"}}, {"NACOS_AUTH_TOKEN": "t/k"}),
        (THIRD, {"tokenSecretRef": {"name": ""}}, {"NACOS_AUTH_TOKEN": "nacos-auth/token"}),
    ],
)
def test_the_token(image: str, certification: dict[str, Any], expected: dict[str, str]) -> None:
    identity = dict(zip(IDENTITY, OURS, strict=True)) if expected else {}
    assert authentication({"image": image, "certification": certification}) == expected | identity


def test_authentication_of_clients() -> None:
    values = authentication(
        {"image": OLD, "certification": {"enabled": True, "cache_enabled": True, "token_expire_seconds": "60"}}
    )
    assert values == {
        "NACOS_AUTH_ENABLE": "true",
        "NACOS_AUTH_TOKEN": "SecretKey" + "0123456789" * 6,
        "NACOS_AUTH_TOKEN_EXPIRE_SECONDS": "60",
        "NACOS_AUTH_CACHE_ENABLE": "true",
        **dict(zip(IDENTITY, OURS, strict=True)),
    }
    values = authentication({"image": NEW, "certification": {"enabled": True}})
    assert values["NACOS_AUTH_TOKEN"] == "nacos-auth/token"
    assert values["NACOS_AUTH_CACHE_ENABLE"] == "false"


def test_an_identity_of_the_user() -> None:
    ref = {"identitySecretRef": {"name": "mine", "keyKey": "k", "valueKey": "v"}}
    theirs = dict(zip(IDENTITY, ("mine/k", "mine/v"), strict=True))
    assert authentication({"image": NEW, **ref}) == theirs
    assert authentication({"image": THIRD, **ref}) == theirs | {"NACOS_AUTH_TOKEN": "nacos-auth/token"}
    empty = {"identitySecretRef": {"name": ""}}
    assert authentication({"image": THIRD, **empty})[IDENTITY[0]] == OURS[0]


def test_functions_and_metrics_are_set_on_demand() -> None:
    values = variables({"image": NEW, "function_mode": "naming", "metrics": {"enabled": True}})
    assert values["FUNCTION_MODE"] == "naming"
    assert values["MANAGEMENT_ENDPOINTS_WEB_EXPOSURE_INCLUDE"] == "prometheus,health"
    assert set(variables({"image": NEW})) == {"PREFER_HOST_MODE", "MODE", "EMBEDDED_STORAGE"}


def test_the_users_value_wins_unless_the_cluster_depends_on_it() -> None:
    given = [
        {"name": "FIRST", "value": "1"},
        {"name": "EMBEDDED_STORAGE", "value": "mine"},
        *({"name": name, "value": "x"} for name in ("MODE", "NACOS_SERVERS", "NACOS_REPLICAS", "PREFER_HOST_MODE")),
    ]
    values = variables({**EMBEDDED, "env": given})
    assert list(values)[:2] == ["FIRST", "EMBEDDED_STORAGE"]
    assert values["EMBEDDED_STORAGE"] == "mine"
    assert (values["MODE"], values["NACOS_REPLICAS"], values["PREFER_HOST_MODE"]) == ("cluster", "3", "hostname")
    assert values["NACOS_SERVERS"] == members(3)


def from_secret(name: str, secret: str | None, key: str = "k") -> dict[str, Any]:
    ref = {"key": key} if secret is None else {"name": secret, "key": key}
    return {"name": name, "valueFrom": {"secretKeyRef": ref}}


def test_which_values_are_from_secrets() -> None:
    assert from_secrets(desired_of(POSTGRES)) == [("pg", "username"), ("pg", "password")]
    assert from_secrets(desired_of(CLUSTER)) == []
    field = {"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}
    env = [from_secret("MINE", "mine"), from_secret("NACOS_DB_USER", "mine"), field, from_secret("MODE", "mode")]
    assert from_secrets(desired_of({**POSTGRES, "env": env})) == [("pg", "password")], "the user's are the user's"


def test_the_generated_secret() -> None:
    secret = auth_secret(desired_of({"image": THIRD}))
    assert (secret.metadata.name, secret.type) == ("nacos-auth", "Opaque")
    values = {key: base64.b64decode(value).decode() for key, value in secret.data.items()}
    assert values["identity_key"] == "nacos-operator-identity"
    assert len(base64.b64decode(values["token"])) >= 32, "what servers since 2.2 need"
    assert len(values["identity_value"]) >= 32
    assert set(values) == {"token", "identity_key", "identity_value"}
