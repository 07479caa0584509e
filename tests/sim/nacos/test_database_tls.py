"""Simulated servers and Jobs connect to their database with TLS, or without, as real ones would."""

from __future__ import annotations

from typing import Any

import pytest

from konverge.sim.databases import SimulatedDatabases, SimulatedServer
from konverge.sim.nacos.jobs import JobFailure, SimulatedJobs
from konverge.sim.nacos.settings import read_settings
from konverge.sim.nacos.simulated import connects

pytestmark = pytest.mark.spec("N-74")
MYSQL = {"SPRING_DATASOURCE_PLATFORM": "mysql", "MYSQL_SERVICE_HOST": "my", "MYSQL_SERVICE_DB_NAME": "nacos"}


@pytest.mark.parametrize(
    ("env", "expected"),
    [
        ({}, "never"),
        ({"MYSQL_SERVICE_DB_PARAM": "a=b"}, "prefer"),
        ({"MYSQL_SERVICE_DB_PARAM": "useSSL=false"}, "never"),
        ({"MYSQL_SERVICE_DB_PARAM": "a=b&sslMode=DISABLED"}, "never"),
        ({"MYSQL_SERVICE_DB_PARAM": "sslMode=PREFERRED"}, "prefer"),
        ({"MYSQL_SERVICE_DB_PARAM": "a=b&sslMode=VERIFY_IDENTITY"}, "always"),
        ({"DB_URL_0": "jdbc:postgresql://pg:5432/nacos"}, "prefer"),
        ({"DB_URL_0": "jdbc:postgresql://pg:5432/nacos?sslmode=disable"}, "never"),
        ({"DB_URL_0": "jdbc:postgresql://pg:5432/nacos?a=b&sslmode=verify-full"}, "always"),
    ],
)
def test_how_a_serverconnects(env: dict[str, str], expected: str) -> None:
    settings = read_settings("space", "nacos-0", "uid", "127.1.0.1", "nacos/nacos-server:v2.4.3", MYSQL | env)
    assert settings.database_tls == expected
    server = SimulatedServer("mysql")
    assert connects(server, settings)
    server.insists_on_tls = True
    assert connects(server, settings) == (expected != "never")
    server.insists_on_tls, server.tls = False, False
    assert connects(server, settings) == (expected != "always")
    server.tls, server.down = True, True
    assert not connects(server, settings)


NOTHING: Any = None
LOGIN = {"MYSQL_HOST": "my", "MYSQL_PORT": "3306", "MYSQL_DB": "nacos", "MYSQL_USER": "u", "MYSQL_PASS": "p"}
POSTGRES = {"PGHOST": "pg", "PGPORT": "5432", "PGDATABASE": "nacos", "PGUSER": "u", "PGPASSWORD": "p"}


@pytest.mark.parametrize(
    ("env", "insisting", "without"),
    [
        (LOGIN, True, True),
        (LOGIN | {"MYSQL_TLS": "--ssl-mode=DISABLED"}, False, True),
        (LOGIN | {"MYSQL_TLS": "--ssl-mode=PREFERRED"}, True, True),
        (LOGIN | {"MYSQL_TLS": "--ssl-mode=REQUIRED"}, True, False),
        (POSTGRES | {"PGSSLMODE": "disable"}, False, True),
        (POSTGRES | {"PGSSLMODE": "prefer"}, True, True),
        (POSTGRES | {"PGSSLMODE": "verify-full"}, True, False),
    ],
)
def test_how_a_job_connects(env: dict[str, str], insisting: bool, without: bool) -> None:
    databases = SimulatedDatabases()
    engine, host, port = ("mysql", "my", 3306) if "MYSQL_HOST" in env else ("postgresql", "pg", 5432)
    server = databases.add_server(host, port, engine)  # type: ignore[arg-type]
    database = server.add("nacos", "u", "p")
    jobs = SimulatedJobs(NOTHING, databases, NOTHING, NOTHING, NOTHING)

    def connects() -> bool:
        try:
            return jobs._database(env) is database
        except JobFailure as error:
            return "TLS" not in str(error)

    assert connects()
    server.insists_on_tls = True
    assert connects() == insisting
    server.insists_on_tls, server.tls = False, False
    assert connects() == without
