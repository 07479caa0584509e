"""Who makes a request: tokens of accounts, token files, certificates, anonymous users."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from konverge.apiserver import ApiServer, certificates
from konverge.apiserver.auth.authentication import user_of
from konverge.apiserver.auth.token_keys import Keys
from konverge.apiserver.config import AuthSettings, Config
from konverge.wire.message import Headers, Peer, Request
from tests.apiserver.api import Api

WHO = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"


async def _token(api: Api, name: str = "robot", **spec: Any) -> str:
    answer = await api.call("POST", f"{ACCOUNTS}/{name}/token", {"spec": spec})
    return str(answer["status"]["token"])


async def _who(api: Api, token: str) -> Any:
    answer = await api.call("POST", WHO, {}, authorization=f"Bearer {token}")
    return answer["status"]["userInfo"]


async def _reviewed(api: Api, token: str, *audiences: str) -> Any:
    """What a TokenReview says: the audiences of a valid token, or why it is not valid."""
    spec = {"token": token, "audiences": list(audiences)}
    answer = await api.call("POST", "/apis/authentication.k8s.io/v1/tokenreviews", {"spec": spec})
    status = answer["status"]
    assert status.get("authenticated", False) is ("error" not in status)
    return status["audiences"] if "audiences" in status else status["error"]


async def _refused(api: Api, token: str) -> bool:
    response = await api.send("POST", WHO, {}, authorization=f"Bearer {token}")
    return response.status == 401


def _claims(token: str) -> Any:
    part = token.split(".")[1]
    return json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))


@pytest.mark.spec("S-12")
async def test_a_token_names_its_user_and_its_lifetime(api: Api) -> None:
    account = await api.create("robot", ACCOUNTS)
    token = await _token(api, expirationSeconds=700)
    user, claims = await _who(api, token), _claims(token)
    assert user["username"] == "system:serviceaccount:default:robot"
    assert user["uid"] == account["metadata"]["uid"]
    assert user["extra"]["authentication.kubernetes.io/credential-id"] == [f"JTI={claims['jti']}"]
    assert claims["exp"] - claims["iat"] == 700
    assert claims["kubernetes.io"]["serviceaccount"] == {"name": "robot", "uid": account["metadata"]["uid"]}


@pytest.mark.spec("S-12")
async def test_a_token_ends_with_its_account(api: Api) -> None:
    await api.create("robot", ACCOUNTS)
    token = await _token(api)
    await api.call("DELETE", f"{ACCOUNTS}/robot")
    assert await _refused(api, token)
    await api.create("robot", ACCOUNTS)
    assert await _refused(api, token), "another account of the same name is another account"


@pytest.mark.spec("S-12")
async def test_a_token_ends_with_the_object_that_it_is_bound_to(api: Api) -> None:
    await api.create("robot", ACCOUNTS)
    secrets = "/api/v1/namespaces/default/secrets"
    await api.create("bound", secrets)
    reference = {"kind": "Secret", "apiVersion": "v1", "name": "bound"}
    token = await _token(api, boundObjectRef=reference)
    assert not await _refused(api, token)
    await api.call("DELETE", f"{secrets}/bound")
    assert await _refused(api, token)


@pytest.mark.spec("S-12")
async def test_a_token_of_a_pod_names_it_and_lives_for_a_year(api: Api) -> None:
    await api.create("robot", ACCOUNTS)
    spec = {"serviceAccountName": "robot", "containers": [{"name": "c", "image": "i"}], "nodeName": "n1"}
    pod = await api.create("p", "/api/v1/namespaces/default/pods", spec=spec)
    reference = {"kind": "Pod", "apiVersion": "v1", "name": "p"}
    token = await _token(api, boundObjectRef=reference, expirationSeconds=3607)
    extra, claims = (await _who(api, token))["extra"], _claims(token)
    assert extra["authentication.kubernetes.io/pod-uid"] == [pod["metadata"]["uid"]]
    assert extra["authentication.kubernetes.io/node-name"] == ["n1"]
    assert claims["exp"] - claims["iat"] == 365 * 24 * 3600, "old clients read a token once"
    assert claims["kubernetes.io"]["warnafter"] - claims["iat"] == 3607


@pytest.mark.virtual
async def test_a_token_expires() -> None:
    import asyncio

    async with ApiServer() as server:
        api = Api(server)
        await api.create("robot", ACCOUNTS)
        token = await _token(api, expirationSeconds=600)
        await asyncio.sleep(655)
        assert not await _refused(api, token), "clocks may differ by a minute"
        await asyncio.sleep(10)
        assert await _refused(api, token)


@pytest.mark.parametrize("spoil", ["signature", "claims", "algorithm"])
async def test_a_token_that_was_tampered_with_is_refused(api: Api, spoil: str) -> None:
    await api.create("robot", ACCOUNTS)
    head, claims, signature = (await _token(api)).split(".")
    if spoil == "signature":
        signature = signature[:-8] + "AAAAAAAA"
    elif spoil == "claims":
        changed = {**_claims(f".{claims}."), "sub": "system:admin"}
        claims = base64.urlsafe_b64encode(json.dumps(changed).encode()).decode().rstrip("=")
    else:
        head = base64.urlsafe_b64encode(b'{"alg":"none"}').decode().rstrip("=")
        signature = ""
    assert await _refused(api, f"{head}.{claims}.{signature}")


@pytest.mark.spec("S-12")
@pytest.mark.parametrize("foreign", ["=", "==", "!", "\u00e9"])
@pytest.mark.parametrize("part", [0, 1, 2])
async def test_a_token_has_one_spelling(api: Api, foreign: str, part: int) -> None:
    """Python's base64 takes padding, and drops characters that are not in its alphabet."""
    await api.create("robot", ACCOUNTS)
    token = await _token(api)
    assert not await _refused(api, token)
    parts = token.split(".")
    for spelling in (parts[part] + foreign, parts[part][:-4] + foreign + parts[part][-4:]):
        changed = [*parts[:part], spelling, *parts[part + 1 :]]
        assert await _refused(api, ".".join(changed))


