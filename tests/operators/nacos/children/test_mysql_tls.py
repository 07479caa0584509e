"""TLS to MySQL: parameters of the servers' driver, options of MySQL's programs, and the store of authorities."""

from __future__ import annotations

import base64
import hashlib
import os
import ssl
import struct
import subprocess
from pathlib import Path
from typing import Any

import pytest

from konverge.objects import to_dict
from konverge.operators.nacos.backup import scripts
from konverge.operators.nacos.children.environment import environment
from konverge.operators.nacos.children.mysql_job import mysql_init_job
from konverge.operators.nacos.children.mysql_tls import CLIENT_OPTIONS, java_trust_store, trust_config_map
from konverge.operators.nacos.children.stateful_set import stateful_set
from konverge.operators.nacos.spec.storage import DatabaseTls
from konverge.wire import x509
from tests.operators.nacos.test_children import desired_of
from tests.operators.nacos.world import EMBEDDED, MYSQL

pytestmark = pytest.mark.spec("N-73")
COMMON = "characterEncoding=utf8&connectTimeout=1000&socketTimeout=3000&autoReconnect=true&allowPublicKeyRetrieval=true"
STORE = (
    "&trustCertificateKeyStoreUrl=file:/mysql-ca/truststore.jks&trustCertificateKeyStoreType=JKS"
    "&trustCertificateKeyStorePassword=changeit"
)
CA = {"caSecretRef": {"name": "ca"}}


def with_tls(tls: dict[str, Any] | None, **more: Any) -> dict[str, Any]:
    return {**MYSQL, "image": "n:v2.4.3", "database": {**MYSQL["database"], "tls": tls}, **more}


def parameters(spec: dict[str, Any]) -> str | None:
    variables = {variable.name: variable.value for variable in environment(desired_of(spec))}
    return variables.get("MYSQL_SERVICE_DB_PARAM")


@pytest.mark.parametrize(
    ("tls", "mode"),
    [
        ({}, "prefer"),
        (CA, "verify-full"),
        ({"mode": "require"}, "require"),
        ({"mode": "disable", **CA}, "disable"),
        ({"mode": "verify-ca", **CA}, "verify-ca"),
    ],
)
def test_an_authority_is_checked_with_the_name_unless_the_user_says_otherwise(tls: dict[str, Any], mode: str) -> None:
    made = desired_of(with_tls(tls)).spec.database.tls
    assert made is not None
    assert made.mode_in_force == mode
    assert made.verifies == mode.startswith("verify")
    assert DatabaseTls().mode_in_force == "prefer"


@pytest.mark.parametrize(
    ("tls", "expected"),
    [
        (None, None),
        ({"mode": "disable"}, f"{COMMON}&sslMode=DISABLED"),
        ({}, f"{COMMON}&sslMode=PREFERRED"),
        ({"mode": "require"}, f"{COMMON}&sslMode=REQUIRED"),
        ({"mode": "require", **CA}, f"{COMMON}&sslMode=REQUIRED"),
        ({"mode": "verify-ca"}, f"{COMMON}&sslMode=VERIFY_CA"),
        ({"mode": "verify-ca", **CA}, f"{COMMON}&sslMode=VERIFY_CA{STORE}"),
        (CA, f"{COMMON}&sslMode=VERIFY_IDENTITY{STORE}"),
    ],
)
def test_the_parameters_of_the_driver(tls: dict[str, Any] | None, expected: str | None) -> None:
    assert parameters(with_tls(tls)) == expected
    assert "useSSL" not in (expected or "")


def test_the_block_means_nothing_without_mysql() -> None:
    spec = {**EMBEDDED, "database": {"type": "embedded", "tls": CA}}
    assert parameters(spec) is None
    assert "volumes" not in to_dict(stateful_set(desired_of(spec)).spec.template.spec)


