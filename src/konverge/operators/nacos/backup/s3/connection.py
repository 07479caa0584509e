"""Requests to one bucket: sent, tried again where that helps, and explained where it does not.

The credentials are read again for each request, so a Secret that is rotated meanwhile is followed. Nothing secret is in
a message.
"""

from __future__ import annotations

import http.client
import ipaddress
import socket
import ssl
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, TypeVar
from urllib.parse import urlsplit
from xml.etree import ElementTree

import msgspec

from konverge.operators.nacos.backup.failures import Failure
from konverge.operators.nacos.backup.s3.signature import (
    EMPTY,
    Credentials,
    Request,
    encoded_path,
    encoded_query,
    signed_headers,
)

R = TypeVar("R")
PATIENCE = 300.0
"""Seconds for which a request is tried again; the Job starts another pod after that."""
_FIRST_PAUSE, _LONGEST_PAUSE = 1.0, 30.0
_TIMEOUT = 60.0
_LONGEST_ANSWER = 4 << 20
"""Bytes of a document; a list of 1,000 uploads has fewer."""
_PASSING = ("SlowDown", "InternalError", "ServiceUnavailable", "RequestTimeout", "OperationAborted")
_CREDENTIALS = (
    "InvalidAccessKeyId",
    "SignatureDoesNotMatch",
    "ExpiredToken",
    "InvalidToken",
    "InvalidTokenId",  # MinIO's
    "TokenRefreshRequired",
)
_REGION = ("PermanentRedirect", "TemporaryRedirect", "AuthorizationHeaderMalformed")
_FULL = ("XMinioStorageFull", "XMinioAdminBucketQuotaExceeded", "QuotaExceeded")
"""Of MinIO, and of Ceph."""


class Passing(Exception):
    """It may work before long. Where it does not, the reason and the message are those of a Failure."""

    reason = "EndpointUnreachable"
    advice = (
        "does not answer ({}): check that the service runs, the endpoint, and that network policies let the pods of "
        "backups reach it"
    )


class Failing(Passing):
    """The service answers that it cannot."""

    reason = "StorageFailing"
    advice = "does not do its work ({}): check the service, and whether its disks are full"


class Incomplete(Passing):
    """An answer ends early. MinIO ends that of an object so whose bytes are damaged on its disk."""

    reason = "IncompleteAnswer"
    advice = (
        "breaks its answers off ({}): the object may be damaged in the storage, or something on the way cuts "
        "connections; check them, or choose another backup"
    )


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """A bucket, and how to reach it."""

    endpoint: str
    bucket: str
    region: str
    path_style: bool
    credentials: Callable[[], Credentials]
    authority: Path | None = None

    @property
    def host(self) -> str:
        """With the port."""
        netloc = urlsplit(self.endpoint).netloc
        return netloc if self.in_path else f"{self.bucket}.{netloc}"

    @property
    def in_path(self) -> bool:
        """An address has no names below it."""
        host = urlsplit(self.endpoint).hostname or ""
        try:
            ipaddress.ip_address(host)
        except ValueError:
            return self.path_style
        return True

    def path(self, key: str) -> str:
        return f"/{self.bucket}/{key}" if self.in_path else f"/{key}"


class Body(msgspec.Struct, frozen=True):
    """A part of a file, or some bytes."""

    open: Callable[[], IO[bytes]]
    length: int
    digest: str


@dataclass(slots=True)
class Connection:
    """To one bucket. Its answers are read by a function, while they come."""

    place: Place
    patience: float = PATIENCE
    sleep: Callable[[float], None] = time.sleep
    elapsed: Callable[[], float] = time.monotonic
    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    retries: int = field(default=0, init=False)
    """Requests that were tried again."""

    def send(
        self,
        method: str,
        key: str,
        read: Callable[[http.client.HTTPResponse], R],
        *,
        query: Mapping[str, str] | None = None,
        body: Body | None = None,
        once: bool = False,
    ) -> R:
        """Raises Failure; `once`: at the first fault."""
        deadline, pause = self.elapsed() + (0.0 if once else self.patience), _FIRST_PAUSE
        while True:
            try:
                return self._once(method, key, read, query or {}, body)
            except Passing as error:
                if self.elapsed() + pause > deadline:
                    message = f"{self.place.endpoint} {error.advice.format(error)}"
                    raise Failure(error.reason, message) from None
            self.retries += 1
            self.sleep(pause)
            pause = min(pause * 2, _LONGEST_PAUSE)

    def _once(
        self,
        method: str,
        key: str,
        read: Callable[[http.client.HTTPResponse], R],
        query: Mapping[str, str],
        body: Body | None,
    ) -> R:
        place = self.place
        digest = body.digest if body is not None else EMPTY
        request = Request(method=method, host=place.host, path=place.path(key), query=query, digest=digest)
        headers = signed_headers(request, place.credentials(), place.region, self.now())
        target = encoded_path(request.path) + (f"?{encoded_query(query)}" if query else "")
        connection = self._open()
        try:
            with _exchange(connection, method, target, headers, body) as answer:
                if answer.status >= 300:
                    raise self._refusal(answer)
                return read(answer)
        except ssl.SSLError as error:
            raise self._untrusted(error) from None
        except (OSError, http.client.HTTPException) as error:
            raise Passing(str(error) or type(error).__name__) from None
        finally:
            connection.close()

    def _open(self) -> http.client.HTTPConnection:
        host = self.place.host
        if urlsplit(self.place.endpoint).scheme == "http":
            return http.client.HTTPConnection(host, timeout=_TIMEOUT)
        authority = self.place.authority
        try:
            context = ssl.create_default_context(cafile=None if authority is None else str(authority))
        except (OSError, ssl.SSLError):
            message = "the certificates of caSecret cannot be read: its key must hold certificates in PEM"
            raise Failure("TLSNotTrusted", message) from None
        return http.client.HTTPSConnection(host, timeout=_TIMEOUT, context=context)

    def _untrusted(self, error: ssl.SSLError) -> Exception:
        """Passing, or a Failure."""
        host = self.place.host
        if error.reason == "WRONG_VERSION_NUMBER":
            return Failure(
                "TLSNotTrusted", f"{host} does not speak TLS: write http:// in the endpoint, or serve TLS there"
            )
        if not isinstance(error, ssl.SSLCertVerificationError):
            return Passing(str(error))
        message = (
            f"the certificate of {host} is not trusted ({error.verify_message}): name its authority in "
            "caSecret; where the name does not fit, set forcePathStyle or correct the endpoint"
        )
        return Failure("TLSNotTrusted", message)

    def _refusal(self, answer: http.client.HTTPResponse) -> Exception:
        """What an answer of 300 and more means."""
        fields: dict[str, str] = {}
        with suppress(Failure):  # for a proxy's page
            fields = fields_of(document(answer))
        region = answer.headers.get("x-amz-bucket-region") or fields.get("Region", "")
        return refusal(answer.status, fields, region, self.place)


