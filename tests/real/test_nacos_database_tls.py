"""TLS to a real MariaDB, as servers of Nacos connect (their driver, with our store of authorities) and as Jobs do."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from konverge.apiserver import certificates
from konverge.operators.nacos.backup import scripts
from konverge.operators.nacos.backup.jobs import database_variables
from konverge.operators.nacos.children.mysql_tls import FOLDER, STORE_KEY, driver_parameters, java_trust_store
from konverge.operators.nacos.database import mysql_script
from tests.operators.nacos.test_children import desired_of
from tests.operators.nacos.world import MYSQL
from tests.real.clients import programs
from tests.real.database_places import MariadbPlace
from tests.real.databases import Server, mariadb_server
from tools import real_packages

pytestmark = pytest.mark.spec("N-73", "N-74")
CA = {"caSecretRef": {"name": "ca"}}
CONNECT = """\
import java.sql.DriverManager;

class Connect {
    public static void main(String[] arguments) {
        for (int i = 2; i < arguments.length; i++) {
            try (var connection = DriverManager.getConnection(arguments[i], arguments[0], arguments[1]);
                    var rows = connection.createStatement().executeQuery("SHOW STATUS LIKE 'Ssl_cipher'")) {
                rows.next();
                System.out.println(rows.getString(2).isEmpty() ? "plain" : "encrypted");
            } catch (Exception error) {
                System.out.println("refused");
            }
        }
    }
}
"""


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    if real_packages.mariadb_programs() is None:
        pytest.skip(real_packages.advice(["mariadb-server"]))
    with mariadb_server() as server:
        yield server


def parameters(tls: dict[str, Any], folder: Path) -> str:
    desired = desired_of({**MYSQL, "database": {**MYSQL["database"], "tls": tls}})
    return driver_parameters(desired).replace(f"{FOLDER}/{STORE_KEY}", str(folder / STORE_KEY))


def test_the_driver_of_nacos_does_what_each_mode_says(server: Server, tmp_path: Path) -> None:
    """One process for all, because a Java takes its time to start."""
    (driver,) = (programs.nacos_home() / "lib").glob("mysql-connector-*.jar")
    right, wrong = tmp_path / "right", tmp_path / "wrong"
    for folder, keys in ((right, server.keys), (wrong, certificates.make(("127.0.0.1",)))):
        folder.mkdir()
        (folder / STORE_KEY).write_bytes(java_trust_store(keys.authority.decode()))
    place = MariadbPlace(server)
    cases = [
        ("127.0.0.1", {"mode": "disable"}, right, "plain"),
        ("127.0.0.1", {}, right, "encrypted"),
        ("127.0.0.1", {"mode": "require"}, wrong, "encrypted"),
        ("127.0.0.1", {"mode": "verify-ca", **CA}, right, "encrypted"),
        ("127.0.0.1", {"mode": "verify-ca", **CA}, wrong, "refused"),
        ("127.0.0.1", CA, right, "encrypted"),
        ("127.0.0.1", CA, wrong, "refused"),
        ("another.example", {"mode": "verify-ca", **CA}, right, "encrypted"),
        ("another.example", CA, right, "refused"),
        ("127.0.0.1", {"mode": "verify-full"}, right, "refused"),
    ]
    urls = [
        f"jdbc:mysql://{host}:{server.port}/{place.name}?{parameters(tls, folder)}" for host, tls, folder, _ in cases
    ]
    source = tmp_path / "Connect.java"
    source.write_text(CONNECT)
    hosts = tmp_path / "hosts"
    hosts.write_text("127.0.0.1 another.example\n")
    login = [place.target.username, place.target.password]
    done = subprocess.run(
        ["java", f"-Djdk.net.hosts.file={hosts}", "-cp", str(driver), str(source), *login, *urls],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.split() == [expected for *_, expected in cases], done.stderr[-2000:]


@pytest.mark.parametrize(
    ("tls", "authority", "host", "good"),
    [
        ({"mode": "disable"}, "right", "127.0.0.1", True),
        ({}, "right", "127.0.0.1", True),
        ({"mode": "require"}, "wrong", "127.0.0.1", True),
        (CA, "right", "127.0.0.1", True),
        (CA, "wrong", "127.0.0.1", False),
    ],
)
def test_dumps_do_what_each_mode_says(
    server: Server, tmp_path: Path, tls: dict[str, Any], authority: str, host: str, good: bool
) -> None:
    place = MariadbPlace(server)
    place.run_script(mysql_script("2.4"))
    if tls.get("mode") != "disable":
        server.sql(f"ALTER USER '{place.target.username}'@'%' REQUIRE SSL")
    database = {**MYSQL["database"], "mysqlHost": host, "mysqlPort": str(server.port), "tls": tls}
    desired = desired_of({**MYSQL, "database": database})
    given = {variable.name: variable.value or "" for variable in database_variables(desired)}
    keys = server.keys if authority == "right" else certificates.make((host,))
    (tmp_path / "ca.crt").write_bytes(keys.authority)
    login = {"MYSQL_DB": place.name, "MYSQL_USER": place.target.username, "MYSQL_PASS": place.target.password}
    paths = {name: str(tmp_path / name.lower()) for name in ("FILE", "PREFIX", "RESULT")}
    if "MYSQL_CA" in given:
        given["MYSQL_CA"] = str(tmp_path / "ca.crt")
    done = subprocess.run(
        ["/bin/sh", "-c", scripts.MYSQL_BACKUP],
        env={"PATH": os.environ["PATH"], **given, **login, **paths},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode == 0) == good, done.stderr
    if not good:
        assert "ertificate" in done.stderr
