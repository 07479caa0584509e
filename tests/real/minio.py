"""MinIO on loopback, with one bucket in it; with TLS where an authority is given."""

from __future__ import annotations

import hashlib
import hmac
import http.client
import json
import shutil
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlencode
from xml.etree import ElementTree

import pytest

from konverge.operators.nacos.backup.s3.connection import Connection, Place
from konverge.operators.nacos.backup.s3.signature import Credentials
from tests.real.loopback import PATIENCE, running
from tools import minio
from tools.control_plane import HOST, Authority, free_port

USER, WORD = "konverge", "a-word-that-is-long-enough"
BUCKET, REGION = "backups", "eu-central-1"


@dataclass
class Minio:
    """A server whose data outlives its process."""

    folder: Path
    place: Place
    program: ExitStack = field(default_factory=ExitStack)

    def start(self) -> None:
        told = {
            "MINIO_ROOT_USER": USER,
            "MINIO_ROOT_PASSWORD": WORD,
            "MINIO_SITE_REGION": REGION,
            "MINIO_BROWSER": "off",
            "MINIO_UPDATE": "off",
            "HOME": str(self.folder),
        }
        options = ("--address", self.place.host, "--certs-dir", self.folder / "certs", self.data)
        log = self.folder / "minio.log"
        process = self.program.enter_context(running([minio.program(), "server", *options], log, told))
        self.program.callback(process.kill)  # a crash, not a farewell
        end = time.monotonic() + PATIENCE
        while not _answers(f"{self.place.endpoint}/minio/health/ready", self.place.authority):
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < end, log.read_text()
            time.sleep(0.1)

    def kill(self) -> None:
        self.program.close()

    @property
    def data(self) -> Path:
        return self.folder / "data"


@contextmanager
def minio_server(folder: Path, authority: Authority | None = None) -> Iterator[Minio]:
    """Skips where it is not built."""
    note = minio.missing()
    if note:
        pytest.skip(note)
    certificates = folder / "certs"
    certificates.mkdir(parents=True)
    if authority is not None:
        pair = authority.issue("minio", user="minio", server=True)
        for file, name in zip(pair, ("public.crt", "private.key"), strict=True):
            shutil.copyfile(file, certificates / name)
    place = Place(
        endpoint=f"{'http' if authority is None else 'https'}://{HOST}:{free_port()}",
        bucket=BUCKET,
        region=REGION,
        path_style=True,
        credentials=lambda: Credentials(USER, WORD, ""),
        authority=None if authority is None else authority.ca_file,
    )
    server = Minio(folder, place)
    with server.program:
        server.start()
        Connection(place).send("PUT", "", lambda answer: answer.read())
        yield server


def _answers(url: str, ca_file: Path | None) -> bool:
    handlers: list[urllib.request.BaseHandler] = [urllib.request.ProxyHandler({})]
    if ca_file is not None:
        handlers.append(urllib.request.HTTPSHandler(context=ssl.create_default_context(cafile=str(ca_file))))
    try:
        with urllib.request.build_opener(*handlers).open(url, timeout=5) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False


def session(place: Place, *actions: str) -> Credentials:
    """Those of a temporary user that may do these in the bucket, and nothing else: AssumeRole of AWS's STS."""
    resources = [f"arn:aws:s3:::{place.bucket}", f"arn:aws:s3:::{place.bucket}/*"]
    allowed = {"Effect": "Allow", "Action": actions, "Resource": resources}
    policy = json.dumps({"Version": "2012-10-17", "Statement": [allowed]})
    text = urlencode({"Action": "AssumeRole", "Version": "2011-06-15", "DurationSeconds": 900, "Policy": policy})
    connection = http.client.HTTPConnection(place.host, timeout=PATIENCE)
    connection.request("POST", "/", body=text, headers=_signed_for_sts(place, text.encode()))
    answer = connection.getresponse().read()
    connection.close()
    found = {element.tag.rpartition("}")[2]: element.text or "" for element in ElementTree.fromstring(answer).iter()}
    return Credentials(found["AccessKeyId"], found["SecretAccessKey"], found["SessionToken"])


def _signed_for_sts(place: Place, body: bytes) -> Mapping[str, str]:
    stamp, digest = f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}", hashlib.sha256(body).hexdigest()
    headers = {
        "content-type": "application/x-www-form-urlencoded",
        "host": place.host,
        "x-amz-content-sha256": digest,
        "x-amz-date": stamp,
    }
    names = ";".join(headers)
    request = "\n".join(("POST", "/", "", *(f"{name}:{text}" for name, text in headers.items()), "", names, digest))
    scope = (stamp[:8], place.region, "sts", "aws4_request")
    text = "\n".join(("AWS4-HMAC-SHA256", stamp, "/".join(scope), hashlib.sha256(request.encode()).hexdigest()))
    key = f"AWS4{WORD}".encode()
    for part in (*scope, text):
        key = hmac.digest(key, part.encode(), "sha256")
    user = f"Credential={USER}/{'/'.join(scope)}"
    return headers | {"authorization": f"AWS4-HMAC-SHA256 {user}, SignedHeaders={names}, Signature={key.hex()}"}
