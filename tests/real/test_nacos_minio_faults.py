"""What goes wrong with MinIO: it is away, has no room, damages objects, refuses; our own S3 server refuses alike."""

from __future__ import annotations

import hashlib
import http.client
import os
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from msgspec.structs import replace

from konverge.operators.nacos.backup import carry
from konverge.operators.nacos.backup.failures import Failure
from konverge.operators.nacos.backup.manifest import SUFFIX, Manifest
from konverge.operators.nacos.backup.s3.connection import Connection, Place, document, fields_of
from konverge.operators.nacos.backup.s3.objects import Objects
from konverge.operators.nacos.backup.s3.signature import (
    Credentials,
    Request,
    encoded_path,
    encoded_query,
    signed_headers,
)
from tests.operators.nacos.backup.s3 import server as ours
from tests.real.minio import REGION, USER, WORD, Minio, minio_server, session
from tests.real.test_nacos_minio import KEY, PART, begun, listed

pytestmark = pytest.mark.spec("N-80")
RIGHTS = (
    "s3:PutObject",
    "s3:GetObject",
    "s3:DeleteObject",
    "s3:AbortMultipartUpload",
    "s3:ListBucketMultipartUploads",
)
"""Those that docs/nacos-backup.md names."""


@pytest.fixture(scope="module")
def minio(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Minio]:
    with minio_server(tmp_path_factory.mktemp("minio")) as server:
        yield server


