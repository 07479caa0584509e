"""What carries the data of backups to and from buckets, against a server that checks signatures."""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest

from konverge.operators.nacos.backup import carry
from konverge.operators.nacos.backup.failures import Failure, read_failure
from konverge.operators.nacos.backup.manifest import LONGEST, SUFFIX, Manifest, check_data, read_manifest
from konverge.operators.nacos.backup.s3 import connection
from tests.operators.nacos.backup.s3.server import BUCKET, USER, WORD, Fault, Store, serving

pytestmark = pytest.mark.spec("N-68")
DATA = b"the dump of a database"
DIGEST = hashlib.sha256(DATA).hexdigest()
PREFIX = "prod/default/nacos/first-01234567-"
KEY, EARLIER = f"{PREFIX}2.dump", f"{PREFIX}1.dump"


def manifest_of(data: bytes = DATA, **more: Any) -> bytes:
    given = {"method": "Database", "engine": "postgresql", "nacos_version": "2.4.3", "schema": "until-2.4"}
    sha256 = hashlib.sha256(data).hexdigest()
    return msgspec.json.encode(Manifest(**{**given, "size": len(data), "sha256": sha256, **more}))


class Pod:
    """A container with the program, on a disk with the data."""

    def __init__(self, url: str, folder: Path) -> None:
        self.file, self.result = folder / "first-01234567-2.dump", folder / "result"
        self.credentials = folder / "credentials"
        self.credentials.mkdir()
        (self.credentials / "id").write_text(f"{USER}\n")
        (self.credentials / "word").write_text(WORD)
        self.write(DATA, manifest_of())
        self.log = ""
        self.env = {
            "FILE": str(self.file),
            "RESULT": str(self.result),
            "KEY": KEY,
            "KEYS": f"{EARLIER}\n{KEY}",
            "SHA256": DIGEST,
            "S3_ENDPOINT": f"{url}/",
            "S3_BUCKET": BUCKET,
            "S3_REGION": "us-east-1",
            "S3_PATH_STYLE": "true",
            "S3_CREDENTIALS": str(self.credentials),
            "S3_ACCESS_KEY": "id",
            "S3_SECRET_KEY": "word",
            "S3_SESSION_TOKEN": "token",
        }

    def write(self, data: bytes, manifest: bytes) -> None:
        self.file.write_bytes(data)
        self.beside.write_bytes(manifest)

    @property
    def beside(self) -> Path:
        return Path(f"{self.file}{SUFFIX}")

    def run(self, action: str) -> int:
        log = io.StringIO()
        code = carry.main([action], self.env, log)
        self.log = log.getvalue()
        assert WORD not in self.log + self.result.read_text()
        return code

    def failed(self, action: str) -> str:
        """The reason."""
        assert self.run(action) == 1
        failure = read_failure(self.result.read_text())
        assert failure is not None
        assert self.log == f"{failure.message}\n"
        return failure.reason


@pytest.fixture
def store() -> Store:
    return Store()


@pytest.fixture
def pod(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Pod]:
    monkeypatch.setattr(connection.Connection.__init__, "__defaults__", (0.0, lambda _: None, lambda: 0.0, _now))
    with serving(store) as url:
        yield Pod(url, tmp_path)


def _now() -> datetime:
    return datetime.now(UTC)


