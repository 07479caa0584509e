"""Objects on a server that checks signatures: whole or not there, tried again, and explained where that is no use."""

from __future__ import annotations

import hashlib
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from msgspec.structs import replace

from konverge.operators.nacos.backup.failures import Failure
from konverge.operators.nacos.backup.s3.connection import PATIENCE, Connection, Place
from konverge.operators.nacos.backup.s3.objects import PART, Objects, part_size
from konverge.operators.nacos.backup.s3.signature import Credentials
from tests.operators.nacos.backup.s3.server import BUCKET, USER, WORD, Fault, Store, serving

pytestmark = pytest.mark.spec("N-68")
DATA = bytes(range(256)) * 10
KEY = "prod/default/nacos/first-1.dump"
TOKEN = "a token"


class Pauses:
    """A clock that moves when somebody sleeps."""

    def __init__(self) -> None:
        self.slept: list[float] = []

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)

    def elapsed(self) -> float:
        return sum(self.slept)


@pytest.fixture
def store() -> Store:
    return Store(sessions={USER: TOKEN})


@pytest.fixture
def url(store: Store) -> Iterator[str]:
    with serving(store) as url:
        yield url


@pytest.fixture
def pauses() -> Pauses:
    return Pauses()


@pytest.fixture
def objects(url: str, pauses: Pauses) -> Objects:
    place = Place(
        endpoint=url,
        bucket=BUCKET,
        region="us-east-1",
        path_style=True,
        credentials=lambda: Credentials(USER, WORD, TOKEN),
    )
    return Objects(Connection(place, sleep=pauses.sleep, elapsed=pauses.elapsed), part=1000)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "data"
    path.write_bytes(DATA)
    return path


def failure(objects: Objects, key: str = KEY) -> tuple[str, str]:
    with pytest.raises(Failure) as caught:
        objects.put(key, b"x")
    assert WORD not in caught.value.message
    return caught.value.reason, caught.value.message


def elsewhere(objects: Objects, **place: object) -> Objects:
    connection = objects.connection
    there = replace(connection.place, **place)  # type: ignore[arg-type]
    return Objects(Connection(there, sleep=connection.sleep, elapsed=connection.elapsed), objects.part)