def test_without_the_block_nothing_is_added() -> None:
    spec = with_tls(None, mysqlInitImage="mysql:8")
    pod = to_dict(stateful_set(desired_of(spec)).spec.template.spec)
    job = to_dict(mysql_init_job(desired_of(spec), "").spec.template.spec)
    for made in (pod, job):
        assert "volumes" not in made
        for container in (*made["containers"], *made["initContainers"]):
            assert "volumeMounts" not in container
            assert not {entry["name"] for entry in container["env"]} & {"MYSQL_TLS", "MARIADB_TLS", "MYSQL_CA"}
            assert "tls" not in "".join(container.get("command", ()))


def test_servers_and_jobs_have_the_authority() -> None:
    spec = with_tls(CA, mysqlInitImage="mysql:8")
    volume = {"name": "mysql-ca", "configMap": {"name": "nacos-mysql-ca"}}
    mount = {"name": "mysql-ca", "mountPath": "/mysql-ca", "readOnly": True}
    pod = to_dict(stateful_set(desired_of(spec)).spec.template.spec)
    job = to_dict(mysql_init_job(desired_of(spec), "").spec.template.spec)
    for made in (pod, job):
        assert made["volumes"] == [volume]
        for container in (*made["containers"], *made["initContainers"]):
            assert container["volumeMounts"] == [mount], "a folder: a file of its own would never change"
    for container in (*job["containers"], *job["initContainers"], *pod["initContainers"]):
        env = {entry["name"]: entry.get("value") for entry in container["env"]}
        assert env["MYSQL_TLS"] == "--ssl-mode=VERIFY_IDENTITY"
        assert env["MARIADB_TLS"] == "--ssl --ssl-verify-server-cert"
        assert env["MYSQL_CA"] == "/mysql-ca/ca.crt"
        command = container["command"][2]
        assert command.startswith(CLIENT_OPTIONS)
        assert command.index('at="$at $tls"') < command.index(" $at ")


@pytest.mark.parametrize(
    ("mode", "mysql", "mariadb"),
    [
        ("disable", "DISABLED", "--skip-ssl"),
        ("prefer", "PREFERRED", "--skip-ssl-verify-server-cert"),
        ("require", "REQUIRED", "--ssl --skip-ssl-verify-server-cert"),
        ("verify-ca", "VERIFY_CA", "--ssl --ssl-verify-server-cert"),
    ],
)
def test_the_options_of_both_programs(mode: str, mysql: str, mariadb: str) -> None:
    job = mysql_init_job(desired_of(with_tls({"mode": mode}, mysqlInitImage="mysql:8")), "")
    env = {entry.name: entry.value for entry in job.spec.template.spec.containers[0].env}
    assert (env["MYSQL_TLS"], env["MARIADB_TLS"]) == (f"--ssl-mode={mysql}", mariadb)
    assert "MYSQL_CA" not in env
    assert job.spec.template.spec.volumes == []


# ------------------------------------------------------------------ the shell


def program(folder: Path, name: str, body: str) -> None:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)


def run(folder: Path, script: str, **env: str) -> subprocess.CompletedProcess[str]:
    path = f"{folder}:{os.environ['PATH']}"
    return subprocess.run(
        ["/bin/sh", "-euc", script], env={"PATH": path, **env}, capture_output=True, text=True, check=False
    )


OPTIONS = {"MYSQL_TLS": "--ssl-mode=VERIFY_CA", "MARIADB_TLS": "--ssl --ssl-verify-server-cert"}


@pytest.mark.parametrize(
    ("name", "help", "expected"),
    [
        ("mysql", "  --ssl-mode=name", "--ssl-mode=VERIFY_CA"),
        ("mysql", "  --ssl", "--ssl --ssl-verify-server-cert"),
    ],
)
def test_the_options_fit_the_program_that_is_there(tmp_path: Path, name: str, help: str, expected: str) -> None:
    program(tmp_path, name, f"echo '{help}'")
    authority = tmp_path / "ca.crt"
    authority.write_text("PEM")
    done = run(tmp_path, f'{CLIENT_OPTIONS}echo "$tls"', **OPTIONS, MYSQL_CA=str(authority))
    assert (done.stdout, done.stderr) == (f"{expected} --ssl-ca={authority}\n", "")