@pytest.mark.spec("S-12")
async def test_keys_are_published_and_kept(tmp_path: Path) -> None:
    async with ApiServer(data_dir=tmp_path) as server:
        api = Api(server)
        await api.create("robot", ACCOUNTS)
        token = await _token(api)
        keys = await api.call("GET", "/openid/v1/jwks")
        issuer = await api.call("GET", "/.well-known/openid-configuration")
    assert issuer["issuer"] == _claims(token)["iss"]
    assert (tmp_path / "service-account.key").stat().st_mode & 0o077 == 0
    async with ApiServer(data_dir=tmp_path) as server:
        api = Api(server)
        assert await api.call("GET", "/openid/v1/jwks") == keys
        assert not await _refused(api, token)


async def _signing_key(path: Path) -> Any:
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    key = ec.generate_private_key(ec.SECP256R1())
    path.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    return key


@pytest.mark.spec("S-12")
async def test_a_signing_key_from_a_file_is_used(tmp_path: Path) -> None:
    await _signing_key(tmp_path / "sa.key")
    async with ApiServer(config=Config(auth=AuthSettings(signing_key=tmp_path / "sa.key"))) as server:
        api = Api(server)
        await api.create("robot", ACCOUNTS)
        assert (await _who(api, await _token(api)))["username"].endswith(":robot")
        [key] = (await api.call("GET", "/openid/v1/jwks"))["keys"]
        assert (key["kty"], key["alg"]) == ("EC", "ES256")


async def _legacy_token(api: Api, key: Path) -> str:
    """What the tokens controller makes for secrets of the type kubernetes.io/service-account-token."""
    account, claim = await api.create("robot", ACCOUNTS), "kubernetes.io/serviceaccount/"
    claims = {"iss": "kubernetes/serviceaccount", f"{claim}namespace": "default", f"{claim}secret.name": "s"}
    claims |= {f"{claim}service-account.name": "robot", f"{claim}service-account.uid": account["metadata"]["uid"]}
    return Keys(folder=None, signing=key, verifying=()).sign(claims)


@pytest.mark.spec("S-12")
async def test_a_token_in_a_secret_ends_with_the_secret(tmp_path: Path) -> None:
    await _signing_key(tmp_path / "sa.key")
    async with ApiServer(config=Config(auth=AuthSettings(signing_key=tmp_path / "sa.key"))) as server:
        api = Api(server)
        token = await _legacy_token(api, tmp_path / "sa.key")
        assert await _refused(api, token)
        data = {"token": base64.b64encode(token.encode()).decode()}
        await api.create("s", "/api/v1/namespaces/default/secrets", data=data)
        assert (await _who(api, token))["username"] == "system:serviceaccount:default:robot"
        await api.call("DELETE", "/api/v1/namespaces/default/secrets/s")
        assert await _refused(api, token)


@pytest.mark.spec("S-12")
async def test_a_token_file_names_users_and_groups(tmp_path: Path) -> None:
    path = tmp_path / "tokens.csv"
    path.write_text('secret-1,jane,u1,"dev,ops"\nsecret-2,joe,u2\n')
    async with ApiServer(config=Config(auth=AuthSettings(token_file=path))) as server:
        api = Api(server)
        jane = await _who(api, "secret-1")
        assert (jane["username"], jane["uid"]) == ("jane", "u1")
        assert jane["groups"] == ["dev", "ops", "system:authenticated"]
        assert (await _who(api, "secret-2"))["groups"] == ["system:authenticated"]
        assert await _refused(api, "secret-3")


# --- tokens that do not say whom they are for are for the audiences of the server


