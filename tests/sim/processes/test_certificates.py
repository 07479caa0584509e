"""Certificates of process pods: a signer is asked, and what it issues is in the pod's volume until it grows old."""

from __future__ import annotations

from base64 import b64decode
from datetime import UTC, datetime, timedelta
from math import inf
from types import SimpleNamespace
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from konverge import clock
from konverge.client import Client, MergePatch
from konverge.objects.codec import from_dict
from konverge.objects.kinds.certificates_v1 import PodCertificateRequest
from konverge.objects.kinds.core_v1 import Pod, PodCertificateProjection, ServiceAccount, Volume
from konverge.sim.cluster import Cluster
from konverge.sim.processes.certificates import Certificates
from konverge.sim.processes.disk import MountError
from konverge.sim.processes.environment import Self
from konverge.sim.processes.volumes import Lookup, files
from tests.sim.conftest import SPACE, pod
from tests.sim.processes.support import is_running, until

pytestmark = pytest.mark.spec("S-57")
PLACE = ("tls", 0)
PENDING = "credential bundle is not issued yet"


def projection(**more: Any) -> PodCertificateProjection:
    whole = {"signerName": "e2e.test/one", "keyType": "ECDSAP256", "credentialBundlePath": "all.pem", **more}
    return from_dict(PodCertificateProjection, whole)


async def running_pod(cluster: Cluster) -> Pod:
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default", "namespace": SPACE}}
    await cluster.client.create(from_dict(ServiceAccount, account))
    await cluster.client.create(pod("web"))
    return await until(cluster.client, "web", is_running)


async def requests(client: Client) -> list[PodCertificateRequest]:
    return list(await client.list(PodCertificateRequest, SPACE))