def test_an_authority_is_named_only_where_it_is_used(tmp_path: Path) -> None:
    program(tmp_path, "mysql", "echo --ssl-mode")
    plain = OPTIONS | {"MYSQL_TLS": "--ssl-mode=REQUIRED"}
    assert run(tmp_path, f'{CLIENT_OPTIONS}echo "$tls"', **plain, MYSQL_CA="/x").stdout == "--ssl-mode=REQUIRED\n"
    found = run(tmp_path, f'{CLIENT_OPTIONS}echo "$tls"', **OPTIONS).stdout.split()
    assert found[0] == "--ssl-mode=VERIFY_CA"
    assert all(option.startswith("--ssl-ca=/etc/") for option in found[1:]), "those of the image"


def test_a_dump_uses_tls_where_it_is_asked_for(tmp_path: Path) -> None:
    program(tmp_path, "mysql", "echo --ssl-mode")
    program(tmp_path, "mysqldump", f'echo "$@" >>{tmp_path}/calls; echo "-- Dump completed"')
    env = dict.fromkeys(("MYSQL_HOST", "MYSQL_PORT", "MYSQL_DB", "MYSQL_USER", "MYSQL_PASS"), "x")
    env |= {
        "FILE": f"{tmp_path}/f",
        "FILES": f"{tmp_path}/f",
        "MANIFEST": '{"format":1}',
        "RESULT": f"{tmp_path}/result",
    }
    assert run(tmp_path, scripts.MYSQL_BACKUP, **env).returncode == 0
    assert run(tmp_path, scripts.MYSQL_BACKUP, **env, MYSQL_TLS="--ssl-mode=REQUIRED", MARIADB_TLS="").returncode == 0
    calls = [line for line in (tmp_path / "calls").read_text().splitlines() if line != "--help"]
    plain, protected = calls
    assert "ssl" not in plain
    assert "--ssl-mode=REQUIRED" in protected


# ------------------------------------------------------------------ the store


def entries(store: bytes) -> list[tuple[str, bytes]]:
    """Read as Java reads it: aliases and certificates."""
    body, digest = store[:-20], store[-20:]
    password = "changeit".encode("utf-16-be")
    assert hashlib.sha1(password + b"Mighty Aphrodite" + body, usedforsecurity=False).digest() == digest
    magic, version, count = struct.unpack_from(">III", body)
    assert (magic, version) == (0xFEEDFEED, 2)
    position, found = 12, []

    def text() -> str:
        nonlocal position
        (size,) = struct.unpack_from(">H", body, position)
        position += 2 + size
        return body[position - size : position].decode()

    for _ in range(count):
        assert struct.unpack_from(">I", body, position) == (2,), "a trusted certificate"
        position += 4
        alias = text()
        assert body[position : position + 8] == bytes(8), "a time would be another file each time"
        position += 8
        assert text() == "X.509"
        (size,) = struct.unpack_from(">I", body, position)
        position += 4 + size
        found.append((alias, body[position - size : position]))
    assert position == len(body)
    return found


def test_a_store_of_all_authorities() -> None:
    first, second = (x509.authority(name).pem[0].decode() for name in ("first", "second"))
    bundle = f"# a comment\n{first}\nbetween\n{second}"
    expected = [("ca-0", ssl.PEM_cert_to_DER_cert(first)), ("ca-1", ssl.PEM_cert_to_DER_cert(second))]
    assert entries(java_trust_store(bundle)) == expected
    assert java_trust_store(bundle) == java_trust_store(bundle)


def test_the_config_map_of_the_authorities() -> None:
    authority = x509.authority("first").pem[0].decode()
    made = trust_config_map(desired_of(with_tls(CA)), authority)
    assert made.metadata.name == "nacos-mysql-ca"
    assert made.metadata.labels["app"] == "nacos"
    assert made.data == {"ca.crt": authority}
    assert base64.b64decode(made.binary_data["truststore.jks"]) == java_trust_store(authority)