class TestStoring:
    def test_a_small_file_is_one_request(self, objects: Objects, store: Store, tmp_path: Path) -> None:
        file = tmp_path / "small"
        file.write_bytes(b"a" * 1000)
        objects.upload(KEY, file)
        assert store.objects == {KEY: b"a" * 1000}
        assert store.requests == [f"PUT /{BUCKET}/{KEY}"]

    def test_a_large_file_is_sent_in_parts(self, objects: Objects, store: Store, file: Path) -> None:
        objects.upload(KEY, file)
        assert store.objects == {KEY: DATA}
        assert store.uploads == {}
        assert len(store.requests) == 5, "three parts, their beginning and their end"

    def test_a_part_that_fails_is_sent_again(self, objects: Objects, store: Store, file: Path, pauses: Pauses) -> None:
        store.faults = [Fault("PUT", 503, "SlowDown", times=2), Fault("PUT", 0), Fault("PUT", 500, "InternalError")]
        objects.upload(KEY, file)
        assert store.objects == {KEY: DATA}
        assert pauses.slept == [1.0, 2.0, 4.0, 8.0]
        assert objects.connection.retries == 4

    def test_an_upload_that_is_refused_in_the_middle_leaves_nothing(
        self, objects: Objects, store: Store, file: Path
    ) -> None:
        store.faults = [Fault("PUT", 403, "AccessDenied", query="partNumber=3")]
        with pytest.raises(Failure):
            objects.upload(KEY, file)
        assert (store.objects, store.uploads) == ({}, {})

    def test_an_upload_that_breaks_off_is_no_object_and_is_cleaned_up(
        self, objects: Objects, store: Store, file: Path
    ) -> None:
        store.faults = [Fault("PUT", 0, query="partNumber=2", times=100), Fault("DELETE", 0)]
        with pytest.raises(Failure) as caught:
            objects.upload(KEY, file)
        assert caught.value.reason == "EndpointUnreachable"
        assert store.objects == {}
        (begun,) = store.uploads
        store.uploads["other"] = (f"{KEY}.manifest.json", {})
        objects.abort_uploads(KEY)
        assert list(store.uploads) == ["other"], f"{begun} goes, and what begins alike stays"

    @pytest.mark.parametrize(
        ("fault", "reason"),
        [
            (Fault("PUT", 507, "XMinioStorageFull", query="partNumber=3"), "StorageFull"),
            (Fault("PUT", 500, "InternalError", query="partNumber=3", times=100), "StorageFailing"),
            (Fault("PUT", 0, query="partNumber=3", times=100), "EndpointUnreachable"),
        ],
    )
    def test_parts_do_not_stay_where_there_is_no_room(
        self, objects: Objects, store: Store, file: Path, fault: Fault, reason: str
    ) -> None:
        store.faults = [fault]
        with pytest.raises(Failure) as caught:
            objects.upload(KEY, file)
        assert caught.value.reason == reason
        assert (store.objects, store.uploads) == ({}, {})
        assert [request.split()[0] for request in store.requests].count("DELETE") == 1

    def test_an_error_behind_a_good_status(self, objects: Objects, store: Store, file: Path) -> None:
        """S3 answers 200, and puts the parts together while the answer is on its way."""
        body = "<Error><Code>InternalError</Code><Message>again</Message></Error>"
        store.faults = [Fault("POST", 200, query="uploadId", body=body)]
        objects.upload(KEY, file)
        assert store.objects == {KEY: DATA}
        store.faults = [Fault("POST", 200, query="uploadId", body=body.replace("InternalError", "AccessDenied"))]
        with pytest.raises(Failure, match="AccessDenied"):
            objects.upload("other", file)
        assert "other" not in store.objects

    def test_a_completion_whose_answer_is_lost(self, objects: Objects, store: Store, file: Path) -> None:
        store.faults = [Fault("POST", 0, query="uploadId", after=True)]
        objects.upload(KEY, file)
        assert store.objects == {KEY: DATA}
        assert objects.connection.retries == 1

    def test_an_upload_that_others_ended(self, objects: Objects, store: Store, file: Path) -> None:
        store.faults = [Fault("PUT", 404, "NoSuchUpload", query="partNumber=2")]
        with pytest.raises(Failure) as caught:
            objects.upload(KEY, file)
        assert caught.value.reason == "UploadNotFound"
        assert store.objects == {}

    def test_a_service_without_etags(self, objects: Objects, store: Store, file: Path) -> None:
        store.faults = [Fault("PUT", 200, body="<x/>")]
        with pytest.raises(Failure, match="no ETag"):
            objects.upload(KEY, file)
        store.faults = [Fault("POST", 200, body="<x/>")]
        with pytest.raises(Failure, match="no UploadId"):
            objects.upload(KEY, file)

    def test_parts(self) -> None:
        assert part_size(PART * 9000) == PART == 16 << 20
        assert part_size(PART * 9000 + 1) == PART + 1
        assert part_size(1, 7) == 7


class TestReading:
    def test_the_digest_of_what_is_stored(self, objects: Objects, store: Store) -> None:
        store.objects[KEY] = DATA
        assert objects.digest(KEY) == (len(DATA), hashlib.sha256(DATA).hexdigest())
        assert objects.read(KEY, 3) == DATA[:3]

    def test_a_download_that_ends_early_is_begun_anew(self, objects: Objects, store: Store, tmp_path: Path) -> None:
        store.objects[KEY], store.short = DATA, 2
        target = tmp_path / "fetched"
        target.write_bytes(b"z" * 9999)
        assert objects.fetch(KEY, target) == (len(DATA), hashlib.sha256(DATA).hexdigest())
        assert target.read_bytes() == DATA
        assert objects.connection.retries == 2

    def test_a_document_that_ends_early_is_asked_for_again(self, objects: Objects, store: Store) -> None:
        store.objects[KEY], store.short = DATA, 1
        assert objects.read(KEY, len(DATA) + 1) == DATA
        store.short, store.uploads["begun"] = 1, (KEY, {})
        objects.abort_uploads(KEY)
        assert (store.uploads, objects.connection.retries) == ({}, 2)

    def test_an_object_that_never_comes_whole(self, objects: Objects, store: Store) -> None:
        """As MinIO sends one that is damaged on its disk."""
        store.objects[KEY], store.short = DATA, 1000
        for read in (objects.digest, lambda key: objects.read(key, len(DATA))):
            with pytest.raises(Failure, match=r"1280 of 2560 bytes.*choose another backup") as caught:
                read(KEY)
            assert caught.value.reason == "IncompleteAnswer"

    def test_a_full_disk(self, objects: Objects, store: Store) -> None:
        store.objects[KEY] = DATA
        with pytest.raises(Failure) as caught:
            objects.fetch(KEY, Path("/dev/full"))
        assert caught.value.reason == "NoSpace"

    def test_what_is_missing(self, objects: Objects) -> None:
        with pytest.raises(Failure) as caught:
            objects.read(KEY, 10)
        assert caught.value.reason == "ObjectNotFound"


