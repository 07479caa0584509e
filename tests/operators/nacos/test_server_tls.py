"""TLS of the gRPC port for clients: switched on and off while servers run, renewed, and certificates that are none."""

from __future__ import annotations

from typing import Any

import pytest

from konverge.objects import to_dict
from konverge.objects.kinds.core_v1 import ConfigMap
from konverge.operators.nacos.children.config import merged_properties
from konverge.operators.nacos.children.environment import from_secrets
from konverge.operators.nacos.children.stateful_set import stateful_set
from konverge.operators.nacos.desired import InvalidSpec
from konverge.operators.nacos.steps.make_ensure import make_ensure
from konverge.operators.nacos.steps.outcome import CONTINUE, PARAMETER, SYSTEM
from konverge.operators.nacos.steps.server_tls import check_server_tls
from konverge.sim.nacos.settings import read_settings
from konverge.wire import x509
from tests.operators.nacos.steps.bench import Bench
from tests.operators.nacos.test_children import desired_of
from tests.operators.nacos.world import EMBEDDED, SPACE, a_simulated_world, condition

pytestmark = [pytest.mark.virtual, pytest.mark.limit(120), pytest.mark.spec("N-76")]
(CERTIFICATE, KEY), (RENEWED, ITS_KEY) = (
    tuple(part.decode() for part in x509.authority(name).pem) for name in ("first", "renewed")
)
OLD_KEY = KEY.replace("PRIVATE KEY", "RSA PRIVATE KEY")
TLS = {"secretRef": {"name": "tls"}}
SPEC: dict[str, Any] = {**EMBEDDED, "tls": TLS}
PREFIX = "nacos.remote.server.rpc.tls"


def lines(spec: dict[str, Any], **more: Any) -> dict[str, str]:
    text = merged_properties(desired_of(spec), more.get("internal"), more.get("user"))
    return {key: value for line in text.splitlines() for key, _, value in [line.partition("=")] if PREFIX in key}


# ------------------------------------------------------------------ what is rendered


def test_the_properties() -> None:
    expected = {
        f"{PREFIX}.enableTls": "true",
        f"{PREFIX}.certChainFile": "file:/nacos-tls/tls.crt",
        f"{PREFIX}.certPrivateKey": "file:/nacos-tls/tls.key",
        f"{PREFIX}.compatibility": "true",
    }
    assert lines(SPEC) == expected
    assert lines(SPEC, internal="a=b", user=f"{PREFIX}.enableTls=false") == expected, "the block counts more"
    strict = {**EMBEDDED, "tls": {**TLS, "plaintext": "Refused"}}
    assert lines(strict) == expected | {f"{PREFIX}.compatibility": "false"}
    assert lines(EMBEDDED) == {}


def test_the_certificate_is_mounted_and_renews_by_the_digest() -> None:
    pod = to_dict(stateful_set(desired_of(SPEC)).spec.template.spec)
    assert {"name": "nacos-tls", "secret": {"secretName": "tls"}} in pod["volumes"]
    mount = {"name": "nacos-tls", "mountPath": "/nacos-tls", "readOnly": True}
    assert mount in pod["containers"][0]["volumeMounts"]
    assert pod["containers"][0]["readinessProbe"]["httpGet"]["scheme"] == "HTTP"
    assert from_secrets(desired_of(SPEC)) == [("tls", "tls.crt"), ("tls", "tls.key")]
    assert from_secrets(desired_of(EMBEDDED)) == []
    plain = to_dict(stateful_set(desired_of(EMBEDDED)).spec.template.spec)
    assert "volumes" not in plain
    assert not desired_of(EMBEDDED).renders
    assert desired_of(SPEC).renders


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        ({"image": "n:v2.2.0"}, "spec.tls: Nacos 2.2.0 has no TLS for gRPC: use 2.2.1 or later"),
        ({"image": "n:latest"}, "set spec.version"),
        (
            {"image": "n:v2.3.2", "tls": {**TLS, "plaintext": "Refused"}},
            "spec.tls.plaintext: servers of 2.3.2 speak plain text with each other, on ports with the same setting: "
            "use Allowed, or Nacos 2.4.0 or later",
        ),
    ],
)
def test_what_a_version_cannot_do_is_refused(spec: dict[str, Any], text: str) -> None:
    with pytest.raises(InvalidSpec) as wrong:
        desired_of({**SPEC, **spec})
    assert text in str(wrong.value)


@pytest.mark.parametrize(
    "spec",
    [
        {"image": "n:v2.2.1"},
        {"image": "n:v2.4.0", "tls": {**TLS, "plaintext": "Refused"}},
        {"image": "n:v2.2.1", "tls": {**TLS, "plaintext": "Refused"}, "type": "standalone", "replicas": 1},
        {"image": "n:v2.2.0", "tls": None},
    ],
)
def test_what_a_version_can_do(spec: dict[str, Any]) -> None:
    assert desired_of({**SPEC, **spec}).spec.type


