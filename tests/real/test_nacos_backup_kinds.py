"""The definitions of backups on the real API server: places of data are accepted, refused, and fixed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from konverge.objects import crd
from konverge.operators.nacos.backup.kinds import KINDS, NacosBackup, NacosBackupSchedule, NacosRestore
from tests.operators.nacos.backup.world import S3
from tests.real.definitions import Api, installed

pytestmark = pytest.mark.spec("N-67", "N-69")
NACOS = {"nacosRef": {"name": "nacos"}}
VOLUME = {"claimName": "backups"}
FILE = {"claimName": "backups", "path": "nacos/a-1.dump"}


@pytest.fixture(scope="module")
def api(real_api: Api) -> Iterator[Api]:
    with installed(real_api, *(crd(kind) for kind in KINDS)):
        yield real_api


def write(api: Api, kind: type[Any], spec: dict[str, Any], *, name: str = "a", dry: bool = True) -> tuple[int, Any]:
    meta = {"name": name, "namespace": "default"}
    body = {"apiVersion": "nacos.io/v1alpha1", "kind": kind.__name__, "metadata": meta, "spec": spec}
    query = "?fieldValidation=Strict" + ("&dryRun=All" if dry else "")
    return api("POST", kind.resource.path("default") + query, json.dumps(body).encode())


@pytest.mark.parametrize(
    ("kind", "spec"),
    [
        (NacosBackup, {"storage": {"s3": S3}}),
        (NacosBackup, {"storage": {"s3": {**S3, "caSecret": {"name": "ca"}, "prefix": "a/b", "region": "eu-1"}}}),
        (NacosBackupSchedule, {"storage": {"s3": {**S3, "forcePathStyle": True}}, "schedule": "@daily"}),
        (NacosRestore, {"source": {"s3": {**S3, "key": "a/b-1.dump"}}}),
        (NacosRestore, {"source": {"volume": FILE}}),
        (NacosRestore, {"backupRef": {"name": "first"}}),
    ],
)
def test_places(api: Api, kind: type[Any], spec: dict[str, Any]) -> None:
    status, answer = write(api, kind, {**NACOS, **spec})
    assert status == 201, answer.get("message")


@pytest.mark.parametrize(
    ("kind", "spec", "words"),
    [
        (NacosBackup, {"storage": {}}, "either volume or s3"),
        (NacosBackup, {"storage": {"s3": S3, "volume": VOLUME}}, "either volume or s3"),
        (NacosBackup, {"storage": {"s3": {**S3, "bucket": "B_"}}}, "spec.storage.s3.bucket"),
        (NacosRestore, {}, "either a NacosBackup"),
        (NacosRestore, {"backupRef": {"name": "a"}, "source": {"volume": FILE}}, "either a NacosBackup"),
        (NacosRestore, {"source": {"volume": FILE, "s3": {**S3, "key": "a"}}}, "either volume or s3"),
        (NacosRestore, {"source": {"volume": {**FILE, "path": "../a"}}}, "spec.source.volume.path"),
    ],
)
def test_refusals(api: Api, kind: type[Any], spec: dict[str, Any], words: str) -> None:
    status, answer = write(api, kind, {**NACOS, **spec})
    assert status == 422, answer
    assert words in answer["message"]


def test_places_cannot_change(api: Api) -> None:
    assert write(api, NacosRestore, {**NACOS, "source": {"volume": FILE}}, dry=False)[0] == 201
    assert write(api, NacosBackup, {**NACOS, "storage": {"s3": S3}}, dry=False)[0] == 201
    moved: list[tuple[type[Any], dict[str, Any]]] = [
        (NacosRestore, {"source": {"volume": {"path": "other.dump"}}}),
        (NacosRestore, {"source": None, "backupRef": {"name": "first"}}),
        (NacosRestore, {"transferImage": "other"}),
        (NacosBackup, {"storage": {"s3": {"bucket": "other"}}}),
        (NacosBackup, {"storage": {"s3": None, "volume": VOLUME}}),
        (NacosBackup, {"transferImage": "other"}),
    ]
    for kind, spec in moved:
        path, patch = f"{kind.resource.path('default')}/a", {"Content-Type": "application/merge-patch+json"}
        status, answer = api("PATCH", path, json.dumps({"spec": spec}).encode(), **patch)
        assert status == 422, (kind, spec)
        assert "cannot change" in answer["message"]
    path = f"{NacosBackup.resource.path('default')}/a"
    patch = {"Content-Type": "application/merge-patch+json"}
    assert api("PATCH", path, b'{"spec":{"deletionPolicy":"Delete"}}', **patch)[0] == 200
