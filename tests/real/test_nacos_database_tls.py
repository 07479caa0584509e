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
    given = driver_parameters(desired).replace(f"{FOLDER}/{STORE_KEY}", str(folder / STORE_KEY))
    return given.replace("autoReconnect=true", "autoReconnect=false")  # it tries again for seconds where it is refused


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
        [
            "java",
            "-XX:TieredStopAtLevel=1",
            f"-Djdk.net.hosts.file={hosts}",
            "-cp",
            str(driver),
            str(source),
            *login,
            *urls,
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.split() == [expected for *_, expected in cases], done.stderr[-2000:]


def dump(place: MariadbPlace, tls: dict[str, Any], authority: bytes, folder: Path) -> subprocess.CompletedProcess[str]:
    """As the Job of a backup does it."""
    database = {**MYSQL["database"], "mysqlHost": "127.0.0.1", "mysqlPort": str(place.server.port), "tls": tls}
    desired = desired_of({**MYSQL, "database": database})
    given = {variable.name: variable.value or "" for variable in database_variables(desired)}
    (folder / "ca.crt").write_bytes(authority)
    if "MYSQL_CA" in given:
        given["MYSQL_CA"] = str(folder / "ca.crt")
    login = {"MYSQL_DB": place.name, "MYSQL_USER": place.target.username, "MYSQL_PASS": place.target.password}
    paths = {name: str(folder / name.lower()) for name in ("FILE", "FILES", "RESULT")} | {"MANIFEST": '{"format":1}'}
    return subprocess.run(
        ["/bin/sh", "-c", scripts.MYSQL_BACKUP],
        env={"PATH": os.environ["PATH"], **given, **login, **paths},
        capture_output=True,
        text=True,
        check=False,
    )


def test_dumps_do_what_each_mode_says(server: Server, tmp_path: Path) -> None:
    place = MariadbPlace(server)
    right, wrong = server.keys.authority, certificates.make(("127.0.0.1",)).authority
    assert dump(place, {"mode": "disable"}, right, tmp_path).returncode == 0
    server.sql(f"ALTER USER '{place.target.username}'@'%' REQUIRE SSL")
    assert "Access denied" in dump(place, {"mode": "disable"}, right, tmp_path).stderr
    for tls, authority in (({"mode": "require"}, wrong), (CA, right)):
        done = dump(place, tls, authority, tmp_path)
        assert (done.returncode, done.stderr) == (0, "")
    refused = dump(place, CA, wrong, tmp_path)
    assert refused.returncode != 0
    assert "ertificate" in refused.stderr
