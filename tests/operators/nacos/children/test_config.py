"""The properties of the servers: databases, and whose value counts in the end."""

from __future__ import annotations

from typing import Any

import pytest

from konverge.operators.nacos.children.config import (
    base_properties,
    config_map,
    digest,
    final_config_map,
    merged_properties,
    mysql_config_map,
)
from tests.operators.nacos.test_children import desired_of
from tests.operators.nacos.world import EMBEDDED, MYSQL, POSTGRES

pytestmark = pytest.mark.spec("N-08")


def properties(text: str) -> dict[str, str]:
    """As Java reads them: of a repeated key the last value."""
    lines = (line.partition("=") for line in text.splitlines() if "=" in line and not line.startswith("#"))
    return {key: value for key, _, value in lines}


def database(spec: dict[str, Any]) -> dict[str, str]:
    names = ("spring.", "db.")
    return {key: value for key, value in properties(base_properties(desired_of(spec))).items() if key.startswith(names)}


def test_an_embedded_database_has_no_settings() -> None:
    assert database(EMBEDDED) == {}
    assert not base_properties(desired_of(EMBEDDED)).endswith("\n")


def test_mysql() -> None:
    values = database(MYSQL)
    url = values.pop("db.url.0")
    address = "jdbc:mysql://${MYSQL_SERVICE_HOST}:${MYSQL_SERVICE_PORT:3306}/${MYSQL_SERVICE_DB_NAME}"
    assert url.startswith(f"{address}?${{MYSQL_SERVICE_DB_PARAM:characterEncoding=utf8&")
    assert url.endswith("}")
    assert values == {
        "spring.sql.init.platform": "mysql",
        "spring.datasource.platform": "mysql",
        "db.num": "1",
        "db.user.0": "${MYSQL_SERVICE_USER}",
        "db.password.0": "${MYSQL_SERVICE_PASSWORD}",
        "db.pool.config.connectionTimeout": "${DB_POOL_CONNECTION_TIMEOUT:30000}",
    }


@pytest.mark.parametrize(
    ("changes", "url"),
    [
        ({}, "pg:5432/nacos?sslmode=prefer&tcpKeepAlive=true"),
        ({"host": "fd00::1", "port": "5433"}, "[fd00::1]:5433/nacos?sslmode=prefer&tcpKeepAlive=true"),
        (
            {"tls": {"mode": "verify-ca", "caSecretRef": {"name": "ca"}}},
            "pg:5432/nacos?sslmode=verify-ca&sslrootcert=/home/nacos/postgres-ca/ca.crt&tcpKeepAlive=true",
        ),
        (
            {"tls": {"mode": "verify-ca", "caSecretRef": {"name": "ca", "key": "root"}}},
            "pg:5432/nacos?sslmode=verify-ca&sslrootcert=/home/nacos/postgres-ca/root&tcpKeepAlive=true",
        ),
        (
            {"tls": {"caSecretRef": {"name": "ca"}}},
            "pg:5432/nacos?sslmode=verify-full&sslrootcert=/home/nacos/postgres-ca/ca.crt&tcpKeepAlive=true",
        ),
        (
            {"tls": {"caSecretRef": {"name": "ca"}, "serverName": "pg"}},
            "pg:5432/nacos?sslmode=verify-full&sslrootcert=/home/nacos/postgres-ca/ca.crt&tcpKeepAlive=true",
        ),
        (
            {"tls": {"caSecretRef": {"name": "ca"}, "serverName": "pg.example"}},
            "pg:5432/nacos?sslmode=verify-ca&sslrootcert=/home/nacos/postgres-ca/ca.crt&tcpKeepAlive=true",
        ),
        ({"tls": {"mode": "require", "serverName": "pg.example"}}, "pg:5432/nacos?sslmode=require&tcpKeepAlive=true"),
        (
            {"tls": {"mode": "verify-full"}},
            "pg:5432/nacos?sslmode=verify-full&sslfactory=org.postgresql.ssl.DefaultJavaSSLFactory&tcpKeepAlive=true",
        ),
    ],
)
def test_postgres(changes: dict[str, Any], url: str) -> None:
    values = database({**POSTGRES, "postgres": {**POSTGRES["postgres"], **changes}})
    assert values.pop("db.url.0").startswith(f"jdbc:postgresql://{url}&")
    assert values == {
        "spring.sql.init.platform": "postgresql",
        "spring.datasource.platform": "postgresql",
        "db.num": "1",
        "db.user.0": "${NACOS_DB_USER}",
        "db.password.0": "${NACOS_DB_PASSWORD}",
        "db.pool.config.connectionTimeout": "${DB_POOL_CONNECTION_TIMEOUT:30000}",
        "db.pool.config.driverClassName": "org.postgresql.Driver",
        "db.pool.config.connectionTestQuery": "SELECT 1",
    }


def test_the_ports_of_both_lines() -> None:
    second = properties(base_properties(desired_of(EMBEDDED)))
    third = properties(base_properties(desired_of({**EMBEDDED, "image": "n:v3.0.0"})))
    assert "server.port" in second
    assert "nacos.console.port" not in second
    assert "nacos.console.port" in third
    assert "server.port" not in third
    assert second["nacos.core.auth.enabled"] == third["nacos.core.auth.enabled"] == "${NACOS_AUTH_ENABLE:false}"


def test_the_last_value_counts() -> None:
    desired = desired_of({**EMBEDDED, "config": "a=spec\n\n"})
    assert properties(merged_properties(desired, "a=internal\nb=1", "a=user\nc=2"))["a"] == "spec"
    plain = desired_of(EMBEDDED)
    assert properties(merged_properties(plain, "a=internal\nb=1", "a=user\nc=2")) == {"a": "user", "b": "1", "c": "2"}
    assert properties(merged_properties(plain, "a=internal", None)) == {"a": "internal"}
    assert properties(merged_properties(plain, None, None)) == properties(base_properties(plain))
    assert properties(merged_properties(plain, "", None)) == {}, "an empty file is the user's choice"
    for text in (merged_properties(desired, None, "x=1\n"), merged_properties(plain, "a=1", None)):
        assert text.endswith("\n")
        assert not text.endswith("\n\n")


def test_the_config_maps() -> None:
    desired = desired_of({**EMBEDDED, "config": "a=1"})
    made = (config_map(desired), final_config_map(desired, "text"), mysql_config_map(desired, "script"))
    assert [(item.metadata.name, item.data) for item in made] == [
        ("nacos", {"custom.properties": "a=1"}),
        ("nacos-final-config", {"application.properties": "text"}),
        ("nacos-mysql-sql-init", {"SQL_SCRIPT": "script"}),
    ]
    named = desired_of({**EMBEDDED, "finalConfigName": "mine"})
    assert final_config_map(named, "").metadata.name == "mine"
    assert len(digest("a")) == 16
    assert digest("a") != digest("b")