# ------------------------------------------------------------------ the certificate


def bench_of(**values: str) -> Bench:
    bench = Bench(SPEC)
    bench.stateful_set(EMBEDDED)
    bench.secret("tls", **{name.replace("_", "."): value for name, value in values.items()})
    return bench


async def test_a_pair_that_works() -> None:
    assert await check_server_tls(bench_of(tls_crt=CERTIFICATE, tls_key=KEY).state) is CONTINUE
    assert await check_server_tls(Bench(EMBEDDED).state) is CONTINUE


@pytest.mark.parametrize(
    ("values", "reason", "text"),
    [
        ({"tls_key": KEY}, "SecretMalformed", "missing key tls.crt"),
        ({"tls_crt": CERTIFICATE}, "SecretMalformed", "missing key tls.key"),
        ({"tls_crt": CERTIFICATE, "tls_key": OLD_KEY}, "TlsFailed", "privateKey.encoding: PKCS8"),
        ({"tls_crt": CERTIFICATE, "tls_key": ITS_KEY}, "TlsFailed", "put a matching pair there"),
        ({"tls_crt": "nonsense", "tls_key": KEY}, "TlsFailed", "put a matching pair there"),
    ],
)
async def test_a_pair_that_does_not_work(values: dict[str, str], reason: str, text: str) -> None:
    bench = bench_of(**values)
    outcome = await check_server_tls(bench.state)
    assert (outcome.code, outcome.reason) == (PARAMETER, reason)
    assert text in outcome.message
    assert await make_ensure(bench.state) is CONTINUE, "the servers that run are looked after"
    assert bench.state.unapplied == outcome
    assert bench.sent == []


async def test_a_secret_that_is_missing() -> None:
    bench = Bench(SPEC)
    outcome = await make_ensure(bench.state)
    assert (outcome.code, outcome.reason) == (SYSTEM, "SecretMissing")
    assert bench.sent == []


# ------------------------------------------------------------------ servers


@pytest.mark.spec("N-77")
async def test_switched_on_renewed_and_off_while_the_cluster_serves() -> None:
    async with a_simulated_world() as (world, simulated), world.operating():
        await world.up("nacos", EMBEDDED)

        def modes() -> set[str]:
            return {simulated.member(f"nacos-{number}").settings.client_tls for number in range(3)}

        assert modes() == {"none"}
        await world.secret("tls", **{"tls.crt": CERTIFICATE, "tls.key": KEY})
        await world.change("nacos", tls=TLS)
        assert await world.until_ready() >= 2, "one server after the other"
        assert modes() == {"optional"}
        uids = await world.uids()
        await world.replace_secret("tls", **{"tls.crt": RENEWED, "tls.key": ITS_KEY})
        assert await world.until_ready() >= 2
        await world.advance(60.0)
        assert await world.until_ready() >= 2
        assert sorted(await world.restarted(uids)) == ["nacos-0", "nacos-1", "nacos-2"]
        uids = await world.uids()
        await world.replace_secret("tls", **{"tls.crt": CERTIFICATE, "tls.key": ITS_KEY})  # they do not match
        await world.advance(120.0)
        nacos = await world.nacos("nacos")
        assert condition(nacos, "Ready") == ("False", "TlsFailed")
        assert condition(nacos, "Available")[0] == "True"
        assert await world.restarted(uids) == []
        await world.change("nacos", tls=None)
        await world.until_ready()
        assert modes() == {"none"}
        configs = {config.metadata.name for config in await world.client.list(ConfigMap, SPACE)}
        assert "nacos-final-config" not in configs


@pytest.mark.parametrize(
    ("image", "env", "mode", "refusal"),
    [
        ("v2.2.0", {"RPC_TLS": "true"}, "none", ""),
        ("v2.4.3", {"RPC_TLS": "false"}, "none", ""),
        ("v2.4.3", {"RPC_TLS": "true"}, "optional", "certChainFile load fail"),
        ("v2.4.3", {"RPC_TLS": "true", "RPC_TLS_CERTIFICATE": CERTIFICATE}, "optional", "certPrivateKey load fail"),
        (
            "v2.2.1",
            {"RPC_TLS": "true", "RPC_TLS_CERTIFICATE": CERTIFICATE, "RPC_TLS_KEY": OLD_KEY},
            "optional",
            "certPrivateKey load fail",
        ),
        (
            "v2.4.3",
            {
                "RPC_TLS": "true",
                "RPC_TLS_CERTIFICATE": CERTIFICATE,
                "RPC_TLS_KEY": KEY,
                "RPC_TLS_COMPATIBILITY": "false",
            },
            "required",
            "",
        ),
    ],
)
def test_simulated_servers_exit_where_real_ones_do(image: str, env: dict[str, str], mode: str, refusal: str) -> None:
    made = read_settings("space", "nacos-0", "uid", "127.1.0.1", f"nacos/nacos-server:{image}", env)
    assert (made.client_tls, made.refusal) == (mode, refusal)
