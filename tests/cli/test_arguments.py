"""What cannot be meant is refused before anything starts: ports, counts, addresses, paths, namespaces, databases."""

from __future__ import annotations

import asyncio
import json
import os
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path

import pytest

from konverge.apiserver.storage.folder import DataFolder
from konverge.cli import control_plane
from konverge.cli.control_plane import signing_authority
from konverge.cli.databases import database, in_samples
from konverge.cli.main import main, parser
from konverge.operators.catalog import find
from konverge.sim.parts import Parts
from konverge.sim.sample_databases import DEFAULTS, Database, given

pytestmark = pytest.mark.spec("S-25")


def refused(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 2) -> str:
    """The last line of the message of a command that was used wrongly, or (1) cannot work here."""
    try:
        result: object = main(list(arguments))
    except SystemExit as ended:
        result = ended.code
    assert result == code
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "Traceback" not in printed.err
    return printed.err.splitlines()[-1]


@pytest.fixture(autouse=True)
def _nothing_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    def started(*_: object, **__: object) -> None:
        raise AssertionError("it started")

    monkeypatch.setattr("konverge.apiserver.signals.run_until_signal", started)


@pytest.mark.parametrize("command", ["up", "apiserver"])
@pytest.mark.parametrize("port", ["99999", "65536", "0", "-1", "http", "6443.5", "", "٦"])
def test_a_port_that_is_none_is_refused(capsys: pytest.CaptureFixture[str], command: str, port: str) -> None:
    message = refused(capsys, command, f"--port={port}")
    assert "argument --port: " in message
    assert "is not a port" in message


def test_the_ends_of_the_range_are_ports() -> None:
    assert [parser().parse_args(["up", f"--port={port}"]).port for port in (1, 65535)] == [1, 65535]
    assert parser().parse_args(["up"]).port == 0


@pytest.mark.parametrize(
    ("command", "option", "form"),
    [
        (("up",), "--port", "{port}"),
        (("apiserver",), "--port", "{port}"),
        (("up",), "--metrics-bind-address", "127.0.0.1:{port}"),
        (("run", "webapp"), "--metrics-bind-address", "127.0.0.1:{port}"),
        (("run", "webapp"), "--health-probe-bind-address", "127.0.0.1:{port}"),
        (("service",), "--bind-address", "127.0.0.1:{port}"),
    ],
)
def test_a_port_in_use_is_refused(
    capsys: pytest.CaptureFixture[str], command: tuple[str, ...], option: str, form: str
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        others = () if command[0] != "run" or "metrics" in option else ("--metrics-bind-address=0",)
        message = refused(capsys, *command, *others, option, form.format(port=port), code=1)
    assert f"{option}: 127.0.0.1:{port} is in use" in message


@pytest.mark.parametrize("host", ["192.0.2.1", "no such host"])
def test_a_host_of_another_machine_is_refused(capsys: pytest.CaptureFixture[str], host: str) -> None:
    assert f"--host: {host!r} is not an address of this machine" in refused(capsys, "up", "--host", host, code=1)


@pytest.mark.parametrize(
    "arguments",
    [
        ("up", "--nodes=-1"),
        ("up", "--nodes=many"),
        ("up", "--nodes=5001"),
        ("controllers", "--nodes=-1"),
        ("sim", "--count=0"),
        ("sim", "--count=-3"),
        ("sim", "--seed=x"),
        ("manifests", "webapp", "--replicas=11"),
    ],
)
def test_counts_have_bounds(capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...]) -> None:
    assert "must be a whole number between" in refused(capsys, *arguments)


@pytest.mark.parametrize(
    "arguments",
    [
        ("run", "webapp", "--watch-namespace=Shop"),
        ("run", "webapp", "--leader-election-namespace=a/b"),
        ("doctor", "--namespace=a_b"),
        ("manifests", "webapp", "--namespace=-x"),
    ],
)
def test_namespaces_have_names(capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...]) -> None:
    assert "is not the name of a namespace" in refused(capsys, *arguments)


