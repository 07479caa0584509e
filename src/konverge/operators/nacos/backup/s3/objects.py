"""Objects in a bucket.

One that is uploaded in parts appears when the last request completes it, and a single PUT is stored whole or not at
all: an upload that was interrupted leaves no object. Its parts are removed by the next attempt, and with the backup.
"""

from __future__ import annotations

import hashlib
import http.client
import io
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO
from xml.sax.saxutils import escape

from konverge.operators.nacos.backup.failures import Failure
from konverge.operators.nacos.backup.s3.connection import (
    Body,
    Connection,
    document,
    fields_of,
    name_of,
    received,
    refusal,
    require_length,
)

PART = 16 << 20
"""Bytes of a part, and of the largest file that is sent in one."""
_MOST_PARTS = 9000
"""S3 takes 10,000."""
_BLOCK = 1 << 20
_IGNORED = ("AccessDenied", "StorageRefused", "ObjectNotFound", "UploadNotFound")
"""Of the search for parts that are left: some services know no such list, and some users may not read it."""


@dataclass(frozen=True, slots=True)
class Objects:
    """Of one bucket. All methods raise Failure."""

    connection: Connection
    part: int = PART

    # -------------------------------------------------------------- writing

    def put(self, key: str, data: bytes) -> None:
        body = Body(lambda: io.BytesIO(data), len(data), hashlib.sha256(data).hexdigest())
        self.connection.send("PUT", key, _nothing, body=body)

    def upload(self, key: str, file: Path) -> None:
        size = file.stat().st_size
        if size <= self.part:
            self.connection.send("PUT", key, _nothing, body=slice_of(file, 0, size))
            return
        upload = self.connection.send("POST", key, _text("UploadId"), query={"uploads": ""})
        try:
            self._parts(key, upload, file, size)
        except Failure:
            self._abort(key, upload)
            raise

    def _parts(self, key: str, upload: str, file: Path, size: int) -> None:
        length = part_size(size, self.part)
        tags: list[str] = []
        for number, start in enumerate(range(0, size, length), start=1):
            body = slice_of(file, start, min(length, size - start))
            query = {"partNumber": str(number), "uploadId": upload}
            tags.append(self.connection.send("PUT", key, _etag, query=query, body=body))
        parts = (
            f"<Part><PartNumber>{number}</PartNumber><ETag>{escape(tag)}</ETag></Part>"
            for number, tag in enumerate(tags, start=1)
        )
        text = f"<CompleteMultipartUpload>{''.join(parts)}</CompleteMultipartUpload>".encode()
        body = Body(lambda: io.BytesIO(text), len(text), hashlib.sha256(text).hexdigest())
        try:
            self.connection.send("POST", key, self._completed, query={"uploadId": upload}, body=body)
        except Failure as failure:
            if failure.reason != "UploadNotFound":  # else the answer to an attempt before was lost: the digest tells
                raise

    def _completed(self, answer: http.client.HTTPResponse) -> None:
        """S3 answers 200 before it has put the parts together: an error is in the document."""
        element = document(answer)
        if name_of(element) == "Error":
            raise refusal(200, fields_of(element), "", self.connection.place)

    def _abort(self, key: str, upload: str) -> None:
        """Parts take room, which may be what there was too little of."""
        try:
            self.connection.send("DELETE", key, _nothing, query={"uploadId": upload}, once=True)
        except Failure:
            return  # the next attempt finds it

    # -------------------------------------------------------------- reading

    def read(self, key: str, limit: int) -> bytes:
        """At most so many bytes of it."""
        return self.connection.send("GET", key, lambda answer: received(answer, limit))

    def digest(self, key: str) -> tuple[int, str]:
        """Size and SHA-256 of what is stored."""

        def read(answer: http.client.HTTPResponse) -> tuple[int, str]:
            sha256 = hashlib.sha256()
            size = _copy(answer, sha256.update)
            return size, sha256.hexdigest()

        return self.connection.send("GET", key, read)

    def fetch(self, key: str, file: Path) -> tuple[int, str]:
        """The same, and write it to a file."""

        with file.open("wb", buffering=0) as sink:

            def read(answer: http.client.HTTPResponse) -> tuple[int, str]:
                if sink.tell():  # of an attempt before
                    sink.seek(0)
                    sink.truncate()
                sha256 = hashlib.sha256()

                def take(block: bytes) -> None:
                    sha256.update(block)
                    _write(sink, block)

                size = _copy(answer, take)
                return size, sha256.hexdigest()

            return self.connection.send("GET", key, read)

    # -------------------------------------------------------------- deleting

    def delete(self, key: str) -> None:
        """One that is not there is fine."""
        try:
            self.connection.send("DELETE", key, _nothing)
        except Failure as failure:
            if failure.reason != "ObjectNotFound":
                raise

    def abort_uploads(self, key: str) -> None:
        """Of this very key, that were begun and not completed."""
        try:
            found = self.connection.send("GET", "", document, query={"uploads": "", "prefix": key})
            uploads = [fields_of(entry) for entry in found if name_of(entry) == "Upload"]
            for upload in uploads:
                if upload.get("Key") == key:
                    self.connection.send("DELETE", key, _nothing, query={"uploadId": upload.get("UploadId", "")})
        except Failure as failure:
            if failure.reason not in _IGNORED:
                raise