@pytest.fixture
def objects(minio: Minio) -> Iterator[Objects]:
    """The bucket, which is empty before and afterwards."""
    found = Objects(Connection(minio.place, patience=0.0), part=PART)
    yield found
    for key in listed(found):
        found.delete(key)
    assert begun(found) == []


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Three parts."""
    path = tmp_path / "large"
    path.write_bytes(os.urandom(PART * 2 + 1))
    return path


def digest(file: Path) -> tuple[int, str]:
    return file.stat().st_size, hashlib.sha256(file.read_bytes()).hexdigest()


def reason(action: Callable[[], object]) -> str:
    with pytest.raises(Failure) as caught:
        action()
    assert WORD not in caught.value.message
    return caught.value.reason


class TestAway:
    def patient(self, minio: Minio, **place: Any) -> Objects:
        """It comes back while we wait the second time."""
        pauses: list[float] = []

        def sleep(seconds: float) -> None:
            pauses.append(seconds)
            if len(pauses) == 2:
                minio.start()

        connection = Connection(replace(minio.place, **place), sleep=sleep, elapsed=lambda: sum(pauses))
        return Objects(connection, part=PART)

    def test_before_the_first_request(self, minio: Minio, objects: Objects) -> None:
        waiting = self.patient(minio)
        minio.kill()
        waiting.put(KEY, b"x")
        assert (objects.read(KEY, 10), waiting.connection.retries) == (b"x", 2)

    def test_killed_between_two_parts(self, minio: Minio, objects: Objects, file: Path) -> None:
        requests: list[Credentials] = []

        def credentials() -> Credentials:
            requests.append(minio.place.credentials())
            if len(requests) == 3:  # the second part
                minio.kill()
            return requests[-1]

        waiting = self.patient(minio, credentials=credentials)
        waiting.upload(KEY, file)
        assert waiting.connection.retries == 2
        assert objects.digest(KEY) == digest(file)


class TestRoom:
    @pytest.fixture(autouse=True)
    def quota(self, minio: Minio) -> Iterator[None]:
        """Less than a part."""
        self.limit(minio, PART - 1)
        yield
        self.limit(minio, 0)

    def limit(self, minio: Minio, size: int) -> None:
        body = b'{"quota": %d, "quotatype": "hard"}' % size
        query = {"bucket": minio.place.bucket}
        assert answered(minio.place, "PUT", "/minio/admin/v3/set-bucket-quota", query, body)[0] == 200

    def test_none_is_left_for_a_part(self, objects: Objects, file: Path) -> None:
        assert reason(lambda: objects.upload(KEY, file)) == "StorageFull"
        assert (listed(objects), begun(objects)) == ([], []), "what was sent takes no room"

    def test_none_is_left_for_a_file(self, objects: Objects, tmp_path: Path) -> None:
        file = tmp_path / "small"
        file.write_bytes(b"x" * PART)
        assert reason(lambda: objects.upload(KEY, file)) == "StorageFull"
        assert listed(objects) == []


class TestDamage:
    @pytest.fixture(autouse=True)
    def stored(self, objects: Objects, file: Path) -> None:
        size, sha256 = digest(file)
        manifest = Manifest(method="Database", engine="postgresql", size=size, sha256=sha256)
        objects.upload(KEY, file)
        objects.put(KEY + SUFFIX, carry.msgspec.json.encode(manifest))
        assert carry.inspect_object(objects, KEY)

    def part(self, minio: Minio) -> Path:
        (found,) = (minio.data / minio.place.bucket / KEY).glob("*/part.2")
        return found

    def test_on_its_disk(self, minio: Minio, objects: Objects, tmp_path: Path) -> None:
        part = self.part(minio)
        data = bytearray(part.read_bytes())
        data[len(data) // 2] ^= 1
        part.write_bytes(data)
        assert reason(lambda: carry.inspect_object(objects, KEY)) == "IncompleteAnswer"
        assert reason(lambda: carry.fetch(objects, KEY, tmp_path / "back", "")) == "IncompleteAnswer"

    def test_cut_off_on_its_disk(self, minio: Minio, objects: Objects) -> None:
        os.truncate(self.part(minio), PART // 2)
        assert reason(lambda: carry.inspect_object(objects, KEY)) == "IncompleteAnswer"

    def test_by_somebody_who_may_write(self, objects: Objects, file: Path, tmp_path: Path) -> None:
        objects.put(KEY, file.read_bytes()[:PART])
        assert reason(lambda: carry.inspect_object(objects, KEY)) == "ChecksumMismatch"
        sha256 = digest(file)[1]
        assert reason(lambda: carry.fetch(objects, KEY, tmp_path / "back", sha256)) == "ChecksumMismatch"


class TestSessions:
    def by(self, minio: Minio, credentials: Credentials) -> Objects:
        return Objects(Connection(replace(minio.place, credentials=lambda: credentials), patience=0.0), part=PART)

    def test_the_rights_that_are_documented_are_enough(self, minio: Minio, objects: Objects, file: Path) -> None:
        own = self.by(minio, session(minio.place, *RIGHTS))
        own.connection.send("POST", KEY, document, query={"uploads": ""})  # of an attempt that broke off
        carry.remove(own, [KEY])
        own.upload(KEY, file)
        assert own.digest(KEY) == digest(file)
        own.delete(KEY)
        assert (listed(objects), begun(objects)) == ([], [])

    def test_fewer_are_refused(self, minio: Minio, objects: Objects, file: Path) -> None:
        reader = self.by(minio, session(minio.place, "s3:GetObject"))
        assert reason(lambda: reader.upload(KEY, file)) == "AccessDenied"
        assert reason(lambda: reader.put(KEY, b"x")) == "AccessDenied"
        assert reason(lambda: reader.delete(KEY)) == "AccessDenied"
        reader.abort_uploads(KEY)
        assert listed(objects) == []

    def test_a_token_that_is_wrong_or_missing(self, minio: Minio) -> None:
        given = session(minio.place, *RIGHTS)
        for token in ("", "wrong"):
            wrong = self.by(minio, Credentials(given.access_key, given.secret_key, token))
            assert reason(lambda wrong=wrong: wrong.put(KEY, b"x")) == "InvalidCredentials"
            assert reason(lambda wrong=wrong: wrong.abort_uploads(KEY)) == "InvalidCredentials"


def answered(
    place: Place, method: str, path: str, query: dict[str, str], body: bytes, digest: str = "", when: str = ""
) -> tuple[int, str]:
    """The status and the code of the error."""
    request = Request(
        method=method, host=place.host, path=path, query=query, digest=digest or hashlib.sha256(body).hexdigest()
    )
    now = datetime.fromisoformat(when) if when else datetime.now(UTC)
    headers = signed_headers(request, place.credentials(), place.region, now)
    connection = http.client.HTTPConnection(place.host, timeout=60)
    target = encoded_path(path) + (f"?{encoded_query(query)}" if query else "")
    connection.request(method, target, body=body, headers=headers)
    answer = connection.getresponse()
    text = answer.read()
    connection.close()
    return answer.status, fields_of(ElementTree.fromstring(text)).get("Code", "") if text.startswith(b"<") else ""


def refusals(place: Place) -> dict[str, tuple[int, str]]:
    """What a server says to requests that it does not do."""

    def ask(method: str, path: str, query: dict[str, str] | None = None, body: bytes = b"", **more: Any) -> Any:
        told = {name: more.pop(name) for name in ("digest", "when") if name in more}
        return answered(replace(place, **more), method, path, query or {}, body, **told)

    def as_user(*credentials: str) -> Any:
        return ask("PUT", "/backups/k", body=b"x", credentials=lambda: Credentials(*credentials))

    def elsewhere(*credentials: str) -> Any:
        return ask("GET", "/backups/k", region="us-west-2", credentials=lambda: Credentials(*credentials))

    user = place.credentials()
    part = b"<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>x</ETag></Part></CompleteMultipartUpload>"
    begun = Connection(place).send("POST", "k", document, query={"uploads": ""})
    known, unknown = {"uploadId": fields_of(begun)["UploadId"]}, {"uploadId": "unknown"}
    found = {
        "no object": ask("GET", "/backups/none"),
        "no object to delete": ask("DELETE", "/backups/none"),
        "no bucket": ask("GET", "/nowhere/none"),
        "no bucket to write to": ask("PUT", "/nowhere/none", body=b"x"),
        "a part of no upload": ask("PUT", "/backups/k", unknown | {"partNumber": "1"}, b"x"),
        "the end of no upload": ask("POST", "/backups/k", unknown, part),
        "a part that was not sent": ask("POST", "/backups/k", known, part),
        "another body": ask("PUT", "/backups/k", body=b"x", digest=hashlib.sha256(b"y").hexdigest()),
        "another region": ask("GET", "/backups/k", region="us-west-2"),
        "another region, no such user": elsewhere("nobody", user.secret_key),
        "another region and word": elsewhere(user.access_key, "wrong"),
        "another region, and a token": elsewhere(user.access_key, user.secret_key, "token"),
        "an old request": ask("GET", "/backups/k", when="2026-01-01T00:00:00+00:00"),
        "an old request by others": ask(
            "GET", "/backups/k", when="2026-01-01T00:00:00+00:00", credentials=lambda: Credentials(user.access_key, "")
        ),
        "no such user": as_user("nobody", user.secret_key),
        "the word of others": as_user(user.access_key, "wrong"),
        "a token where none belongs": as_user(user.access_key, user.secret_key, "token"),
    }
    Objects(Connection(place)).abort_uploads("k")
    return found


def test_our_own_server_refuses_alike(minio: Minio, objects: Objects) -> None:
    store = ours.Store(region=REGION, users={USER: WORD})
    with ours.serving(store) as url:
        assert refusals(replace(minio.place, endpoint=url)) == refusals(minio.place)
    assert store.objects == {}
    assert listed(objects) == []