def test_other_values_that_cannot_be_meant(capsys: pytest.CaptureFixture[str]) -> None:
    assert "is not an IPv4 address" in refused(capsys, "up", "--pod-address=localhost")
    message = refused(capsys, "service", "--bind-address=127.0.0.1:0", "--server=10.0.0.1:6443")
    assert "--server 10.0.0.1:6443: give the URL" in message


# ------------------------------------------------------------------ files


def test_a_kubeconfig_is_written_where_that_is_possible(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "is a folder" in refused(capsys, "up", "--kubeconfig", str(tmp_path))
    (tmp_path / "file").touch()
    assert "cannot be written" in refused(capsys, "apiserver", "--kubeconfig", str(tmp_path / "file" / "below"))


@pytest.mark.parametrize("text", ["apiVersion: v1\nkind: Config\n", '{"clusters": [{"name": "mine"}]}', "[]"])
def test_a_kubeconfig_of_the_user_is_never_replaced(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str
) -> None:
    path = tmp_path / "config"
    path.write_text(text)
    for command in ("up", "apiserver"):
        assert "was not written by konverge" in refused(capsys, command, "--kubeconfig", str(path))
    assert path.read_text() == text


@pytest.mark.parametrize("text", ["", '{"clusters": [{"name": "konverge"}]}'])
def test_a_kubeconfig_of_an_earlier_run_is_replaced(tmp_path: Path, text: str) -> None:
    path = tmp_path / "config"
    path.write_text(text)
    with pytest.raises(AssertionError, match="it started"):
        main(["--debug", "up", "--kubeconfig", str(path)])


@pytest.mark.parametrize("command", ["up", "apiserver"])
def test_a_data_folder_in_use_is_one_line_with_its_holder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    monkeypatch.undo()
    with closing(DataFolder(tmp_path)):
        assert main([command, "--data-dir", str(tmp_path)]) == 1
    printed = capsys.readouterr()
    assert (printed.out, len(printed.err.splitlines())) == ("", 1)
    assert f"{tmp_path} is in use by process {os.getpid()}: end that one first" in printed.err
    assert "defect" not in printed.err


def test_a_data_folder_that_is_a_file_or_damaged_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()
    (tmp_path / "file").touch()
    assert main(["apiserver", "--data-dir", str(tmp_path / "file")]) == 1
    assert "is a file" in capsys.readouterr().err
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "state.db").write_text("something else" * 100)
    assert main(["apiserver", "--data-dir", str(tmp_path / "data")]) == 1
    printed = capsys.readouterr().err
    assert "state.db is damaged or of another program" in printed
    assert "defect" not in printed


# ------------------------------------------------------------------ databases


def test_a_database_is_named_by_a_url_and_the_rest_is_as_in_the_samples() -> None:
    whole = database("mysql://ann:p%40ss@db.example.com:3307/config")
    assert whole == Database(
        engine="mysql", host="db.example.com", port=3307, username="ann", password="p@ss", name="config"
    )
    assert database("postgresql://db") == Database(engine="postgresql", host="db", port=5432)


@pytest.mark.parametrize(
    "text",
    ["db.example.com", "oracle://db", "mysql://", "mysql://db:0", "mysql://u:geheim@db:99999", "mysql://db/n?tls=1"],
)
def test_what_is_no_database_is_refused_without_its_password(capsys: pytest.CaptureFixture[str], text: str) -> None:
    message = refused(capsys, "up", "--database", text)
    assert "use mysql://USER:PASSWORD@HOST:PORT/NAME" in message
    assert "geheim" not in message


def test_databases_that_are_not_named_are_those_of_the_samples() -> None:
    mine = database("mysql://db")
    assert given([mine]) == [mine, DEFAULTS[1]]
    assert given([]) == list(DEFAULTS)


