"""Approved requests for certificates are signed; what a signer does not allow fails."""

from __future__ import annotations

from base64 import b64decode, b64encode
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from konverge import kube
from konverge.apiserver import certificates
from konverge.client import Client, MergePatch
from konverge.kube import csrsigning
from konverge.objects.codec import from_dict
from konverge.objects.kinds.certificates_v1 import CertificateSigningRequest, CertificateSigningRequestCondition
from konverge.sim.cluster import Cluster

pytestmark = [pytest.mark.virtual, pytest.mark.spec("R-43")]
kube.all_controllers()  # imports them all, which a test's loop need not wait for
CLIENT = "kubernetes.io/kube-apiserver-client"
KUBELET = "kubernetes.io/kube-apiserver-client-kubelet"
SERVING = "kubernetes.io/kubelet-serving"


def request(
    signer: str, *usages: str, name: str = "ada", group: str = "", dns: str = "", seconds: int | None = None
) -> dict[str, Any]:
    subject = [x509.NameAttribute(NameOID.COMMON_NAME, name)]
    if group:
        subject.append(x509.NameAttribute(NameOID.ORGANIZATION_NAME, group))
    builder = x509.CertificateSigningRequestBuilder().subject_name(x509.Name(subject))
    if dns:
        builder = builder.add_extension(x509.SubjectAlternativeName([x509.DNSName(dns)]), critical=False)
    pem = builder.sign(ec.generate_private_key(ec.SECP256R1()), hashes.SHA256()).public_bytes(
        serialization.Encoding.PEM
    )
    spec: dict[str, Any] = {"signerName": signer, "usages": list(usages), "request": b64encode(pem).decode()}
    spec |= {"expirationSeconds": seconds} if seconds is not None else {}
    kind = {"apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest"}
    return {**kind, "metadata": {"name": "csr"}, "spec": spec}


async def approved(cluster: Cluster, body: dict[str, Any], verdict: str = "Approved") -> CertificateSigningRequest:
    client: Client = cluster.client
    await client.create(body)
    await cluster.settle()
    assert (await client.get(CertificateSigningRequest, "csr")).status.certificate is None  # not before
    condition = {"type": verdict, "status": "True", "reason": "ByHand"}
    change = MergePatch({"status": {"conditions": [condition]}})
    await client.patch(CertificateSigningRequest, "csr", change, subresource="approval")
    await cluster.settle()
    return await client.get(CertificateSigningRequest, "csr")


async def test_an_approved_request_is_signed_by_the_authority_of_the_server() -> None:
    own = certificates.make(("localhost",))
    async with Cluster(certificates=own, controllers=["csr-signing"]) as cluster:
        body = request(CLIENT, "client auth", "digital signature", group="team", dns="ada.example.com", seconds=3600)
        csr = await approved(cluster, body)
    assert [item.type for item in csr.status.conditions] == ["Approved"]
    assert csr.status.certificate is not None
    signed = x509.load_pem_x509_certificate(b64decode(csr.status.certificate))
    signed.verify_directly_issued_by(x509.load_pem_x509_certificate(own.authority))
    assert signed.subject.rfc4514_string() == "O=team,CN=ada"
    assert signed.not_valid_after_utc - signed.not_valid_before_utc == timedelta(minutes=65)
    purposes = signed.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert [purpose.dotted_string for purpose in purposes] == ["1.3.6.1.5.5.7.3.2"]
    assert signed.extensions.get_extension_for_class(x509.BasicConstraints).value.ca is False
    names = signed.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["ada.example.com"]


NODE = {"name": "system:node:a", "group": "system:nodes"}
USAGES = ("digital signature", "key encipherment")


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (request(CLIENT, "client auth", "server auth"), "invalid usage for client certificate: server auth"),
        (request(CLIENT, "digital signature"), "missing required usage for client certificate: client auth"),
        (request(KUBELET, "client auth", *USAGES, name="system:node:a"), "subject organization is not system:nodes"),
        (
            request(KUBELET, "client auth", *USAGES, name="a", group="system:nodes"),
            "subject common name does not begin with system:node:",
        ),
        (request(KUBELET, "client auth", *USAGES, dns="a", **NODE), "DNS subjectAltNames are not allowed"),
        (
            request(KUBELET, "client auth", **NODE),
            "usages did not match [client auth digital signature key encipherment]",
        ),
        (request(SERVING, "server auth", *USAGES, **NODE), "DNS or IP subjectAltName is required"),
    ],
)
async def test_what_a_signer_does_not_allow(body: dict[str, Any], message: str) -> None:
    async with Cluster(controllers=["csr-signing"]) as cluster:
        csr = await approved(cluster, body)
    assert csr.status.certificate is None
    failed = csr.status.conditions[-1]
    assert (failed.type, failed.reason, failed.message) == ("Failed", "SignerValidationFailure", message)


@pytest.mark.parametrize(
    "body",
    [
        request(KUBELET, "client auth", *USAGES, **NODE),
        request(SERVING, "server auth", "digital signature", dns="a", **NODE),
    ],
    ids=["kubelet", "serving"],
)
async def test_what_signers_allow(body: dict[str, Any]) -> None:
    async with Cluster(controllers=["csr-signing"]) as cluster:
        csr = await approved(cluster, body)
    assert csr.status.certificate is not None


async def test_the_rest_is_left_alone() -> None:
    async with Cluster(controllers=["csr-signing"]) as cluster:
        denied = await approved(cluster, request(CLIENT, "client auth"), "Denied")
        assert (denied.status.certificate, len(denied.status.conditions)) == (None, 1)
        await cluster.client.delete(CertificateSigningRequest, "csr")
        foreign = await approved(cluster, request("example.com/mine", "client auth"))
        assert (foreign.status.certificate, len(foreign.status.conditions)) == (None, 1)


@pytest.mark.parametrize(
    ("conditions", "signed"),
    [
        ([], False),
        ([("Approved", "False")], False),
        ([("Approved", "True")], True),
        ([("Approved", "True"), ("Denied", "False")], True),
        ([("Approved", "True"), ("Denied", "True")], False),
        ([("Approved", "True"), ("Failed", "True")], False),
    ],
)
async def test_only_conditions_that_are_true_count(
    conditions: list[tuple[str, str]], signed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Today the server takes no others; what an older one stored is still there."""
    saved: list[str | None] = []

    async def save_status() -> None:
        saved.append(asked.status.certificate)

    monkeypatch.setattr(csrsigning, "sign", lambda *arguments: b"signed")
    asked = from_dict(CertificateSigningRequest, request(CLIENT, "client auth"))
    asked.status.conditions = [
        CertificateSigningRequestCondition(type=kind, status=status) for kind, status in conditions
    ]
    ctx: Any = SimpleNamespace(obj=asked, save_status=save_status)
    await csrsigning.SigningReconciler(lambda: (b"", b"")).reconcile(ctx)
    assert saved == ([b64encode(b"signed").decode()] if signed else [])
