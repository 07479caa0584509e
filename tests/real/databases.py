"""Real PostgreSQL and MariaDB servers, from the distribution's packages, each in a folder and on a port of its own.

Neither runs as root: when the tests do, the servers run as the user that the package made, or as the user `nobody`.
Statements of the tests go through psql and mariadb, so that the drivers under test are checked by other programs.
"""

from __future__ import annotations

import grp
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from konverge.apiserver import certificates
from konverge.apiserver.certificates import Certificates
from konverge.apiserver.private_files import write_private
from konverge.operators.nacos.database import Engine, Target, Tls
from tools import real_packages
from tools.control_plane import free_port

PASSWORD = 'it\'s a "test" \\ 100%'
"""Of every administrator here; it has every character that breaks careless quoting."""

START = 180.0
"""Seconds to start or to end, on a machine that is busy with other things."""


@dataclass
class Server:
    """A running server. `administrator` may do everything, `port` listens on 127.0.0.1 with TLS."""

    engine: Engine
    port: int
    folder: Path
    administrator: str
    keys: Certificates
    process: subprocess.Popen[bytes]
    query: Callable[[Server, str, str], str]
    open: Callable[[Server, str], subprocess.Popen[str]]
    names: int = field(default=0)

    def sql(self, statement: str, database: str = "") -> str:
        """Run as the administrator; the rows as text, tabs between columns."""
        return self.query(self, statement, database)

    def target(self, database: str, username: str = "", password: str = PASSWORD, tls: Tls | None = None) -> Target:
        return Target(
            engine=self.engine,
            host="127.0.0.1",
            port=self.port,
            database=database,
            username=username or self.administrator,
            password=password,
            tls=tls or Tls(mode="disable"),
        )

    def new_database(self) -> str:
        """Create a database; its name."""
        self.names += 1
        name = f"nacos_{self.names}"
        self.sql(f"CREATE DATABASE {name}")
        return name

    @contextmanager
    def session(self, statement: str, database: str) -> Iterator[None]:
        """A session that has run this and stays open for as long as the block lasts."""
        with self.open(self, database) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(f"{statement};\nSELECT 'it is done';\n")
            process.stdin.flush()
            while (line := process.stdout.readline().strip()) != "it is done":
                assert line or process.poll() is None, "the session ended"
            try:
                yield
            finally:
                process.stdin.close()
                process.wait()

    def freeze(self) -> None:
        self.process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self.process.send_signal(signal.SIGCONT)


# ------------------------------------------------------------------ processes


@dataclass(frozen=True)
class Account:
    """The user who runs the servers; none where the tests do not run as root."""

    user: int | None = None
    group: int | None = None

    @property
    def arguments(self) -> dict[str, int | list[int]]:
        if self.user is None or self.group is None:
            return {}
        return {"user": self.user, "group": self.group, "extra_groups": []}

    def owns(self, folder: Path) -> None:
        if self.user is not None and self.group is not None:
            for path in [folder, *folder.rglob("*")]:
                os.chown(path, self.user, self.group)


def _account(preferred: str) -> Account:
    if os.geteuid() != 0:
        return Account()
    known = {entry.pw_name: entry for entry in pwd.getpwall()}
    entry = known.get(preferred) or known["nobody"]
    return Account(entry.pw_uid, grp.getgrgid(entry.pw_gid).gr_gid)


@contextmanager
def _folder() -> Iterator[Path]:
    """A folder with a short path (it contains sockets) that another user can enter."""
    path = Path(tempfile.mkdtemp(prefix="konverge-db-"))
    path.chmod(0o755)
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


def _write_keys(keys: Certificates, folder: Path) -> None:
    (folder / "server.crt").write_bytes(keys.server)
    write_private(folder / "server.key", keys.server_key)


def _run(command: list[str], account: Account, folder: Path) -> None:
    done = subprocess.run(
        command, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, **account.arguments
    )
    assert done.returncode == 0, f"{command[0]}: {done.stdout[-2000:]}{done.stderr[-2000:]}"


@contextmanager
def _process(command: list[str], account: Account, folder: Path, stop: signal.Signals) -> Iterator[subprocess.Popen]:
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            command, cwd=folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log, **account.arguments
        )
        try:
            yield process
        finally:
            process.send_signal(signal.SIGCONT)
            process.send_signal(stop)
            process.wait(START)


def _until_answering(server: Server) -> None:
    deadline = time.monotonic() + START
    while True:
        try:
            server.sql("SELECT 1")
            return
        except subprocess.CalledProcessError:
            log = (server.folder / "log").read_text(errors="replace")[-3000:]
            if server.process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"the server does not answer: {log}") from None
            time.sleep(0.1)


def _environment(**more: str) -> dict[str, str]:
    return {"PATH": os.environ.get("PATH", ""), "LC_ALL": "C.UTF-8", **more}