def refusal(status: int, fields: Mapping[str, str], region: str, place: Place) -> Exception:
    """Passing, or a Failure that says what to do."""
    code = fields.get("Code", "")
    said = f"{status} {code}: {fields.get('Message', '')}".rstrip(": ")
    where = f"bucket {place.bucket} at {place.endpoint}"
    if code in _FULL or status == 507:
        return Failure("StorageFull", f"{where} has no room ({said}): make room there, or raise its quota")
    if code in _PASSING or (status >= 500 and status != 501) or status == 429:
        return Failing(said)
    if code == "NoSuchBucket":
        return Failure("BucketNotFound", f"there is no {where}: create it, or correct bucket and endpoint")
    if code in _REGION or status in (301, 307, 308):
        right = f", set region: {region}" if region else ", correct region and endpoint"
        return Failure("WrongRegion", f"{where} is not in region {place.region}{right} ({said})")
    if code in _CREDENTIALS:
        message = f"{where} refuses the credentials ({code}): correct the Secret that credentialsSecret names"
        return Failure("InvalidCredentials", message)
    if code == "RequestTimeTooSkewed":
        return Failure("ClockSkew", f"the clock of the node and that of {place.endpoint} differ: set them")
    if code == "NoSuchUpload":
        return Failure("UploadNotFound", f"{where} has ended an upload in parts ({said})")
    if status == 404:
        return Failure("ObjectNotFound", f"{where} has no such object ({said})")
    if status in (401, 403):
        message = (
            f"{where} refuses access ({said}): allow s3:PutObject, s3:GetObject, s3:DeleteObject, "
            "s3:AbortMultipartUpload and s3:ListBucketMultipartUploads; without s3:ListBucket this may also mean that "
            "the bucket or an object is not there"
        )
        return Failure("AccessDenied", message)
    hint = "" if code else ": check the endpoint; a service with TLS needs https://"
    return Failure("StorageRefused", f"{where} refuses the request ({said}){hint}")


def _exchange(
    connection: http.client.HTTPConnection, method: str, target: str, headers: Mapping[str, str], body: Body | None
) -> http.client.HTTPResponse:
    """A server that refuses may close its side before the body was sent: its answer is read nevertheless."""
    connection.connect()
    if connection.sock is not None:
        connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.putrequest(method, target, skip_host=True, skip_accept_encoding=True)
    for name, value in headers.items():
        connection.putheader(name, value)
    if body is not None or method in ("PUT", "POST"):
        connection.putheader("content-length", str(body.length if body is not None else 0))
    try:
        connection.endheaders()
        if body is not None:
            with body.open() as source:
                for block in iter(lambda: source.read(1 << 20), b""):
                    connection.send(block)
    except (BrokenPipeError, ConnectionResetError) as error:
        try:
            return connection.getresponse()
        except (OSError, http.client.HTTPException):
            raise error from None
    return connection.getresponse()


def received(answer: http.client.HTTPResponse, limit: int) -> bytes:
    """At most so many bytes of it. Raises Passing."""
    data = answer.read(limit)
    require_length(answer, len(data), limit)
    return data


def require_length(answer: http.client.HTTPResponse, size: int, limit: int | None = None) -> None:
    """Raises Passing where the connection ended early: http.client says nothing of that."""
    length = answer.headers.get("content-length")
    if length is not None and size != (int(length) if limit is None else min(int(length), limit)):
        raise Incomplete(f"the connection ended after {size} of {length} bytes")


def document(answer: http.client.HTTPResponse) -> ElementTree.Element:
    """The XML of an answer. Raises Failure, Passing."""
    data = received(answer, _LONGEST_ANSWER)
    try:
        return ElementTree.fromstring(data)  # noqa: S314 - of the storage that the user has chosen
    except ElementTree.ParseError:
        raise Failure(
            "StorageRefused", f"the answer {answer.status} is no document of S3: check the endpoint"
        ) from None


def fields_of(element: ElementTree.Element) -> dict[str, str]:
    """The texts of its children, by their names without the namespace."""
    return {child.tag.rpartition("}")[2]: child.text or "" for child in element}


def name_of(element: ElementTree.Element) -> str:
    return element.tag.rpartition("}")[2]