def test_the_samples_name_the_given_databases() -> None:
    samples = find("nacos").sample_objects()
    mine = [database("mysql://ann:x@my:3307/m"), database("postgresql://bob:y@pg:5433/p")]
    changed = {(item["kind"], item["metadata"]["name"]): item for item in in_samples(samples, mine)}
    one, other = changed["Nacos", "nacos-cluster"]["spec"], changed["Nacos", "nacos-pg"]["spec"]
    assert [one["database"][name] for name in ("mysqlHost", "mysqlPort", "mysqlDb")] == ["my", "3307", "m"]
    assert [other["postgres"][name] for name in ("host", "port", "database")] == ["pg", "5433", "p"]
    assert changed["Secret", "nacos-cluster-mysql"]["stringData"] == {"username": "ann", "password": "x"}
    assert changed["Secret", "nacos-pg-database"]["stringData"] == {"username": "bob", "password": "y"}
    assert changed["Secret", "nacos-pg-admin"]["stringData"]["password"] == "change-me-too"
    assert in_samples(samples, []) == samples


@pytest.mark.parametrize("given", ["--cluster-signing-cert-file", "--cluster-signing-key-file"])
def test_an_authority_needs_both_files(capsys: pytest.CaptureFixture[str], tmp_path: Path, given: str) -> None:
    message = refused(capsys, "controllers", given, str(tmp_path))
    assert "--cluster-signing-cert-file and --cluster-signing-key-file belong together: name both" in message


@pytest.mark.parametrize("missing", ["ca.crt", "ca.key"])
def test_the_files_of_an_authority_exist(capsys: pytest.CaptureFixture[str], tmp_path: Path, missing: str) -> None:
    files = [tmp_path / "ca.crt", tmp_path / "ca.key"]
    next(file for file in files if file.name != missing).touch()
    options = ("--cluster-signing-cert-file", str(files[0]), "--cluster-signing-key-file", str(files[1]))
    assert f"the file {tmp_path / missing} does not exist" in refused(capsys, "controllers", *options)


@pytest.mark.spec("S-41")
def test_the_files_of_an_authority_are_read_when_something_is_signed(tmp_path: Path) -> None:
    files = {name: tmp_path / f"ca.{name}" for name in ("cert", "key")}
    options = [f"--cluster-signing-{name}-file={file}" for name, file in files.items()]
    for file in files.values():
        file.touch()
    authority = signing_authority(parser().parse_args(["controllers", *options]))
    files["cert"].write_bytes(b"a certificate")
    files["key"].write_bytes(b"a key")
    assert authority is not None
    assert authority() == (b"a certificate", b"a key")
    assert signing_authority(parser().parse_args(["controllers"])) is None


@pytest.mark.spec("S-41")
async def test_the_controllers_sign_with_that_authority(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    begun: list[tuple[object, dict[str, object]]] = []

    @asynccontextmanager
    async def at_work(self: Parts, client: object, **options: object) -> AsyncIterator[None]:
        begun.append((self.authority, options))
        yield

    monkeypatch.setattr(Parts, "at_work", at_work)
    kubeconfig = tmp_path / "kubeconfig"
    user, cluster = {"name": "u", "user": {"token": "t"}}, {"name": "c", "cluster": {"server": "http://127.0.0.1:1"}}
    context = {"name": "x", "context": {"user": "u", "cluster": "c"}}
    known = {"users": [user], "clusters": [cluster], "contexts": [context], "current-context": "x"}
    kubeconfig.write_text(json.dumps({"apiVersion": "v1", "kind": "Config", **known}))
    stopping = asyncio.Event()
    stopping.set()

    def authority() -> tuple[bytes, bytes]:
        return b"", b""

    arguments = parser().parse_args(["controllers", "--kubeconfig", str(kubeconfig)])
    await control_plane._control(arguments, authority, stopping)
    assert begun == [(authority, {"nodes": 0, "elected": True})]
