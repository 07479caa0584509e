"""Backups in MinIO, a server of S3-compatible storage that others wrote: with TLS and without."""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from konverge.operators.nacos.backup.failures import Failure
from konverge.operators.nacos.backup.manifest import SUFFIX
from konverge.operators.nacos.backup.s3.connection import Body, Connection, Place, document, fields_of, name_of
from konverge.operators.nacos.backup.s3.objects import Objects
from konverge.operators.nacos.backup.s3.signature import Credentials
from tests.real.minio import REGION, USER, WORD, minio_server
from tests.real.test_nacos_backups import (  # noqa: F401 - fixtures
    Scripts,
    configs,
    insert,
    job,
    mariadb,
    place,
    postgres,
    restore,
    target,
)
from tests.real.test_nacos_buckets import carried
from tools.control_plane import Authority

pytestmark = pytest.mark.spec("N-80")
KEY = "prod/default/nacos/first-1.dump"
PART = 5 << 20
"""The smallest that S3 takes, other than the last."""


@pytest.fixture(scope="module", params=["http", "https"])
def storage(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    folder = tmp_path_factory.mktemp("minio")
    authority = Authority(folder / "pki") if request.param == "https" else None
    with minio_server(folder, authority) as server:
        yield server.place


@pytest.fixture
def objects(storage: Place) -> Iterator[Objects]:
    """The bucket, which is empty before and afterwards."""
    found = Objects(Connection(storage, patience=0.0), part=PART)
    assert listed(found) == []
    yield found
    assert (listed(found), begun(found)) == ([], [])


def listed(objects: Objects) -> list[str]:
    """The keys of all objects."""
    answer = objects.connection.send("GET", "", document, query={"list-type": "2"})
    return sorted(fields_of(entry)["Key"] for entry in answer if name_of(entry) == "Contents")


def begun(objects: Objects, key: str = KEY) -> list[str]:
    """The uploads in parts that have not ended. MinIO lists those of one key."""
    answer = objects.connection.send("GET", "", document, query={"uploads": "", "prefix": key})
    return [fields_of(entry)["UploadId"] for entry in answer if name_of(entry) == "Upload"]


def variables(storage: Place, folder: Path) -> dict[str, str]:
    """Those of a carrier."""
    credentials = folder / "credentials"
    credentials.mkdir()
    (credentials / "id").write_text(USER)
    (credentials / "word").write_text(WORD)
    authority = {} if storage.authority is None else {"S3_CA": str(storage.authority)}
    return {
        "S3_ENDPOINT": storage.endpoint,
        "S3_BUCKET": storage.bucket,
        "S3_REGION": REGION,
        "S3_PATH_STYLE": "true",
        "S3_CREDENTIALS": str(credentials),
        "S3_ACCESS_KEY": "id",
        "S3_SECRET_KEY": "word",
        "S3_SESSION_TOKEN": "token",
        **authority,
    }


def test_there_and_back(target: Scripts, objects: Objects, storage: Place, tmp_path: Path) -> None:  # noqa: F811
    """The backup of one database is restored into another one, from the bucket alone."""
    bucket = variables(storage, tmp_path)
    data = target.file.read_bytes()
    digest = hashlib.sha256(data).hexdigest()
    assert json.loads(carried("upload", target, bucket)) == {"size": len(data), "sha256": digest}
    assert listed(objects) == [target.file.name, target.file.name + SUFFIX]
    for name in target.left():
        if name.startswith(target.file.name):
            (target.file.parent / name).unlink()
    manifest = json.loads(carried("inspect", target, bucket))
    assert (manifest["sha256"], manifest["format"]) == (digest, 1)
    carried("fetch", target, bucket, SHA256=manifest["sha256"])
    assert restore(target, sha256=manifest["sha256"]) == (0, "")
    assert configs(target.place) == ["app.yaml"]
    carried("delete", target, bucket)


def test_a_file_in_parts_is_whole_or_not_there(objects: Objects, tmp_path: Path) -> None:
    file = tmp_path / "large"
    file.write_bytes(bytes(range(256)) * (13 << 12))  # 13 MiB: three parts
    expected = (file.stat().st_size, hashlib.sha256(file.read_bytes()).hexdigest())
    objects.upload(KEY, file)
    assert (listed(objects), begun(objects)) == ([KEY], [])
    assert objects.digest(KEY) == objects.fetch(KEY, tmp_path / "back") == expected
    objects.delete(KEY)
    objects.delete(KEY)  # one that is not there is fine


def test_what_an_upload_left_that_broke_off_is_removed_with_its_key_alone(objects: Objects) -> None:
    keys = (KEY, f"{KEY}.of-another")
    for key in keys:
        upload = objects.connection.send("POST", key, _upload_id, query={"uploads": ""})
        part = Body(lambda: io.BytesIO(b"x"), 1, hashlib.sha256(b"x").hexdigest())
        query = {"partNumber": "1", "uploadId": upload}
        objects.connection.send("PUT", key, lambda answer: answer.read(), query=query, body=part)
    objects.abort_uploads(KEY)
    assert [len(begun(objects, key)) for key in keys] == [0, 1]
    objects.abort_uploads(keys[1])
    assert [len(begun(objects, key)) for key in keys] == [0, 0]


def _upload_id(answer: object) -> str:
    return fields_of(document(answer))["UploadId"]  # type: ignore[arg-type]


def refused(objects: Objects, **place: object) -> tuple[str, str]:  # noqa: F811 - a keyword
    there = replace(objects.connection.place, **place)  # type: ignore[arg-type]
    with pytest.raises(Failure) as caught:
        Objects(Connection(there, patience=0.0)).read(KEY, 10)
    assert WORD not in caught.value.message
    return caught.value.reason, caught.value.message


def test_each_refusal_has_its_reason(objects: Objects) -> None:
    assert refused(objects)[0] == "ObjectNotFound"
    assert refused(objects, bucket="nowhere")[0] == "BucketNotFound"
    assert refused(objects, credentials=lambda: Credentials(USER, "wrong", ""))[0] == "InvalidCredentials"
    assert refused(objects, credentials=lambda: Credentials("nobody", WORD, ""))[0] == "InvalidCredentials"
    reason, message = refused(objects, region="us-west-2")
    assert (reason, f"set region: {REGION}" in message) == ("WrongRegion", True)


def test_certificates_and_schemes(objects: Objects, tmp_path: Path) -> None:
    place = objects.connection.place  # noqa: F811
    if place.authority is None:
        reason, message = refused(objects, endpoint=place.endpoint.replace("http:", "https:"))
        assert (reason, "write http://" in message) == ("TLSNotTrusted", True)
        return
    assert refused(objects, authority=None)[0] == "TLSNotTrusted"
    other = Authority(tmp_path / "other").ca_file
    assert refused(objects, authority=other)[0] == "TLSNotTrusted"
    several = tmp_path / "several.crt"
    several.write_bytes(other.read_bytes() + place.authority.read_bytes())
    assert refused(objects, authority=several)[0] == "ObjectNotFound"
    reason, message = refused(objects, endpoint=place.endpoint.replace("https:", "http:"))
    assert (reason, "needs https://" in message) == ("StorageRefused", True)