@pytest.mark.spec("S-67")
async def test_a_token_in_a_secret_is_for_this_server_alone(tmp_path: Path) -> None:
    await _signing_key(tmp_path / "sa.key")
    async with ApiServer(config=Config(auth=AuthSettings(signing_key=tmp_path / "sa.key", issuer="own"))) as server:
        api = Api(server)
        token = await _legacy_token(api, tmp_path / "sa.key")
        why = 'token audiences ["own"] is invalid for the target audiences ["vault" "x"]'
        assert await _reviewed(api, token, "vault", "x") == f"[invalid bearer token, {why}]"
        data = {"token": base64.b64encode(token.encode()).decode()}
        await api.create("s", "/api/v1/namespaces/default/secrets", data=data)
        assert await _reviewed(api, token, "vault", "x") == f"[invalid bearer token, {why}]"
        assert await _reviewed(api, token, "vault", "own") == ["own"]
        assert await _reviewed(api, token) == ["own"]


@pytest.mark.spec("S-67")
async def test_a_token_of_a_file_is_for_this_server_alone(tmp_path: Path) -> None:
    path = tmp_path / "tokens.csv"
    path.write_text("secret-1,jane,u1\n")
    async with ApiServer(config=Config(auth=AuthSettings(token_file=path, audiences=("a", "b")))) as server:
        api = Api(server)
        assert await _reviewed(api, "secret-1", "vault") == "invalid bearer token"
        assert await _reviewed(api, "secret-1", "b", "vault", "a", "b") == ["b", "a", "b"], "in the order of the review"
        assert await _reviewed(api, "secret-1") == ["a", "b"]
        assert (await _who(api, "secret-1"))["username"] == "jane"
        assert await _reviewed(api, server.token, "vault") == "invalid bearer token"


@pytest.mark.spec("S-67")
async def test_a_signed_token_without_audiences_is_for_this_server_alone(tmp_path: Path) -> None:
    await _signing_key(tmp_path / "sa.key")
    settings = AuthSettings(signing_key=tmp_path / "sa.key", issuer="us", audiences=("a", "b"))
    async with ApiServer(config=Config(auth=settings)) as server:
        api = Api(server)
        account = await api.create("robot", ACCOUNTS)
        about = {"name": "robot", "uid": account["metadata"]["uid"]}
        claims = {"iss": "us", "kubernetes.io": {"namespace": "default", "serviceaccount": about}}
        token = Keys(folder=None, signing=tmp_path / "sa.key", verifying=()).sign(claims)
        assert (await _who(api, token))["username"].endswith(":robot")
        why = 'token audiences ["a" "b"] is invalid for the target audiences ["us"]'
        assert await _reviewed(api, token, "us") == f"[invalid bearer token, {why}]"


@pytest.mark.spec("S-67")
async def test_a_token_for_another_is_valid_for_it_and_not_for_this_server(api: Api) -> None:
    await api.create("robot", ACCOUNTS)
    token = await _token(api, audiences=["vault"])
    assert await _reviewed(api, token, "vault", "x") == ["vault"]
    assert "is invalid for the target audiences" in await _reviewed(api, token)
    assert await _refused(api, token)


@pytest.mark.spec("S-12")
async def test_anonymous_requests_can_be_refused() -> None:
    async with ApiServer(config=Config(auth=AuthSettings(anonymous=False))) as server:
        response = await server.transport.send(Request("GET", "/version"))
        assert response.status == 401


@pytest.mark.spec("S-12")
async def test_a_client_certificate_names_the_user(api: Api) -> None:
    from cryptography.hazmat.primitives.serialization import Encoding
    from cryptography.x509 import load_pem_x509_certificate

    pem = certificates.make(("127.0.0.1",)).admin
    der = load_pem_x509_certificate(pem).public_bytes(Encoding.DER)
    user = user_of(der)
    assert user is not None
    assert (user.name, user.groups) == ("kubernetes-admin", ("system:masters", "system:authenticated"))
    request = Request("POST", WHO, Headers.of({"authorization": "Bearer nonsense"}), b"{}", peer=Peer("x", der))
    response = await api.server.transport.send(request)
    user = json.loads(response.body)["status"]["userInfo"]
    assert user["username"] == "kubernetes-admin", "a certificate comes before a token"


@pytest.mark.parametrize("data", [b"", b"\x30", b"\x30\x82\xff\xff\x00", b"nonsense", b"\x30\x03\x30\x01\x05"])
def test_a_certificate_that_cannot_be_read_names_no_user(data: bytes) -> None:
    assert user_of(data) is None


async def test_a_token_in_a_websocket_protocol_is_accepted(api: Api) -> None:
    encoded = base64.urlsafe_b64encode(api.server.token.encode()).decode().rstrip("=")
    protocol = f"base64url.bearer.authorization.k8s.io.{encoded}, v4.channel.k8s.io"
    headers = Headers.of({"upgrade": "websocket", "sec-websocket-protocol": protocol})
    response = await api.server.transport.send(Request("GET", "/api/v1/namespaces", headers))
    assert response.status == 200
