"""MinIO on loopback, with one bucket in it; with TLS where an authority is given."""

from __future__ import annotations

import shutil
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from konverge.operators.nacos.backup.s3.connection import Connection, Place
from konverge.operators.nacos.backup.s3.signature import Credentials
from tests.real.loopback import PATIENCE, running
from tools import minio
from tools.control_plane import HOST, Authority, free_port

USER, WORD = "konverge", "a-word-that-is-long-enough"
BUCKET, REGION = "backups", "eu-central-1"


@contextmanager
def minio_server(folder: Path, authority: Authority | None = None) -> Iterator[Place]:
    """Skips where it is not built."""
    note = minio.missing()
    if note:
        pytest.skip(note)
    port, certificates = free_port(), folder / "certs"
    certificates.mkdir(parents=True)
    if authority is not None:
        pair = authority.issue("minio", user="minio", server=True)
        for file, name in zip(pair, ("public.crt", "private.key"), strict=True):
            shutil.copyfile(file, certificates / name)
    told = {
        "MINIO_ROOT_USER": USER,
        "MINIO_ROOT_PASSWORD": WORD,
        "MINIO_SITE_REGION": REGION,
        "MINIO_BROWSER": "off",
        "MINIO_UPDATE": "off",
        "HOME": str(folder),
    }
    options = ("--address", f"{HOST}:{port}", "--certs-dir", certificates, folder / "data")
    ca_file = None if authority is None else authority.ca_file
    with running([minio.program(), "server", *options], folder / "minio.log", told) as process:
        place = Place(
            endpoint=f"{'http' if authority is None else 'https'}://{HOST}:{port}",
            bucket=BUCKET,
            region=REGION,
            path_style=True,
            credentials=lambda: Credentials(USER, WORD, ""),
            authority=ca_file,
        )
        end = time.monotonic() + PATIENCE
        while not _answers(f"{place.endpoint}/minio/health/ready", ca_file):
            assert process.poll() is None, (folder / "minio.log").read_text()
            assert time.monotonic() < end, (folder / "minio.log").read_text()
            time.sleep(0.1)
        Connection(place).send("PUT", "", lambda answer: answer.read())
        yield place


def _answers(url: str, ca_file: Path | None) -> bool:
    handlers: list[urllib.request.BaseHandler] = [urllib.request.ProxyHandler({})]
    if ca_file is not None:
        handlers.append(urllib.request.HTTPSHandler(context=ssl.create_default_context(cafile=str(ca_file))))
    try:
        with urllib.request.build_opener(*handlers).open(url, timeout=5) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False