class TestUpload:
    def test_the_data_and_then_its_manifest(self, pod: Pod, store: Store) -> None:
        assert pod.run("upload") == 0
        assert store.objects == {KEY: DATA, KEY + SUFFIX: manifest_of()}
        assert json.loads(pod.result.read_text()) == {"size": len(DATA), "sha256": DIGEST}
        writes = [request for request in store.requests if request.startswith(("PUT", "GET"))]
        wanted = [f"PUT /{BUCKET}/{KEY}", f"GET /{BUCKET}/{KEY}", f"PUT /{BUCKET}/{KEY}{SUFFIX}"]
        assert writes[-3:] == wanted, "what was stored is read again before it is called whole"

    def test_what_was_left_goes_and_what_begins_alike_stays(self, pod: Pod, store: Store) -> None:
        others = {f"{PREFIX}1-2.dump": b"o", f"{KEY}.old": b"o", f"{PREFIX}3.dump": b"o"}
        store.objects.update(others)
        store.objects.update({EARLIER: b"e", EARLIER + SUFFIX: b"e", KEY + SUFFIX: b"of an attempt before"})
        store.uploads.update({"a": (EARLIER, {}), "b": (f"{EARLIER}x", {})})
        store.faults = [Fault("PUT", 403, "AccessDenied")]
        assert pod.failed("upload") == "AccessDenied"
        assert store.objects == others, "no manifest beside data that it does not describe"
        assert list(store.uploads) == ["b"]
        assert pod.run("upload") == 0
        assert store.objects == {**others, KEY: DATA, KEY + SUFFIX: manifest_of()}

    def test_storage_that_corrupts(self, pod: Pod, store: Store) -> None:
        store.corrupts = True
        assert pod.failed("upload") == "ChecksumMismatch"
        assert store.objects == {}

    def test_killed_between_the_data_and_its_manifest(self, pod: Pod, store: Store) -> None:
        store.objects[KEY] = b"of a pod that was killed"
        assert pod.failed("inspect") == "ManifestMissing", "it does not look whole"
        assert pod.run("upload") == 0
        assert pod.run("inspect") == 0

    @pytest.mark.parametrize("manifest", [manifest_of(b"other"), b"{}", b""])
    def test_a_dump_that_does_not_fit_its_manifest(self, pod: Pod, store: Store, manifest: bytes) -> None:
        pod.write(DATA, manifest)
        assert pod.failed("upload") in ("ChecksumMismatch", "ManifestInvalid")
        assert store.requests == []

    def test_no_dump(self, pod: Pod) -> None:
        pod.beside.unlink()
        assert pod.failed("upload") == "DumpMissing"

    def test_an_endpoint_that_is_away(self, pod: Pod) -> None:
        pod.env["S3_ENDPOINT"] = "http://127.0.0.1:1"
        assert pod.failed("upload") == "EndpointUnreachable"

    def test_a_secret_without_its_keys(self, pod: Pod) -> None:
        (pod.credentials / "word").unlink()
        assert pod.failed("upload") == "InvalidCredentials"
        assert "must have the keys id and word" in pod.log

    def test_a_session_has_a_token(self, pod: Pod, store: Store) -> None:
        store.sessions[USER] = "t"
        assert pod.failed("upload") == "InvalidCredentials"
        (pod.credentials / "token").write_text("t\n")
        assert pod.run("upload") == 0


class TestFetch:
    def test_the_way_back(self, pod: Pod, store: Store, tmp_path: Path) -> None:
        store.objects[KEY] = DATA
        pod.env["FILE"] = str(tmp_path / "deep" / "down" / "x.dump")
        assert pod.run("fetch") == 0
        assert Path(pod.env["FILE"]).read_bytes() == DATA
        assert pod.result.read_text() == ""

    def test_other_data(self, pod: Pod, store: Store) -> None:
        store.objects[KEY] = b"other"
        assert pod.failed("fetch") == "ChecksumMismatch"


