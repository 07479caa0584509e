"""AWS Signature Version 4: the examples that AWS publishes for S3, and signatures that botocore has made."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime

import pytest

from konverge.operators.nacos.backup.s3.signature import (
    Credentials,
    Request,
    encoded_path,
    encoded_query,
    signed_headers,
)

pytestmark = pytest.mark.spec("N-68")
AWS = Credentials("AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY")
OWN = Credentials("AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY")
TOKEN = Credentials("AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", "FwoGZXIvYXdzE//token==")


def signature(headers: dict[str, str]) -> str:
    return headers["authorization"].rpartition("Signature=")[2]


@pytest.mark.parametrize(
    ("request_", "expected"),
    [
        (
            Request(method="GET", host="", path="/test.txt", headers={"range": "bytes=0-9"}),
            "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41",
        ),
        (
            Request(
                method="PUT",
                host="",
                path="/test$file.text",
                headers={"date": "Fri, 24 May 2013 00:00:00 GMT", "x-amz-storage-class": "REDUCED_REDUNDANCY"},
                digest=hashlib.sha256(b"Welcome to Amazon S3.").hexdigest(),
            ),
            "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd",
        ),
        (
            Request(method="GET", host="", path="/", query={"lifecycle": ""}),
            "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543",
        ),
        (
            Request(method="GET", host="", path="/", query={"prefix": "J", "max-keys": "2"}),
            "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7",
        ),
    ],
)
def test_the_examples_of_aws(request_: Request, expected: str) -> None:
    named = Request(
        method=request_.method,
        host="examplebucket.s3.amazonaws.com",
        path=request_.path,
        query=request_.query,
        headers=request_.headers,
        digest=request_.digest,
    )
    headers = signed_headers(named, AWS, "us-east-1", datetime(2013, 5, 24, tzinfo=UTC))
    assert signature(headers) == expected


@pytest.mark.parametrize(
    ("request_", "credentials", "region", "expected"),
    [
        (
            Request(method="GET", host="s3.eu-central-1.amazonaws.com", path="/bucket/a/b-1.dump"),
            OWN,
            "eu-central-1",
            "1a4a196ac460aa69d40243f3552e91170aa062d814dc5430c3066162ddad6d18",
        ),
        (
            Request(
                method="PUT",
                host="minio.storage.svc:9000",
                path="/backups/prod/a b+ü~x.dump",
                digest=hashlib.sha256(b"data").hexdigest(),
            ),
            OWN,
            "us-east-1",
            "fda4af022a5ec650158b10a537a94affb634b1c4515018107ee37df3c8e56ed2",
        ),
        (
            Request(method="POST", host="b.s3.amazonaws.com", path="/key", query={"uploads": ""}),
            OWN,
            "us-east-1",
            "1fe0eeed18ed62e47e8667ff1cd81ce5f2bc1e0595ea9620ddd3d15e52b6c1d4",
        ),
        (
            Request(
                method="PUT",
                host="b.s3.amazonaws.com",
                path="/key",
                query={"uploadId": "a/b== c", "partNumber": "12"},
                digest=hashlib.sha256(b"part").hexdigest(),
            ),
            TOKEN,
            "us-west-2",
            "2349244e6be7dc8185b33a3717d707bb7e80daa9cb106e7d33dc2907fdead5e4",
        ),
        (
            Request(method="GET", host="b.s3.amazonaws.com", path="/", query={"uploads": "", "prefix": "p/q"}),
            OWN,
            "us-east-1",
            "9e7abfc99b91cedfb70df54e84d4364fb5ad46c85b8d5fecc8bfb3ba3481340f",
        ),
    ],
)
def test_as_botocore_signs(request_: Request, credentials: Credentials, region: str, expected: str) -> None:
    """Made with botocore 1.44 (S3SigV4Auth, payload signed)."""
    headers = signed_headers(request_, credentials, region, datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC))
    assert signature(headers) == expected
    assert headers["x-amz-date"] == "20260304T050607Z"
    assert (headers["host"], headers["x-amz-content-sha256"]) == (request_.host, request_.digest)
    scope = f"{credentials.access_key}/20260304/{region}/s3/aws4_request"
    assert headers["authorization"].startswith(f"AWS4-HMAC-SHA256 Credential={scope}, SignedHeaders=host;")
    assert headers.get("x-amz-security-token", "") == credentials.token


def test_encoding() -> None:
    assert encoded_path("/a b/~x+ü") == "/a%20b/~x%2B%C3%BC"
    assert encoded_query({"b": "x/y", "a": ""}) == "a=&b=x%2Fy"
    assert encoded_query({}) == ""


def test_credentials_are_not_shown() -> None:
    assert repr(TOKEN) == "Credentials(access_key='AKIDEXAMPLE')"