def part_size(size: int, smallest: int = PART) -> int:
    """
    >>> part_size(1 << 30) == PART
    True
    >>> part_size(1 << 40) * _MOST_PARTS >= 1 << 40
    True
    """
    return max(smallest, -(-size // _MOST_PARTS))


class _Slice(io.RawIOBase):
    """A part of a file, as a file."""

    def __init__(self, file: Path, start: int, length: int) -> None:
        self._file = file.open("rb")
        self._file.seek(start)
        self._left = length

    def read(self, size: int = -1) -> bytes:
        data = self._file.read(min(size if size >= 0 else self._left, self._left))
        self._left -= len(data)
        return data

    def close(self) -> None:
        self._file.close()
        super().close()


def slice_of(file: Path, start: int, length: int) -> Body:
    def opened() -> IO[bytes]:
        return _Slice(file, start, length)  # type: ignore[return-value]

    sha256 = hashlib.sha256()
    with opened() as source:
        for block in iter(lambda: source.read(_BLOCK), b""):
            sha256.update(block)
    return Body(opened, length, sha256.hexdigest())


# ------------------------------------------------------------------ answers


def _nothing(answer: http.client.HTTPResponse) -> None:
    answer.read()


def _etag(answer: http.client.HTTPResponse) -> str:
    answer.read()
    tag: str = answer.headers.get("etag", "")
    if not tag:
        raise Failure("StorageRefused", "the answer to a part has no ETag: the service is not compatible with S3")
    return tag


def _text(name: str) -> Callable[[http.client.HTTPResponse], str]:
    def read(answer: http.client.HTTPResponse) -> str:
        value = fields_of(document(answer)).get(name, "")
        if not value:
            raise Failure("StorageRefused", f"the answer has no {name}: the service is not compatible with S3")
        return value

    return read


def _write(sink: io.FileIO, block: bytes) -> None:
    """Raises Failure: a full disk is no fault of the connection."""
    left = memoryview(block)
    try:
        while left:
            left = left[sink.write(left) :]
    except OSError as error:
        raise Failure("NoSpace", f"the data cannot be written to the disk of the pod: {error.strerror}") from None


def _copy(answer: http.client.HTTPResponse, take: Callable[[bytes], None]) -> int:
    """The number of bytes. Raises Passing."""
    size = 0
    for block in iter(lambda: answer.read(_BLOCK), b""):
        take(block)
        size += len(block)
    require_length(answer, size)
    return size