@pytest.mark.spec("N-69")
class TestInspect:
    def test_the_manifest_is_the_result(self, pod: Pod, store: Store) -> None:
        store.objects.update({KEY: DATA, KEY + SUFFIX: manifest_of()})
        assert pod.run("inspect") == 0
        assert read_manifest(pod.result.read_bytes(), "x") == read_manifest(manifest_of(), "x")

    def test_refusals(self, pod: Pod, store: Store) -> None:
        store.objects[KEY] = DATA
        assert pod.failed("inspect") == "ManifestMissing"
        store.objects[KEY + SUFFIX] = manifest_of(format=2)
        assert pod.failed("inspect") == "ManifestInvalid"
        store.objects[KEY + SUFFIX] = manifest_of()
        store.objects[KEY] = DATA[:-1] + b"!"
        assert pod.failed("inspect") == "ChecksumMismatch"
        del store.objects[KEY]
        assert pod.failed("inspect") == "ObjectNotFound"
        pod.env["S3_BUCKET"] = "nowhere"
        assert pod.failed("inspect") == "BucketNotFound"

    def test_a_volume(self, pod: Pod) -> None:
        del pod.env["S3_BUCKET"]
        assert pod.run("inspect") == 0
        assert read_manifest(pod.result.read_bytes(), "x").engine == "postgresql"
        pod.file.write_bytes(DATA + b"!")
        assert pod.failed("inspect") == "ChecksumMismatch"
        pod.file.unlink()
        assert pod.failed("inspect") == "DataNotFound"
        pod.beside.unlink()
        assert pod.failed("inspect") == "ManifestMissing"
        assert "nothing was changed" in pod.log


class TestDelete:
    def test_nothing_but_its_own(self, pod: Pod, store: Store) -> None:
        others = {f"{PREFIX}2.dump.old": b"o", f"{PREFIX}22.dump": b"o", f"{PREFIX}1-1.dump{SUFFIX}": b"o"}
        store.objects.update({**others, KEY: DATA, KEY + SUFFIX: b"m", EARLIER: DATA})
        store.uploads.update({"a": (KEY, {}), "b": (f"{KEY}.old", {})})
        assert pod.run("delete") == 0
        assert store.objects == others
        assert list(store.uploads) == ["b"]
        assert pod.run("delete") == 0, "there may be nothing to delete"

    def test_a_bucket_that_is_gone(self, pod: Pod, store: Store) -> None:
        store.buckets.clear()
        assert pod.run("delete") == 0

    def test_a_refusal(self, pod: Pod, store: Store) -> None:
        store.objects[KEY] = DATA
        store.faults = [Fault("DELETE", 403, "AccessDenied")]
        assert pod.failed("delete") == "AccessDenied"


@pytest.mark.spec("N-69")
class TestManifests:
    @pytest.mark.parametrize(
        ("data", "words"),
        [
            (b"", "is no manifest"),
            (b"[]", "is no manifest"),
            (manifest_of() + b" " * LONGEST, "more than 3000 bytes"),
            (manifest_of(format=0), "has format 0, and this version reads 1"),
            (manifest_of(size=0), "lacks"),
            (manifest_of(sha256="a" * 63), "lacks"),
            (manifest_of(method="Magic"), "lacks"),
        ],
    )
    def test_that_are_not_understood(self, data: bytes, words: str) -> None:
        with pytest.raises(Failure, match=words):
            read_manifest(data, "x")

    def test_fields_of_newer_versions_are_ignored(self) -> None:
        known = json.loads(manifest_of())
        assert read_manifest(json.dumps({**known, "compression": "zstd"}).encode(), "x").size == len(DATA)

    def test_data_is_compared(self) -> None:
        manifest = read_manifest(manifest_of(), "x")
        check_data(len(DATA), DIGEST, manifest, "x")
        for size, sha256 in ((len(DATA) + 1, DIGEST), (len(DATA), "0" * 64)):
            with pytest.raises(Failure, match="choose another backup"):
                check_data(size, sha256, manifest, "x")


def test_what_a_failure_says() -> None:
    text = Failure("AccessDenied", "m" * 5000).encode()
    assert len(text) < 4096, "a termination message"
    said = read_failure(text)
    assert said is not None
    assert (said.reason, said.message) == ("AccessDenied", "m" * 1000)
    for other in ("", "pg_dump: error", '{"reason": "a b", "message": ""}', '{"reason": 1}', '{"size": 1}'):
        assert read_failure(other) is None
