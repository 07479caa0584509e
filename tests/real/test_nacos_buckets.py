"""Dumps of real databases in a bucket, and back: each step as the containers of the Jobs run it."""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from konverge.operators.nacos.backup import carry
from konverge.operators.nacos.backup.manifest import SUFFIX
from tests.operators.nacos.backup.s3.server import BUCKET, USER, WORD, Store, serving
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

pytestmark = pytest.mark.spec("N-67", "N-69")


@pytest.fixture
def store() -> Store:
    return Store()


@pytest.fixture
def bucket(store: Store, tmp_path: Path) -> Iterator[dict[str, str]]:
    """The variables of a carrier."""
    credentials = tmp_path / "credentials"
    credentials.mkdir()
    (credentials / "id").write_text(USER)
    (credentials / "word").write_text(WORD)
    with serving(store) as url:
        yield {
            "S3_ENDPOINT": url,
            "S3_BUCKET": BUCKET,
            "S3_REGION": "us-east-1",
            "S3_PATH_STYLE": "true",
            "S3_CREDENTIALS": str(credentials),
            "S3_ACCESS_KEY": "id",
            "S3_SECRET_KEY": "word",
            "S3_SESSION_TOKEN": "token",
        }


def carried(action: str, scripts: Scripts, bucket: dict[str, str], **more: str) -> str:
    """The result."""
    key = scripts.file.name
    env = {**bucket, "FILE": str(scripts.file), "RESULT": str(scripts.result), "KEY": key, "KEYS": key, **more}
    log = io.StringIO()
    assert carry.main([action], env, log) == 0, log.getvalue()
    return scripts.result.read_text()


def test_there_and_back(target: Scripts, bucket: dict[str, str], store: Store) -> None:  # noqa: F811
    """The backup of one database is restored into another one, from the bucket alone."""
    data = target.file.read_bytes()
    digest = hashlib.sha256(data).hexdigest()
    assert json.loads(carried("upload", target, bucket)) == {"size": len(data), "sha256": digest}
    assert set(store.objects) == {target.file.name, target.file.name + SUFFIX}
    for name in target.left():
        if name.startswith(target.file.name):
            (target.file.parent / name).unlink()
    manifest = json.loads(carried("inspect", target, bucket))
    assert (manifest["sha256"], manifest["format"]) == (digest, 1)
    carried("fetch", target, bucket, SHA256=manifest["sha256"])
    assert restore(target, sha256=manifest["sha256"]) == (0, "")
    assert configs(target.place) == ["app.yaml"]
    carried("delete", target, bucket)
    assert store.objects == {}
