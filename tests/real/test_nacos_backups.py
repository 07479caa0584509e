"""The scripts of backups with real programs on real PostgreSQL and MariaDB servers."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from konverge.operators.nacos.backup import carry, scripts
from konverge.operators.nacos.backup.manifest import SUFFIX, read_manifest
from konverge.operators.nacos.database import mysql_script, postgres_script
from tests.real.database_places import MariadbPlace, PostgresPlace, RealPlace
from tests.real.databases import Server, mariadb_server, postgres_server
from tools import real_packages

pytestmark = pytest.mark.spec("N-56")
MANIFEST = '{"format":1,"backup":"default/it\'s","method":"Database","engine":"postgresql"}'
ODD = "名字: a'b\"c\\d\n\t100% 🐟"


@pytest.fixture(scope="module")
def postgres() -> Iterator[Server]:
    if real_packages.postgres_programs() is None:
        pytest.skip(real_packages.advice(["postgresql"]))
    with postgres_server() as server:
        yield server


@pytest.fixture(scope="module")
def mariadb() -> Iterator[Server]:
    if real_packages.mariadb_programs() is None:
        pytest.skip(real_packages.advice(["mariadb-server"]))
    with mariadb_server() as server:
        yield server


@pytest.fixture(params=["postgresql", "mariadb"])
def place(request: pytest.FixtureRequest) -> RealPlace:
    if request.param == "postgresql":
        return PostgresPlace(request.getfixturevalue("postgres"))
    return MariadbPlace(request.getfixturevalue("mariadb"))


class Scripts:
    """The scripts as a Job runs them: by /bin/sh, with nothing but its variables."""

    def __init__(self, place: RealPlace, folder: Path) -> None:
        self.place, self.folder = place, folder
        self.postgres = place.target.engine == "postgresql"
        self.prefix = folder / "deep" / "nacos" / "first-1234-"
        self.result = folder / "result"

    @property
    def file(self) -> Path:
        return Path(f"{self.prefix}1.{'dump' if self.postgres else 'sql.gz'}")

    def environment(self, **more: str) -> dict[str, str]:
        target = self.place.target
        files = "\n".join(f"{self.prefix}{number}{''.join(self.file.suffixes)}" for number in (0, 1))
        paths = {"FILE": str(self.file), "FILES": files, "RESULT": str(self.result), "MANIFEST": MANIFEST}
        if self.postgres:
            names = ("PGHOST", "PGPORT", "PGDATABASE", "PGUSER", "PGPASSWORD")
        else:
            names = ("MYSQL_HOST", "MYSQL_PORT", "MYSQL_DB", "MYSQL_USER", "MYSQL_PASS")
        values = (target.host, str(target.port), target.database, target.username, target.password)
        return {"PATH": os.environ["PATH"], **paths, **dict(zip(names, values, strict=True)), **more}

    def start(self, script: str, **more: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            ["/bin/sh", "-c", script],
            env=self.environment(**more),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def run(self, script: str, **more: str) -> tuple[int, str]:
        """The exit code and the log."""
        self.result.unlink(missing_ok=True)
        process = self.start(script, **more)
        log = process.communicate(timeout=300)[0]
        return process.returncode, log

    @property
    def backup(self) -> str:
        return scripts.POSTGRES_BACKUP if self.postgres else scripts.MYSQL_BACKUP

    def stored(self) -> Any:
        return json.loads(self.result.read_text())

    def left(self) -> list[str]:
        return sorted(path.name for path in self.folder.rglob("*") if path.is_file() and path != self.result)


@pytest.fixture
def job(place: RealPlace, tmp_path: Path) -> Scripts:
    """On a database with the tables of Nacos, and a configuration."""
    job = Scripts(place, tmp_path)
    place.run_script(postgres_script("2.4") if job.postgres else mysql_script("2.4"))
    insert(place, "app.yaml", ODD)
    return job


def insert(place: RealPlace, data_id: str, content: str) -> None:
    quoted = content.replace("'", "''")
    if place.target.engine == "mysql":
        quoted = quoted.replace("\\", "\\\\")
    place.server.sql(
        "INSERT INTO config_info (data_id, group_id, tenant_id, content, md5) "
        f"VALUES ('{data_id}', 'DEFAULT_GROUP', '', '{quoted}', 'x')",
        place.name,
    )


def test_a_dump_has_its_size_and_digest(job: Scripts) -> None:
    code, log = job.run(job.backup)
    assert (code, log) == (0, "")
    data = job.file.read_bytes()
    assert job.stored() == {"size": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    assert job.left() == [job.file.name, job.file.name + SUFFIX]
    manifest = read_manifest(Path(f"{job.file}{SUFFIX}").read_bytes(), "its manifest")
    assert (manifest.size, manifest.sha256) == (len(data), hashlib.sha256(data).hexdigest())
    assert manifest.backup == "default/it's"
    assert carry.inspect_file(job.file)
    assert job.file.stat().st_mode & 0o077 == 0, "others on the volume do not read it"
    if not job.postgres:
        assert "名字: a\\'b\\\"c\\\\d\\n\t100% 🐟" in gzip.decompress(data).decode()


def test_parts_of_a_killed_attempt_are_removed_and_files_of_others_stay(job: Scripts) -> None:
    job.file.parent.mkdir(parents=True)
    Path(f"{job.prefix}0{''.join(job.file.suffixes)}.part").write_text("half")
    others = ["first-1234-1-2.dump", "first-1234-1.dump.x-1.dump.part", "first-9999-1.dump.part"]
    for name in others:
        (job.file.parent / name).write_text("another backup's")
    assert job.run(job.backup)[0] == 0
    assert job.left() == sorted([job.file.name, job.file.name + SUFFIX, *others])
    assert job.run(scripts.DELETE)[0] == 0
    assert job.left() == others
    assert job.run(scripts.DELETE)[0] == 0, "there may be nothing to delete"


def test_a_wrong_password_leaves_nothing_and_is_not_told(job: Scripts) -> None:
    code, log = job.run(job.backup, PGPASSWORD="wrong-one", MYSQL_PASS="wrong-one")
    assert code != 0
    assert job.place.target.username in log
    assert "wrong-one" not in log
    assert job.left() == []
    assert not job.result.exists()


def test_a_server_that_is_away(job: Scripts) -> None:
    code, log = job.run(job.backup, PGPORT="1", MYSQL_PORT="1")
    assert code != 0
    assert "onnect" in log
    assert job.left() == []


def test_a_full_disk_fails_the_job_and_leaves_no_part(job: Scripts) -> None:
    """A limit of the size of files stands for the disk."""
    code, log = job.run(f"ulimit -f 1; trap '' XFSZ; {job.backup}")
    assert code != 0
    assert log
    assert job.left() == []


def waits_for_a_lock(place: RealPlace) -> bool:
    """Whether the user of the dump does."""
    user = place.target.username
    if place.target.engine == "postgresql":
        query = f"SELECT pid FROM pg_stat_activity WHERE usename = '{user}' AND wait_event_type = 'Lock'"
    else:
        query = f"SELECT id FROM information_schema.processlist WHERE user = '{user}' AND state LIKE 'Waiting for%lock'"
    return place.server.sql(query) != ""


def test_a_term_signal_ends_it_and_leaves_no_part(job: Scripts) -> None:
    lock = "LOCK TABLE config_info IN ACCESS EXCLUSIVE MODE" if job.postgres else "LOCK TABLES config_info WRITE"
    begin = f"BEGIN; {lock}" if job.postgres else lock
    with job.place.server.session(begin, job.place.name), job.start(job.backup) as process:
        while not waits_for_a_lock(job.place):
            assert process.poll() is None
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 143
        os.killpg(process.pid, signal.SIGKILL)  # what a container does with the rest
    assert job.left() == []


@pytest.fixture
def target(job: Scripts, tmp_path: Path) -> Scripts:
    """Another database, with empty tables; and a backup of the first one."""
    assert job.run(job.backup)[0] == 0
    place = type(job.place)(job.place.server)  # type: ignore[call-arg]
    other = Scripts(place, tmp_path)
    place.run_script(postgres_script("2.4") if job.postgres else mysql_script("2.4"))
    return other


def restore(target: Scripts, *, overwrite: bool = False, sha256: str = "") -> tuple[int, str]:
    digest = sha256 or hashlib.sha256(target.file.read_bytes()).hexdigest()
    script = scripts.POSTGRES_RESTORE if target.postgres else scripts.MYSQL_RESTORE
    return target.run(script, SHA256=digest, OVERWRITE=str(overwrite).lower())


def configs(place: RealPlace) -> list[str]:
    return [row[0] for row in place.rows("SELECT data_id FROM config_info ORDER BY data_id")]


@pytest.mark.spec("N-60", "N-61")
class TestRestore:
    def test_into_another_database(self, job: Scripts, target: Scripts) -> None:
        code, log = restore(target)
        assert (code, log) == (0, "")
        assert configs(target.place) == ["app.yaml"]
        hashed = "SELECT md5(content) FROM config_info"
        assert target.place.rows(hashed) == job.place.rows(hashed)
        assert target.place.tables() == job.place.tables()
        insert(target.place, "next.yaml", "its ids go on")
        assert configs(target.place) == ["app.yaml", "next.yaml"]

    def test_into_a_database_without_tables(self, job: Scripts, target: Scripts) -> None:
        for table in target.place.tables():
            target.place.drop_table(table)
        assert restore(target)[0] == 0
        assert configs(target.place) == ["app.yaml"]

    def test_what_is_there_is_replaced_when_asked_for(self, target: Scripts) -> None:
        insert(target.place, "newer.yaml", "newer")
        code, log = restore(target)
        assert code == 1
        assert "overwrite: true" in log
        assert configs(target.place) == ["newer.yaml"]
        assert restore(target, overwrite=True) == (0, "")
        assert configs(target.place) == ["app.yaml"]

    def test_a_namespace_alone_is_something_too(self, target: Scripts) -> None:
        columns = "kp, tenant_id, tenant_name, tenant_desc, create_source, gmt_create, gmt_modified"
        target.place.sql(f"INSERT INTO tenant_info ({columns}) VALUES ('1', 'dev', 'dev', '', 'nacos', 1, 1)")
        assert restore(target)[0] == 1

    def test_a_digest_that_differs_touches_nothing(self, target: Scripts) -> None:
        insert(target.place, "newer.yaml", "newer")
        code, log = restore(target, overwrite=True, sha256="0" * 64)
        assert code == 1
        assert "is not what was stored" in log
        assert configs(target.place) == ["newer.yaml"]

    def test_data_that_is_missing(self, target: Scripts) -> None:
        digest = hashlib.sha256(target.file.read_bytes()).hexdigest()
        target.file.unlink()
        code, log = restore(target, sha256=digest)
        assert code == 1
        assert "there is no file" in log

    def test_half_a_dump_changes_nothing_in_postgresql_and_is_told_in_mariadb(self, target: Scripts) -> None:
        """The digest fits, and the content does not."""
        insert(target.place, "newer.yaml", "newer")
        if target.postgres:
            data = target.file.read_bytes()
            target.file.write_bytes(data[: len(data) * 3 // 4])
            code, _ = restore(target, overwrite=True)
            assert code not in (0, 3)
            assert configs(target.place) == ["newer.yaml"]
            return
        text = gzip.decompress(target.file.read_bytes())
        target.file.write_bytes(gzip.compress(text.replace(b"INSERT INTO `config_info`", b"INSERT NONSENSE")))
        code, log = restore(target, overwrite=True)
        assert code == 3
        assert "NONSENSE" in log
        assert "DEFAULT_GROUP" not in log, "configurations may hold secrets"

    def test_a_wrong_password_is_not_told(self, target: Scripts) -> None:
        script = scripts.POSTGRES_RESTORE if target.postgres else scripts.MYSQL_RESTORE
        digest = hashlib.sha256(target.file.read_bytes()).hexdigest()
        wrong = {"PGPASSWORD": "wrong-one", "MYSQL_PASS": "wrong-one"}
        code, log = target.run(script, SHA256=digest, OVERWRITE="true", **wrong)
        assert code not in (0, 3)
        assert "wrong-one" not in log
