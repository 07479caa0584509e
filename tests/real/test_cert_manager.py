"""cert-manager, unmodified, on the embedded server and on the real kube-apiserver: the same stories, and the same
objects, refusals and events afterwards.
"""

from __future__ import annotations

import asyncio
import base64
import ssl
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from konverge.client import ApiStatusError, Client, MergePatch, load_config
from konverge.objects.resource import Resource
from konverge.wire.tls import server_context
from tests.real.cert_manager import (
    CERTIFICATES,
    DEFINITIONS,
    ISSUERS,
    KEY,
    MUTATING,
    REQUESTS,
    SECRETS,
    VALIDATING,
    Both,
    Obj,
    authority,
    both_sides,
    bundle,
    certificate,
    ready,
    renew,
    same,
    secret,
)
from tests.real.cert_manager_operator import certified_operator
from tests.real.clients.waiting import LIMIT
from tests.real.controller_sides import Side, sides
from tests.real.kubevirt import as_user

pytestmark = pytest.mark.spec("S-62")

INGRESSES = Resource("networking.k8s.io", "v1", "Ingress", "ingresses")
SIGNING = Resource("certificates.k8s.io", "v1", "CertificateSigningRequest", "certificatesigningrequests", False)
SERVICES = Resource("apiregistration.k8s.io", "v1", "APIService", "apiservices", namespaced=False)
KINDS = (ISSUERS, CERTIFICATES, REQUESTS, SECRETS)


