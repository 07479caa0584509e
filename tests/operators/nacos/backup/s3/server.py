"""A small S3 server on a socket: it holds objects and parts, and checks signatures by an implementation of its own.

It refuses as MinIO does (tests/real/test_nacos_minio.py), but takes parts of any size.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qsl, unquote, urlsplit

BUCKET = "backups"
USER, WORD = "AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
_PART = re.compile("<Part><PartNumber>([0-9]+)</PartNumber><ETag>([^<]+)</ETag></Part>")
_SKEW = timedelta(minutes=15)


@dataclass
class Fault:
    """One answer that a request gets instead of the right one."""

    method: str
    status: int = 0
    """0: the connection is closed without an answer."""
    code: str = ""
    query: str = ""
    """Part of the query of the requests that are meant."""
    times: int = 1
    headers: dict[str, str] = field(default_factory=dict)
    body: str = ""
    after: bool = False
    """The request is done, and its answer is lost."""


@dataclass
class Store:
    """What the server holds, and how it behaves."""

    region: str = "us-east-1"
    users: dict[str, str] = field(default_factory=lambda: {USER: WORD})
    sessions: dict[str, str] = field(default_factory=dict)
    """The tokens of users that are temporary."""
    buckets: dict[str, dict[str, bytes]] = field(default_factory=lambda: {BUCKET: {}})
    uploads: dict[str, tuple[str, dict[int, bytes]]] = field(default_factory=dict)
    """Keys and parts by the id of an upload."""
    faults: list[Fault] = field(default_factory=list)
    corrupts: bool = False
    """Stores something else than what it was sent."""
    short: int = 0
    """So many downloads end early."""
    requests: list[str] = field(default_factory=list)
    port: int = 0
    count: int = 0

    @property
    def objects(self) -> dict[str, bytes]:
        return self.buckets[BUCKET]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    store: Store

    def log_message(self, format: str, *args: object) -> None:
        pass

    def do_GET(self) -> None:
        self._serve()

    def do_PUT(self) -> None:
        self._serve()

    def do_POST(self) -> None:
        self._serve()

    def do_DELETE(self) -> None:
        self._serve()

    def _serve(self) -> None:
        store, parts = self.store, urlsplit(self.path)
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        store.requests.append(f"{self.command} {self.path}")
        fault = self._fault(parts.query)
        if fault is not None and not fault.after:
            self._fail(fault)
            return
        if (refused := self._unsigned(body)) is not None:
            self._error(*refused)
            return
        bucket, _, key = unquote(parts.path).lstrip("/").partition("/")
        if bucket not in store.buckets:
            self._error(404, "NoSuchBucket")
            return
        if fault is not None:
            self._act(bucket, key, dict(parse_qsl(parts.query, keep_blank_values=True)), body, silent=True)
            self._fail(fault)
            return
        self._act(bucket, key, dict(parse_qsl(parts.query, keep_blank_values=True)), body)

    def _fault(self, query: str) -> Fault | None:
        for fault in self.store.faults:
            if fault.times and fault.method == self.command and fault.query in query:
                fault.times -= 1
                return fault
        return None

    def _fail(self, fault: Fault) -> None:
        if not fault.status:
            self.close_connection = True
        elif fault.body:
            self._answer(fault.status, fault.body.encode(), fault.headers)
        else:
            self._error(fault.status, fault.code, fault.headers)

    # -------------------------------------------------------------- signatures

    def _unsigned(self, body: bytes) -> tuple[int, str] | None:
        """The status and the code of the error of a request that is not signed as it should be."""
        store = self.store
        scheme, _, rest = self.headers["authorization"].partition(" ")
        given = dict(item.split("=", 1) for item in rest.split(", "))
        user, day, region, service, end = given["Credential"].split("/")
        if region != store.region:
            return 400, "AuthorizationHeaderMalformed"
        if user not in store.users:
            return 403, "InvalidAccessKeyId"
        if self.headers.get("x-amz-security-token", "") != store.sessions.get(user, ""):
            return 403, "InvalidTokenId"
        path, _, query = self.path.partition("?")
        names = given["SignedHeaders"].split(";")
        assert {"host", "x-amz-date", "x-amz-content-sha256"} <= set(names)
        lines = [self.command, path, "&".join(sorted(query.split("&")))]
        lines += [f"{name}:{self.headers[name].strip()}" for name in names]
        lines += ["", ";".join(names), self.headers["x-amz-content-sha256"]]
        canonical = hashlib.sha256("\n".join(lines).encode()).hexdigest()
        stamp = self.headers["x-amz-date"]
        text = "\n".join([scheme, stamp, f"{day}/{region}/{service}/{end}", canonical])
        secret = ("AWS4" + store.users[user]).encode()
        for part in (stamp[:8], region, service, end, text):
            secret = hmac.digest(secret, part.encode(), "sha256")
        if abs(datetime.now(UTC) - datetime.strptime(stamp, "%Y%m%dT%H%M%S%z")) > _SKEW:
            return 403, "RequestTimeTooSkewed"
        if secret.hex() != given["Signature"]:
            return 403, "SignatureDoesNotMatch"
        if hashlib.sha256(body).hexdigest() != self.headers["x-amz-content-sha256"]:
            return 400, "XAmzContentSHA256Mismatch"
        return None

    # -------------------------------------------------------------- objects

    def _act(self, bucket: str, key: str, query: dict[str, str], body: bytes, *, silent: bool = False) -> None:
        status, answer, headers = self._done(bucket, key, query, body)
        if silent:
            return
        if status >= 300:
            self._error(status, answer.decode())
        else:
            self._answer(status, answer, headers)

    def _done(self, bucket: str, key: str, query: dict[str, str], body: bytes) -> tuple[int, bytes, dict[str, str]]:
        store, objects = self.store, self.store.buckets[bucket]
        upload = query.get("uploadId", "")
        if upload and upload not in store.uploads:
            return 404, b"NoSuchUpload", {}
        if self.command == "PUT" and upload:
            store.uploads[upload][1][int(query["partNumber"])] = body
            return 200, b"", {"ETag": _tag(body)}
        if self.command == "PUT":
            objects[key] = body[::-1] if store.corrupts else body
            return 200, b"", {"ETag": '"x"'}
        if self.command == "POST" and not upload:
            store.count += 1
            store.uploads[f"up/{store.count}=="] = (key, {})
            text = f"<InitiateMultipartUploadResult xmlns='urn:x'><UploadId>up/{store.count}==</UploadId>"
            return 200, f"{text}</InitiateMultipartUploadResult>".encode(), {}
        if self.command == "POST":
            parts = store.uploads[upload][1]
            listed = {int(number): tag for number, tag in _PART.findall(body.decode())}
            if listed != {number: _tag(part) for number, part in sorted(parts.items())}:
                return 400, b"InvalidPart", {}
            del store.uploads[upload]
            whole = b"".join(parts[number] for number in listed)
            objects[key] = whole[::-1] if store.corrupts else whole
            return 200, b"<CompleteMultipartUploadResult/>", {}
        if self.command == "DELETE" and upload:
            del store.uploads[upload]
            return 204, b"", {}
        if self.command == "DELETE":
            objects.pop(key, None)
            return 204, b"", {}
        if "uploads" in query:
            begun = [(id, entry[0]) for id, entry in store.uploads.items() if entry[0].startswith(query["prefix"])]
            texts = (f"<Upload><Key>{name}</Key><UploadId>{id}</UploadId></Upload>" for id, name in begun)
            return 200, f"<R xmlns='urn:x'>{''.join(texts)}</R>".encode(), {}
        return (200, objects[key], {}) if key in objects else (404, b"NoSuchKey", {})

    def _error(self, status: int, code: str, headers: dict[str, str] | None = None) -> None:
        region = f"<Region>{self.store.region}</Region>" if code == "AuthorizationHeaderMalformed" else ""
        text = f"<Error><Code>{code}</Code><Message>told</Message>{region}</Error>"
        self._answer(status, text.encode(), headers)

    def _answer(self, status: int, body: bytes, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.store.short and self.command == "GET":
            self.store.short -= 1
            body, self.close_connection = body[: len(body) // 2], True
        self.wfile.write(body)


def _tag(part: bytes) -> str:
    return f'"{hashlib.md5(part).hexdigest()}"'


@contextmanager
def serving(store: Store, *, certificate: Path | None = None) -> Iterator[str]:
    """Its URL. `certificate` holds a certificate and its key."""
    handler = type("Handler", (_Handler,), {"store": store})
    with ThreadingHTTPServer(("127.0.0.1", store.port), handler) as server:
        if certificate is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield f"{'http' if certificate is None else 'https'}://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()