def seconds(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


async def issue(client: Client, request: PodCertificateRequest) -> None:
    """What a signer does."""
    csr = x509.load_der_x509_csr(b64decode(request.spec.stub_pkcs10_request))
    assert csr.is_signature_valid
    now = datetime.fromtimestamp(clock.now(), UTC).replace(microsecond=0)
    name, authority = x509.Name([]), ec.generate_private_key(ec.SECP256R1())
    builder = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(csr.public_key())
    builder = builder.serial_number(x509.random_serial_number()).not_valid_before(now)
    builder = builder.not_valid_after(now + timedelta(hours=24))
    builder = builder.add_extension(x509.SubjectAlternativeName([x509.DNSName("web")]), critical=True)
    text = builder.sign(authority, hashes.SHA256()).public_bytes(serialization.Encoding.PEM).decode()
    status = {
        "certificateChain": text,
        "notBefore": seconds(now),
        "notAfter": seconds(now + timedelta(hours=24)),
        "beginRefreshAt": seconds(now + timedelta(hours=12)),
    }
    await conclude(client, request, "Issued", **status)


async def conclude(client: Client, request: PodCertificateRequest, what: str, **status: Any) -> None:
    now = seconds(datetime.fromtimestamp(clock.now(), UTC))
    condition = {"type": what, "status": "True", "reason": "Because", "message": "so", "lastTransitionTime": now}
    patch = MergePatch({"status": {"conditions": [condition], **status}})
    await client.patch(PodCertificateRequest, request.metadata.name, patch, namespace=SPACE, subresource="status")


def cluster() -> Cluster:
    return Cluster(controllers=False, nodes=1)


async def test_a_signer_is_asked_once_and_its_certificate_is_in_the_files() -> None:
    async with cluster() as running:
        web = await running_pod(running)
        lookup = Lookup(running.client, web)
        part = {
            "signerName": "e2e.test/one",
            "keyType": "ECDSAP256",
            "credentialBundlePath": "all.pem",
            "keyPath": "key.pem",
            "certificateChainPath": "chain.pem",
            "maxExpirationSeconds": 86400,
            "userAnnotations": {"e2e.test/a": "b"},
        }
        sources = [{"podCertificate": part}]
        volume = from_dict(Volume, {"name": "tls", "projected": {"sources": sources, "defaultMode": 0o440}})
        for _ in range(2):
            with pytest.raises(MountError, match=PENDING):
                await files(volume, Self(web, "", ""), lookup)
        (request,) = await requests(running.client)
        spec = request.spec
        assert (spec.pod_name, spec.pod_uid, spec.node_name) == ("web", web.metadata.uid, web.spec.node_name)
        assert (spec.service_account_name, spec.max_expiration_seconds) == ("default", 86400)
        assert spec.unverified_user_annotations == {"e2e.test/a": "b"}
        assert [owner.uid for owner in request.metadata.owner_references] == [web.metadata.uid]
        await issue(running.client, request)
        made = await files(volume, Self(web, "", ""), lookup)
        key = serialization.load_pem_private_key(made["key.pem"].data, None)
        certificate = x509.load_pem_x509_certificate(made["chain.pem"].data)
        assert certificate.public_key() == key.public_key()
        assert made["all.pem"].data == made["key.pem"].data + made["chain.pem"].data
        assert made["all.pem"].mode == 0o440
        assert lookup.again == pytest.approx(certificate.not_valid_before_utc.timestamp() + 12 * 3600)


@pytest.mark.parametrize(
    ("kind", "bits"),
    [("RSA3072", 3072), ("ECDSAP384", 384), ("ECDSAP521", 521), ("ED25519", 0)],
)
async def test_keys_are_of_the_kind_that_the_pod_wants(kind: str, bits: int) -> None:
    async with cluster() as running:
        certificates = Certificates(running.client, await running_pod(running))
        with pytest.raises(MountError, match=PENDING):
            await certificates.get(PLACE, projection(keyType=kind))
        (request,) = await requests(running.client)
        assert request.spec.max_expiration_seconds == 86400, "a day by default"
        key = x509.load_der_x509_csr(b64decode(request.spec.stub_pkcs10_request)).public_key()
        assert getattr(key, "key_size", 0) == bits


@pytest.mark.parametrize(("what", "said"), [("Denied", "permanently denied"), ("Failed", "permanently failed")])
async def test_who_is_refused_does_not_ask_again(what: str, said: str) -> None:
    async with cluster() as running:
        certificates = Certificates(running.client, await running_pod(running))
        with pytest.raises(MountError, match=PENDING):
            await certificates.get(PLACE, projection())
        await conclude(running.client, (await requests(running.client))[0], what)
        for _ in range(2):
            with pytest.raises(MountError, match=f'{said}: reason="Because" message="so"'):
                await certificates.get(PLACE, projection())
        assert len(await requests(running.client)) == 1


async def test_a_request_that_was_deleted_is_made_again() -> None:
    async with cluster() as running:
        certificates = Certificates(running.client, await running_pod(running))
        with pytest.raises(MountError, match=PENDING):
            await certificates.get(PLACE, projection())
        (first,) = await requests(running.client)
        await running.client.delete(PodCertificateRequest, first.metadata.name, SPACE)
        with pytest.raises(MountError, match="was deleted"):
            await certificates.get(PLACE, projection())
        with pytest.raises(MountError, match=PENDING):
            await certificates.get(PLACE, projection())
        assert [each.metadata.name for each in await requests(running.client)] != [first.metadata.name]


@pytest.mark.parametrize("renewed", [True, False])
async def test_old_credentials_are_good_until_there_are_others(renewed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    async with cluster() as running:
        certificates = Certificates(running.client, await running_pod(running))
        with pytest.raises(MountError, match=PENDING):
            await certificates.get(PLACE, projection())
        (first,) = await requests(running.client)
        await issue(running.client, first)
        old = await certificates.get(PLACE, projection())
        assert await certificates.get(PLACE, projection()) is old
        assert len(await requests(running.client)) == 1
        later = SimpleNamespace(now=lambda: old.again + 1)
        monkeypatch.setattr("konverge.sim.processes.certificates.clock", later)
        assert await certificates.get(PLACE, projection()) is old
        (second,) = (each for each in await requests(running.client) if each.metadata.name != first.metadata.name)
        if renewed:
            await issue(running.client, second)
            assert (await certificates.get(PLACE, projection())).key != old.key
        else:
            await conclude(running.client, second, "Denied")
            assert (await certificates.get(PLACE, projection())).key == old.key
            assert certificates.again == inf