@pytest.fixture(scope="module")
def pair(binaries: Path, helm_program: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    with both_sides(binaries, helm_program, tmp_path_factory.mktemp("sides")) as kubeconfigs:
        yield kubeconfigs


# ------------------------------------------------------------------ issuing


async def test_an_authority_and_a_certificate_of_its_own(pair: Both) -> None:
    async def story(side: Side) -> dict[str, bytes]:
        await side.make(ISSUERS, "ca", spec={"ca": {"secretName": "root"}})
        await ready(side, ISSUERS, "ca", "False")  # its Secret is not there yet
        await side.make(ISSUERS, "selfsigned", spec={"selfSigned": {}})
        await ready(side, ISSUERS, "selfsigned")
        spec = {"isCA": True, "commonName": "root", "secretName": "root", "issuerRef": {"name": "selfsigned"}}
        await side.make(CERTIFICATES, "root", spec={**spec, "privateKey": KEY})
        await ready(side, CERTIFICATES, "root")
        await ready(side, ISSUERS, "ca")
        await certificate(side, "leaf", usages=["server auth"], secretTemplate={"labels": {"app": "web"}})
        chosen = await side.client.list(CERTIFICATES, side.space, field_selector="spec.issuerRef.name=ca")
        assert [found["metadata"]["name"] for found in chosen.items] == ["leaf"]
        return await secret(side, "leaf")

    for data in await same(pair, "chain", story, *KINDS):
        shake_hands(data, "leaf.example")
        with pytest.raises(ssl.SSLCertVerificationError):
            shake_hands(data, "other.example")


def shake_hands(data: dict[str, bytes], name: str) -> None:
    """A client that trusts the authority in a Secret, and a server with the certificate and the key in it."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    trusting = ssl.create_default_context(cadata=data["ca.crt"].decode())
    serving = server_context(data["tls.crt"], data["tls.key"])
    waiting = [
        trusting.wrap_bio(to_client, to_server, server_hostname=name),
        serving.wrap_bio(to_server, to_client, server_side=True),
    ]
    while waiting:
        side = waiting.pop(0)
        try:
            side.do_handshake()
        except ssl.SSLWantReadError:
            waiting.append(side)


async def test_a_certificate_that_is_asked_for_again_or_changes_is_a_new_one(pair: Both) -> None:
    async def story(side: Side) -> None:
        await authority(side)
        await certificate(side, "leaf")
        first = await secret(side, "leaf")
        await renew(side, "leaf")
        await ready(side, CERTIFICATES, "leaf", revision=2)
        second = await secret(side, "leaf")
        await side.patch(CERTIFICATES, "leaf", {"spec": {"dnsNames": ["other.example"]}})
        await ready(side, CERTIFICATES, "leaf", revision=3)
        third = await secret(side, "leaf")
        assert len({data["tls.crt"] for data in (first, second, third)}) == 3
        shake_hands(second, "leaf.example")
        shake_hands(third, "other.example")
        await side.until(REQUESTS, lambda found: sorted(found) == ["leaf-3", "root-1"])  # one revision is kept

    await same(pair, "again", story, *KINDS)


async def test_a_certificate_is_renewed_when_its_time_comes(pair: Both) -> None:
    async def story(side: Side) -> None:
        await authority(side)
        await certificate(side, "brief", duration="1h", renewBefore="59m57s")
        first = await secret(side, "brief")
        await ready(side, CERTIFICATES, "brief", revision=2)
        assert await secret(side, "brief") != first
        await side.delete(CERTIFICATES, "brief")
        await side.until(SECRETS, lambda found: set(found) == {"root"})

    async with sides(pair, "renewal") as both:
        await asyncio.gather(*(story(side) for side in both))


# ------------------------------------------------------------------ owners


async def test_what_a_certificate_owns_goes_with_it(pair: Both) -> None:
    """An Ingress asks for a Certificate, which owns its requests and, by an option, its Secret."""

    async def story(side: Side) -> list[str]:
        await authority(side)
        backend = {"service": {"name": "web", "port": {"number": 80}}}
        rule = {"host": "web.example", "http": {"paths": [{"path": "/", "pathType": "Prefix", "backend": backend}]}}
        spec = {"rules": [rule], "tls": [{"hosts": ["web.example"], "secretName": "web"}]}
        await side.make(INGRESSES, "web", metadata={"annotations": {"cert-manager.io/issuer": "ca"}}, spec=spec)
        made = await ready(side, CERTIFICATES, "web")
        shake_hands(await secret(side, "web"), "web.example")
        await side.delete(INGRESSES, "web")
        await side.until(CERTIFICATES, lambda found: set(found) == {"root"})
        await side.until(REQUESTS, lambda found: set(found) == {"root-1"})
        await side.until(SECRETS, lambda found: set(found) == {"root"})
        return [owner["kind"] for owner in made["metadata"]["ownerReferences"]]

    assert await same(pair, "owners", story, *KINDS) == (["Ingress"], ["Ingress"])


# ------------------------------------------------------------------ the webhook


PROBE = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "probe"}}
GOOD: Obj = {"secretName": "x", "dnsNames": ["x.example"], "issuerRef": {"name": "ca"}}
BAD: dict[str, tuple[Resource, Obj]] = {
    # By the schema, one at a time: the real server tells several in any order.
    "no issuer": (CERTIFICATES, {"secretName": "x", "dnsNames": ["x.example"]}),
    "no algorithm": (CERTIFICATES, {**GOOD, "privateKey": {"algorithm": "DSA"}}),
    "no number": (CERTIFICATES, {**GOOD, "privateKey": {"size": "big"}}),
    "no usage": (CERTIFICATES, {**GOOD, "usages": ["signing", "everything"]}),
    "a rule in CEL": (ISSUERS, {"venafi": {"zone": "z"}}),
    # By the webhook.
    "no names": (CERTIFICATES, {"secretName": "x", "issuerRef": {"name": "ca"}}),
    "three at once": (CERTIFICATES, {**GOOD, "secretName": "not a name", "duration": "5m", "renewBefore": "10m"}),
    "no duration": (CERTIFICATES, {**GOOD, "duration": "long"}),
    "no size": (CERTIFICATES, {**GOOD, "privateKey": {"algorithm": "RSA", "size": 100}}),
    "no issuer of ours": (CERTIFICATES, {**GOOD, "issuerRef": {"name": "ca", "kind": "Nobody"}}),
    "no kind of issuer": (ISSUERS, {}),
    "two kinds of issuer": (ISSUERS, {"selfSigned": {}, "ca": {"secretName": "x"}}),
    "no request": (REQUESTS, {"request": "aGVsbG8=", "issuerRef": {"name": "ca"}}),
}


async def test_what_is_refused_is_refused_in_the_same_words(pair: Both) -> None:
    async def story(side: Side) -> list[tuple[str, int, str, str]]:
        said = []
        for about, (resource, spec) in BAD.items():
            with pytest.raises(ApiStatusError) as refused:
                await side.make(resource, "bad", spec=spec)
            said.append((about, refused.value.code, refused.value.reason, refused.value.message))
        return said

    real, ours = await same(pair, "refusals", story, *KINDS)
    assert ours == real
    assert [about for about, *_, message in real if "admission webhook" in message] == list(BAD)[5:]


async def test_the_webhook_says_who_asks_and_who_may_approve(pair: Both) -> None:
    async def story(side: Side) -> list[Any]:
        # A kind that there is, and whose requests cert-manager may not approve itself.
        issuer = {"group": "networking.k8s.io", "kind": "Ingress", "name": "x"}
        asked = base64.b64encode(signing_request("asked.example")).decode()
        made = await side.make(REQUESTS, "asked", spec={"request": asked, "issuerRef": issuer})
        said = [made["spec"]["username"], made["spec"]["groups"]]
        for change in ({"request": asked[:-4]}, {"username": "bob"}):
            with pytest.raises(ApiStatusError) as refused:
                await side.patch(REQUESTS, "asked", {"spec": change})
            said.append(refused.value.message)
        return said

    real, ours = await same(pair, "asking", story, *KINDS)
    assert ours == real
    assert real[0] == "jane"
    said = [await _approved_by_bob(kubeconfig, "asking") for kubeconfig in pair]
    assert said[0] == said[1]
    assert 'user "bob" does not have permissions to set approved/denied conditions' in said[0]


async def _approved_by_bob(kubeconfig: Path, space: str) -> str:
    """bob may write the status of requests, and approve none: the webhook asks the server whether he may."""
    group = "rbac.authorization.k8s.io"
    rule = {"apiGroups": ["cert-manager.io"], "resources": ["certificaterequests/status"], "verbs": ["patch"]}
    reference = {"apiGroup": group, "kind": "Role", "name": "writers"}
    subjects = [{"apiGroup": group, "kind": "User", "name": "bob"}]
    async with Client.connect(load_config(kubeconfig=str(kubeconfig))) as jane:
        for kind, more in (("Role", {"rules": [rule]}), ("RoleBinding", {"roleRef": reference, "subjects": subjects})):
            meta = {"name": "writers", "namespace": space}
            await jane.create({"apiVersion": f"{group}/v1", "kind": kind, "metadata": meta, **more})
    approved = {"type": "Approved", "status": "True", "reason": "me", "message": "why not"}
    patch = MergePatch({"status": {"conditions": [approved]}})
    async with Client.connect(load_config(kubeconfig=str(as_user(kubeconfig, "bob", "system:authenticated")))) as bob:
        async with asyncio.timeout(LIMIT):
            while True:
                with pytest.raises(ApiStatusError) as refused:
                    await bob.patch(REQUESTS, "asked", patch, space, subresource="status")
                if "admission webhook" in refused.value.message:  # the real server has read the role by now
                    return refused.value.message


def signing_request(name: str) -> bytes:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    names = x509.SubjectAlternativeName([x509.DNSName(name)])
    asked = x509.CertificateSigningRequestBuilder().subject_name(subject).add_extension(names, critical=False)
    return asked.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)


async def test_a_certificate_for_others_is_refused_in_the_same_words(pair: Both) -> None:
    """cert-manager's webhook has a certificate for `localhost`, and is called by its address, and as a Service."""

    async def story(side: Side) -> list[str]:
        own = await side.client.get(VALIDATING, "cert-manager-webhook")
        port = urlsplit(own["webhooks"][0]["clientConfig"]["url"]).port
        external = {"type": "ExternalName", "externalName": "localhost", "ports": [{"port": port}]}
        service = {"name": "named", "namespace": side.space, "port": port}
        here = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": side.space}}}
        said = []
        await side.make(Resource("", "v1", "Service", "services"), "named", spec=external)
        for place in ({"url": f"https://127.0.0.1:{port}/validate"}, {"service": service}):
            asked = hook("x.others.example", {**place, "caBundle": bundle(own)}, "configmaps", **here)
            await side.make(VALIDATING, side.space, webhooks=[asked])
            said.append((await _refused(side, "x509")).replace(str(port), "PORT"))
            await side.delete(VALIDATING, side.space)
            await _taken(side)
        return said

    real, ours = await same(pair, "others", story)
    assert ours == real
    assert real[0].endswith("cannot validate certificate for 127.0.0.1 because it doesn't contain any IP SANs")
    assert real[1].endswith("certificate is valid for localhost, not named.others.svc")


async def _refused(side: Side, why: str) -> str:
    """What a ConfigMap is refused with, as soon as the server has taken up what refuses it."""
    async with asyncio.timeout(LIMIT):
        while True:
            try:
                await side.client.create(PROBE, side.space, dry_run=True)
            except ApiStatusError as error:
                if why in error.message:
                    return error.message


async def _taken(side: Side) -> None:
    async with asyncio.timeout(LIMIT):
        while True:
            with suppress(ApiStatusError):
                await side.client.create(PROBE, side.space, dry_run=True)
                return


# ------------------------------------------------------------------ requests of Kubernetes' own kind


async def test_a_certificate_signing_request_is_signed(pair: Both) -> None:
    async def story(side: Side) -> Any:
        await authority(side)
        spec = {
            "request": base64.b64encode(signing_request("web.example")).decode(),
            "signerName": f"issuers.cert-manager.io/{side.space}.ca",
            "usages": ["digital signature", "server auth"],
        }
        await side.make(SIGNING, "signed.web", spec=spec)
        approved = {"type": "Approved", "status": "True", "reason": "jane", "message": "she may"}
        await side.patch(SIGNING, "signed.web", {"status": {"conditions": [approved]}}, "approval")
        done = await side.until(SIGNING, lambda found: found["signed.web"]["status"].get("certificate"))
        chain = x509.load_pem_x509_certificates(base64.b64decode(done["signed.web"]["status"]["certificate"]))
        root = x509.load_pem_x509_certificate((await secret(side, "root"))["tls.crt"])
        chain[0].verify_directly_issued_by(root)
        return chain[0].subject.rfc4514_string()

    assert await same(pair, "signed", story, SIGNING) == ("CN=web.example", "CN=web.example")


# ------------------------------------------------------------------ the CA injector


async def test_the_authority_is_written_where_it_is_asked_for(pair: Both) -> None:
    async def story(side: Side) -> None:
        await authority(side)
        allowed = {"annotations": {"cert-manager.io/allow-direct-injection": "true"}}
        await certificate(side, "leaf", secretTemplate=allowed)
        place = f"{side.space}/leaf"
        hooks = [hook(f"{number}.injected.example", {"url": "https://localhost:1/"}) for number in ("first", "second")]
        name, more = "injected", {"webhooks": hooks}
        await side.make(VALIDATING, name, metadata=annotated("inject-ca-from", place), **more)
        await side.make(MUTATING, name, metadata=annotated("inject-ca-from-secret", place), **more)
        pools, served = f"pools.{name}.example", f"v1.{name}.test"
        await side.make(DEFINITIONS, pools, metadata=annotated("inject-ca-from", place), spec=definition(pools))
        service = {"group": f"{name}.test", "version": "v1", "groupPriorityMinimum": 10, "versionPriority": 10}
        where = {"service": {"name": "none", "namespace": side.space}}
        await side.make(SERVICES, served, metadata=annotated("inject-ca-from", place), spec={**service, **where})
        wanted = base64.b64encode((await secret(side, "leaf"))["ca.crt"]).decode()
        for resource in (VALIDATING, MUTATING):
            await side.until(resource, lambda found: bundle(found[name]) == wanted)
        await side.until(DEFINITIONS, lambda found: conversion(found[pools]).get("caBundle") == wanted)
        await side.until(SERVICES, lambda found: found[served]["spec"].get("caBundle") == wanted)

    await same(pair, "injected", story, VALIDATING, MUTATING, DEFINITIONS)


def hook(name: str, place: Obj, resource: str = "nothing", **more: Any) -> Obj:
    return {
        "name": name,
        "clientConfig": place,
        "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "resources": [resource], "operations": ["CREATE"]}],
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        **more,
    }


def annotated(annotation: str, value: str) -> Obj:
    return {"annotations": {f"cert-manager.io/{annotation}": value}}


def conversion(definition: Obj) -> Obj:
    config: Obj = definition["spec"]["conversion"]["webhook"]["clientConfig"]
    return config


def definition(name: str) -> Obj:
    """Of a kind in two versions, whose conversion is nobody's."""
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    called = {"clientConfig": {"url": "https://localhost:1/"}, "conversionReviewVersions": ["v1"]}
    return {
        "group": name.partition(".")[2],
        "scope": "Namespaced",
        "names": {"plural": "pools", "singular": "pool", "kind": "Pool", "listKind": "PoolList"},
        "versions": [
            {"name": "v1", "served": True, "storage": True, "schema": schema},
            {"name": "v2", "served": True, "storage": False, "schema": schema},
        ],
        "conversion": {"strategy": "Webhook", "webhook": called},
    }


@pytest.mark.spec("R-69")
async def test_an_operator_of_ours_is_called_with_a_certificate_of_cert_manager(
    pair: Both, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("konverge.runtime.webhooks.places.LOOK_EVERY", 0.1)
    for kubeconfig in pair:
        folder = tmp_path / kubeconfig.parent.name
        folder.mkdir()
        async with Client.connect(load_config(kubeconfig=str(kubeconfig))) as client:
            await certified_operator(client, folder)