def _interactive(command: list[str], environment: dict[str, str]) -> subprocess.Popen[str]:
    return subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def _client(command: list[str], environment: dict[str, str]) -> str:
    done = subprocess.run(
        command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise subprocess.CalledProcessError(done.returncode, command[0], done.stdout, done.stderr)
    return done.stdout.rstrip("\n")


# ------------------------------------------------------------------ PostgreSQL


def _psql_command(server: Server, database: str) -> tuple[list[str], dict[str, str]]:
    command = ["psql", "-X", "-q", "-A", "-t", "-F", "\t", "-v", "ON_ERROR_STOP=1"]
    where = ["-h", str(server.folder), "-p", str(server.port), "-U", server.administrator, "-d", database or "postgres"]
    return [*command, *where], _environment()


def _psql(server: Server, statement: str, database: str) -> str:
    command, environment = _psql_command(server, database)
    return _client([*command, "-c", statement], environment)


def _psql_session(server: Server, database: str) -> subprocess.Popen[str]:
    return _interactive(*_psql_command(server, database))


def _make_cluster(programs: Path, account: Account, folder: Path, keys: Certificates) -> Path:
    data = folder / "data"
    (folder / "password").write_text(PASSWORD)
    _write_keys(keys, folder)
    account.owns(folder)
    access = ["-U", "postgres", "--auth-host", "scram-sha-256", "--auth-local", "trust", "--pwfile"]
    options = [*access, str(folder / "password"), "-E", "UTF8", "--locale", "C", "--no-sync"]
    _run([str(programs / "initdb"), "-D", str(data), *options], account, folder)
    return data


def _postgres(programs: Path, data: Path, port: int, folder: Path, tls: bool = True) -> list[str]:
    settings = {
        "listen_addresses": "127.0.0.1",
        "unix_socket_directories": str(folder),
        "fsync": "off",
        "ssl": "on" if tls else "off",
        "ssl_cert_file": str(folder / "server.crt"),
        "ssl_key_file": str(folder / "server.key"),
        "max_connections": "40",
        "shared_buffers": "16MB",
    }
    flags = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
    return [str(programs / "postgres"), "-D", str(data), "-p", str(port), *flags]


@contextmanager
def postgres_server(*, tls: bool = True) -> Iterator[Server]:
    programs = real_packages.postgres_programs()
    assert programs is not None
    account = _account("postgres")
    with _folder() as folder, ExitStack() as stack:
        keys = certificates.make(("127.0.0.1", "database.example"))
        data = _make_cluster(programs, account, folder, keys)
        port = free_port()
        command = _postgres(programs, data, port, folder, tls)
        process = stack.enter_context(_process(command, account, folder, signal.SIGQUIT))
        server = Server("postgresql", port, folder, "postgres", keys, process, _psql, _psql_session)
        _until_answering(server)
        yield server


@contextmanager
def postgres_standby(primary: Server) -> Iterator[Server]:
    """A streaming replica of `primary`: it answers and is read-only for as long as it lives."""
    programs = real_packages.postgres_programs()
    assert programs is not None
    account = _account("postgres")
    with _folder() as folder, ExitStack() as stack:
        _write_keys(primary.keys, folder)
        account.owns(folder)
        source = f"host={primary.folder} port={primary.port} user=postgres"
        backup = [str(programs / "pg_basebackup"), "-R", "-X", "stream", "-c", "fast", "-N"]
        _run([*backup, "-D", str(folder / "data"), "-d", source], account, folder)
        port = free_port()
        command = _postgres(programs, folder / "data", port, folder)
        process = stack.enter_context(_process(command, account, folder, signal.SIGQUIT))
        server = Server("postgresql", port, folder, "postgres", primary.keys, process, _psql, _psql_session)
        _until_answering(server)
        yield server


# ------------------------------------------------------------------ MariaDB


def _mariadb_command(server: Server, database: str) -> tuple[list[str], dict[str, str]]:
    where = ["-h", "127.0.0.1", "-P", str(server.port), "-u", server.administrator]
    form = ["--batch", "--raw", "--skip-column-names", "--unbuffered", "--default-character-set=utf8mb4"]
    return ["mariadb", "--no-defaults", *where, *form, *([database] if database else [])], _environment(
        MYSQL_PWD=PASSWORD
    )


def _mariadb(server: Server, statement: str, database: str) -> str:
    command, environment = _mariadb_command(server, database)
    return _client([*command, "-e", statement], environment)


def _mariadb_session(server: Server, database: str) -> subprocess.Popen[str]:
    return _interactive(*_mariadb_command(server, database))


@contextmanager
def mariadb_server(*, tls: bool = True) -> Iterator[Server]:
    programs = real_packages.mariadb_programs()
    assert programs is not None
    account = _account("mysql")
    with _folder() as folder, ExitStack() as stack:
        keys = certificates.make(("127.0.0.1", "database.example"))
        _write_keys(keys, folder)
        escaped = PASSWORD.replace("\\", "\\\\").replace("'", "\\'")
        (folder / "first.sql").write_text(
            f"CREATE USER 'administrator'@'%' IDENTIFIED BY '{escaped}';\n"
            "GRANT ALL ON *.* TO 'administrator'@'%' WITH GRANT OPTION;\n"
        )
        account.owns(folder)
        install = [str(programs.install), "--no-defaults", f"--datadir={folder / 'data'}", "--skip-test-db"]
        _run([*install, "--auth-root-authentication-method=normal"], account, folder)
        port = free_port()
        command = _mariadbd(programs.server, folder, port, tls)
        process = stack.enter_context(_process(command, account, folder, signal.SIGKILL))
        server = Server("mysql", port, folder, "administrator", keys, process, _mariadb, _mariadb_session)
        _until_answering(server)
        yield server


def _mariadbd(program: Path, folder: Path, port: int, tls: bool) -> list[str]:
    keys = [f"--ssl-cert={folder / 'server.crt'}", f"--ssl-key={folder / 'server.key'}"] if tls else []
    settings = {
        "datadir": folder / "data",
        "socket": folder / "socket",
        "pid-file": folder / "pid",
        "init-file": folder / "first.sql",
        "port": port,
        "bind-address": "127.0.0.1",
        "innodb-flush-log-at-trx-commit": 0,
        "innodb-buffer-pool-size": "32M",
        "max-connections": 40,
    }
    flags = [f"--{name}={value}" for name, value in settings.items()]
    return [str(program), "--no-defaults", "--skip-name-resolve", *flags, *keys]
