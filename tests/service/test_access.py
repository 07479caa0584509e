"""Who may do what: the cluster decides, by the caller's own token."""

from __future__ import annotations

import asyncio
import logging

import pytest

from konverge.client import Config, Static
from konverge.client.config import Impersonation, TlsSettings
from konverge.service.access import own_nothing
from tests.service.desk import ALL, READ, SPACE, STREAM, a_desk, listening

pytestmark = pytest.mark.spec("N-22")

EVERYTHING = [
    ("GET", "/api/v1/identity", None),
    ("GET", "/api/v1/versions", None),
    ("GET", "/api/v1/instances", None),
    ("GET", ALL, None),
    ("GET", f"{ALL}/shop", None),
    ("GET", f"{ALL}/shop/manifest", None),
    ("GET", f"{ALL}/shop/events", None),
    ("POST", ALL, {"name": "new"}),
    ("PATCH", f"{ALL}/shop", {"resources": {"limits": {"cpu": "1"}}}),
    ("DELETE", f"{ALL}/shop", None),
    ("GET", "/api/v1/watch/instances", None),
    ("GET", STREAM, None),
    ("GET", f"{STREAM}/shop", None),
]


async def test_nothing_of_the_api_is_answered_without_a_good_token() -> None:
    async with a_desk() as desk:
        await desk.create("shop")
        for method, path, body in EVERYTHING:
            for token in ("", "no-such-token"):
                refused = await desk.send(method, path, body, token=token)
                assert refused.status == 401, (method, path)
                assert refused.problem["reason"] == "Unauthorized"
                assert refused.headers.get("www-authenticate").startswith("Bearer ")


NO_TOKENS = ["Basic YTpi", "Bearer", "Bearer ", "Bearer a b", "Bearer \x01", "Bearer " + "a" * 20_000, "Token abc"]


async def test_an_invalid_token_is_refused_before_the_cluster_is_asked() -> None:
    async with a_desk() as desk:
        for header in NO_TOKENS:
            assert (await desk.send("GET", ALL, token="", authorization=header)).status == 401, header[:50]


async def test_a_caller_without_rights_is_refused_with_the_reason() -> None:
    async with a_desk() as desk:
        await desk.create("shop")
        token = await desk.account("nobody", "get", resources=("pods",))
        for method, path, body in EVERYTHING[2:]:
            refused = await desk.send(method, path, body, token=token)
            assert refused.status == 403, (method, path)
            assert refused.problem["reason"] == "Forbidden"
            assert 'User "system:serviceaccount:default:nobody" cannot' in refused.problem["detail"]
        assert (await desk.send("GET", f"{ALL}/shop")).status == 200


async def test_readers_read_and_writers_write() -> None:
    async with a_desk() as desk:
        reader = await desk.account("reader", *READ)
        writer = await desk.account("writer", "create", "patch", "delete")
        assert (await desk.send("POST", ALL, {"name": "shop"}, token=reader)).status == 403
        assert (await desk.send("POST", ALL, {"name": "shop"}, token=writer)).status == 201
        assert (await desk.send("GET", ALL, token=reader)).status == 200
        assert (await desk.send("GET", ALL, token=writer)).status == 403
        assert (await desk.send("PATCH", f"{ALL}/shop", {"version": "3.0.3"}, token=reader)).status == 403
        assert (await desk.send("PATCH", f"{ALL}/shop", {"version": "3.0.3"}, token=writer)).status == 200
        assert (await desk.send("DELETE", f"{ALL}/shop", token=reader)).status == 403
        assert (await desk.send("DELETE", f"{ALL}/shop", token=writer)).status == 204


async def test_rights_in_one_namespace_are_none_in_another() -> None:
    async with a_desk() as desk:
        await desk.admin.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "other"}})
        token = await desk.account("owner", "*")
        elsewhere = "/api/v1/namespaces/other/instances"
        assert (await desk.send("GET", ALL, token=token)).status == 200
        assert (await desk.send("GET", elsewhere, token=token)).status == 403
        assert (await desk.send("GET", "/api/v1/instances", token=token)).status == 403
        assert (await desk.send("POST", elsewhere, {"name": "shop"}, token=token)).status == 403


async def test_headers_do_not_change_the_caller() -> None:
    async with a_desk() as desk:
        answer = await desk.send("GET", "/api/v1/identity", impersonate_user="root", impersonate_group="system:masters")
        assert answer.json["username"] != "root"
        token = await desk.account("reader", *READ)
        as_admin = {"impersonate_user": "admin", "impersonate_group": "system:masters"}
        assert (await desk.send("POST", ALL, {"name": "shop"}, token=token, **as_admin)).status == 403
        mine = await desk.send("GET", "/api/v1/identity", token=token, **as_admin)
        assert mine.json["username"] == f"system:serviceaccount:{SPACE}:reader"


@pytest.mark.virtual
async def test_a_token_that_has_expired_is_refused_and_ends_streams_at_their_next_turn() -> None:
    async with a_desk() as desk:
        await desk.account("reader", *READ)
        token = (await desk.admin.request_token("reader", SPACE, seconds=600)).token
        async with listening(desk, token=token) as stream:
            assert (await stream.take(1))[0].event == "synced"
            assert await stream.next() is None
            assert (await desk.send("GET", STREAM, token=token, last_event_id=stream.last_id)).status == 200
            await asyncio.sleep(900)
        assert (await desk.send("GET", ALL, token=token)).status == 401
        assert (await desk.send("GET", STREAM, token=token, last_event_id=stream.last_id)).status == 401


async def test_tokens_and_secrets_are_in_no_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    async with a_desk() as desk:
        token = await desk.account("reader", *READ)
        body = {"name": "shop", "spec": {"database": {"type": "mysql", "mysqlPassword": "s3cret"}}}
        await desk.send("POST", f"{ALL}?dryRun=true", body)
        await desk.send("POST", ALL, body, token=token)
        await desk.send("GET", f"{ALL}?labelSelector=x", token="wr0ng")
    text = caplog.text
    assert "/api/v1/namespaces/default/instances" in text
    assert [item for item in (token, desk.token, "s3cret", "wr0ng", "labelSelector") if item in text] == []


def test_the_way_to_the_cluster_brings_no_identity_of_its_own() -> None:
    """A client certificate would go before the caller's token."""
    tls = TlsSettings(ca_file="ca", certificate_file="c", certificate_data="c", key_file="k", key_data="k")
    whole = Config(
        server="https://127.0.0.1:6443",
        credentials=Static.bearer("mine"),
        tls=tls,
        impersonate=Impersonation(user="root"),
        namespace="shop",
    )
    bare = own_nothing(whole)
    assert bare.tls == TlsSettings(ca_file="ca")
    assert bare.impersonate is None
    assert bare.credentials.current().authorization == ""  # type: ignore[union-attr]
    assert (bare.server, bare.namespace) == (whole.server, "shop")