class TestDeleting:
    def test_one_that_is_not_there_is_fine(self, objects: Objects, store: Store) -> None:
        store.objects.update({KEY: b"a", f"{KEY}x": b"b"})
        store.faults = [Fault("DELETE", 404, "NoSuchKey")]
        objects.delete(KEY)
        objects.delete(KEY)
        assert store.objects == {f"{KEY}x": b"b"}

    def test_one_that_may_not_be_deleted(self, objects: Objects, store: Store) -> None:
        store.faults = [Fault("DELETE", 403, "AccessDenied")]
        with pytest.raises(Failure, match="s3:DeleteObject"):
            objects.delete(KEY)

    @pytest.mark.parametrize(("status", "code"), [(403, "AccessDenied"), (501, "NotImplemented"), (404, "")])
    def test_a_service_without_a_list_of_uploads(self, objects: Objects, store: Store, status: int, code: str) -> None:
        store.faults = [Fault("GET", status, code)]
        objects.abort_uploads(KEY)
        store.faults = [Fault("GET", 403, "InvalidAccessKeyId")]
        with pytest.raises(Failure):
            objects.abort_uploads(KEY)


class TestRefusals:
    def test_no_bucket(self, objects: Objects) -> None:
        reason, message = failure(elsewhere(objects, bucket="nowhere"))
        assert reason == "BucketNotFound"
        assert "create it" in message

    def test_wrong_credentials(self, objects: Objects, store: Store) -> None:
        reason, message = failure(elsewhere(objects, credentials=lambda: Credentials(USER, "wrong", TOKEN)))
        assert reason == "InvalidCredentials"
        assert "SignatureDoesNotMatch" in message
        assert "wrong" not in message
        reason, _ = failure(elsewhere(objects, credentials=lambda: Credentials("nobody", "wrong")))
        assert reason == "InvalidCredentials"
        assert store.objects == {}

    @pytest.mark.parametrize(
        ("fault", "expected", "words"),
        [
            (Fault("PUT", 403, "AccessDenied"), "AccessDenied", "allow s3:PutObject"),
            (Fault("PUT", 401), "AccessDenied", "401"),
            (Fault("PUT", 403, "RequestTimeTooSkewed"), "ClockSkew", "clock"),
            (
                Fault("PUT", 301, "PermanentRedirect", headers={"x-amz-bucket-region": "eu-west-1"}),
                "WrongRegion",
                "set region: eu-west-1",
            ),
            (Fault("PUT", 307, "x"), "WrongRegion", "correct region and endpoint"),
            (
                Fault("PUT", 400, body="<Error><Code>AuthorizationHeaderMalformed</Code><Region>x-1</Region></Error>"),
                "WrongRegion",
                "not in region us-east-1, set region: x-1",
            ),
            (Fault("PUT", 400, "InvalidRequest"), "StorageRefused", "400 InvalidRequest: told"),
            (Fault("PUT", 403, body="<html>a proxy"), "AccessDenied", "403"),
            (Fault("PUT", 501, "NotImplemented"), "StorageRefused", "501"),
            (Fault("PUT", 400, body="Client sent an HTTP request to an HTTPS server."), "StorageRefused", "https://"),
            (Fault("PUT", 507, "XMinioStorageFull"), "StorageFull", "make room"),
            (Fault("PUT", 400, "XMinioAdminBucketQuotaExceeded"), "StorageFull", "raise its quota"),
            (Fault("PUT", 403, "QuotaExceeded"), "StorageFull", "403 QuotaExceeded"),
        ],
    )
    def test_what_is_said(
        self, objects: Objects, store: Store, pauses: Pauses, fault: Fault, expected: str, words: str
    ) -> None:
        store.faults = [fault]
        reason, message = failure(objects)
        assert reason == expected
        assert words in message
        assert pauses.slept == [], "it would not help"

    def test_another_region(self, objects: Objects, store: Store) -> None:
        store.region = "eu-west-1"
        reason, message = failure(objects)
        assert (reason, "set region: eu-west-1" in message) == ("WrongRegion", True)

    def test_a_token_that_is_not_valid_any_more(self, objects: Objects, store: Store) -> None:
        store.sessions[USER] = "another"
        reason, message = failure(objects)
        assert (reason, "InvalidTokenId" in message) == ("InvalidCredentials", True)

    def test_a_service_that_fails(self, objects: Objects, store: Store) -> None:
        store.faults = [Fault("PUT", 500, "InternalError", times=100)]
        reason, message = failure(objects)
        assert reason == "StorageFailing"
        assert "does not do its work (500 InternalError: told)" in message

    def test_an_endpoint_that_stays_away(self, objects: Objects, pauses: Pauses) -> None:
        reason, message = failure(elsewhere(objects, endpoint="http://127.0.0.1:1"))
        assert reason == "EndpointUnreachable"
        assert "http://127.0.0.1:1 does not answer" in message
        assert "network policies" in message
        assert pauses.slept[:6] == [1.0, 2.0, 4.0, 8.0, 16.0, 30.0]
        assert max(pauses.slept) == 30.0
        assert PATIENCE - 30.0 < sum(pauses.slept) <= PATIENCE

    @pytest.mark.parametrize(("status", "code"), [(429, "x"), (503, ""), (400, "RequestTimeout"), (502, "")])
    def test_what_passes(self, objects: Objects, store: Store, pauses: Pauses, status: int, code: str) -> None:
        store.faults = [Fault("PUT", status, code)]
        objects.put(KEY, b"x")
        assert pauses.slept == [1.0]
        assert store.objects == {KEY: b"x"}


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate of 127.0.0.1 that signs itself, and its key."""
    folder = tmp_path_factory.mktemp("tls")
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    names = ["-subj", "/CN=s3", "-addext", "subjectAltName=IP:127.0.0.1", "-days", "2"]
    files = ["-keyout", str(folder / "key"), "-out", str(folder / "ca.crt")]
    subprocess.run([*command, *names, *files], check=True, capture_output=True)
    both = folder / "both"
    both.write_bytes((folder / "ca.crt").read_bytes() + (folder / "key").read_bytes())
    return both


def test_tls(objects: Objects, store: Store, certificate: Path, tmp_path: Path) -> None:
    with serving(store, certificate=certificate) as url:
        reason, message = failure(elsewhere(objects, endpoint=url))
        assert reason == "TLSNotTrusted"
        assert "caSecret" in message
        broken = tmp_path / "broken.crt"
        broken.write_text("no certificate")
        reason, message = failure(elsewhere(objects, endpoint=url, authority=broken))
        assert (reason, "PEM" in message) == ("TLSNotTrusted", True)
        assert store.objects == {}
        authority = certificate.parent / "ca.crt"
        elsewhere(objects, endpoint=url, authority=authority).put(KEY, b"x")
        assert store.objects == {KEY: b"x"}


def test_an_endpoint_without_tls(objects: Objects, pauses: Pauses) -> None:
    url = objects.connection.place.endpoint
    reason, message = failure(elsewhere(objects, endpoint=url.replace("http:", "https:")))
    assert (reason, "write http://" in message) == ("TLSNotTrusted", True)
    assert pauses.slept == [], "it would not help"


def test_rotated_credentials_are_followed(objects: Objects, store: Store, file: Path) -> None:
    users = iter([Credentials(USER, WORD, TOKEN)] * 2 + [Credentials("second", "word")] * 3)
    store.users["second"] = "word"
    elsewhere(objects, credentials=lambda: next(users)).upload(KEY, file)
    assert store.objects == {KEY: DATA}


def test_styles_of_names() -> None:
    place = Place(
        endpoint="https://s3.example:8443",
        bucket=BUCKET,
        region="r",
        path_style=False,
        credentials=lambda: Credentials("", ""),
    )
    assert (place.host, place.path("a/b")) == ("backups.s3.example:8443", "/a/b")
    path = replace(place, path_style=True)
    assert (path.host, path.path("a/b")) == ("s3.example:8443", "/backups/a/b")
    address = replace(place, endpoint="http://10.0.0.1:9000")
    assert (address.host, address.path("a")) == ("10.0.0.1:9000", "/backups/a")


def test_the_time_of_a_request_is_that_of_the_clock(objects: Objects) -> None:
    objects.connection.now = lambda: datetime(2026, 1, 1, tzinfo=UTC)
    assert failure(objects)[0] == "ClockSkew"
