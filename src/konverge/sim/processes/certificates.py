"""Certificates in the volumes of pods: PEM as kubelets write it, and credentials that a signer is asked for.

Upstream: pkg/kubelet/podcertificate, normalizeTrustAnchors (pkg/kubelet/clustertrustbundle).
"""

from __future__ import annotations

import asyncio
import re
from base64 import b64encode
from collections.abc import Iterable
from dataclasses import dataclass, replace
from math import inf
from typing import Any

from konverge import clock
from konverge.apiserver.go.strconv import quote
from konverge.client import Client, NotFound
from konverge.objects.codec import from_dict
from konverge.objects.kinds.certificates_v1 import PodCertificateRequest
from konverge.objects.kinds.core_v1 import Node, Pod, PodCertificateProjection, ServiceAccount
from konverge.objects.times import parse_time
from konverge.sim.processes.disk import MountError

Place = tuple[str, int]
"""A source of a projected volume: the volume's name, and which of its sources."""

_BEGIN, _END = "-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----"
_CERTIFICATE = re.compile(f"{_BEGIN}\\s*(?:[^\\n:]+:[^\\n]*\\n)*(.*?){_END}", re.DOTALL)


def bodies(text: str) -> list[str]:
    """The certificates of a PEM text, without headers and what stands around them."""
    return ["".join(body.split()) for body in _CERTIFICATE.findall(text)]


def pem(certificates: Iterable[str]) -> bytes:
    return "".join(f"{_BEGIN}\n{_wrapped(body)}{_END}\n" for body in certificates).encode()


def _wrapped(body: str) -> str:
    return "".join(f"{body[start : start + 64]}\n" for start in range(0, len(body), 64))


@dataclass(frozen=True, slots=True)
class Credentials:
    key: bytes
    chain: bytes
    again: float
    """When others should be asked for."""


@dataclass(frozen=True, slots=True)
class _Asked:
    request: str
    key: bytes


class _Refused(MountError):
    """The signer will not issue it."""


class Certificates:
    """The credentials of one pod. Keys are made here, and never leave this process but for the pod's volume."""

    def __init__(self, client: Client, pod: Pod) -> None:
        self._client = client
        self._pod = pod
        self._asked: dict[Place, _Asked] = {}
        self._issued: dict[Place, Credentials] = {}
        self._one_at_a_time = asyncio.Lock()

    @property
    def again(self) -> float:
        """When the first of them should be renewed."""
        return min((known.again for known in self._issued.values()), default=inf)

    async def get(self, place: Place, part: PodCertificateProjection) -> Credentials:
        """Raises MountError while there are none. Those that grow old are good until there are others."""
        async with self._one_at_a_time:
            known = self._issued.get(place)
            if known is not None and clock.now() < known.again:
                return known
            try:
                self._issued[place] = await self._ask(place, part)
            except MountError as error:
                if known is None:
                    raise
                if isinstance(error, _Refused):
                    self._issued[place] = replace(known, again=inf)
            return self._issued[place]

    async def _ask(self, place: Place, part: PodCertificateProjection) -> Credentials:
        asked = self._asked.get(place)
        if asked is None:
            asked = self._asked[place] = await self._create(part)
        try:
            found = await self._client.get(PodCertificateRequest, asked.request, self._pod.metadata.namespace)
        except NotFound:
            del self._asked[place]
            raise MountError(f"PodCertificateRequest {asked.request} was deleted") from None
        for condition in found.status.conditions:
            why = f"reason={quote(condition.reason)} message={quote(condition.message)}"
            match condition.type:
                case "Denied":
                    raise _Refused(f"PodCertificateRequest was permanently denied: {why}")
                case "Failed":
                    raise _Refused(f"PodCertificateRequest was permanently failed: {why}")
                case "Issued":
                    del self._asked[place]
                    again = parse_time(found.status.begin_refresh_at or "").timestamp()
                    return Credentials(asked.key, pem(bodies(found.status.certificate_chain or "")), again)
        raise MountError("credential bundle is not issued yet")

    async def _create(self, part: PodCertificateProjection) -> _Asked:
        meta, account_name = self._pod.metadata, self._pod.spec.service_account_name or "default"
        account = await self._client.get(ServiceAccount, account_name, meta.namespace)
        node = await self._client.get(Node, self._pod.spec.node_name or "")
        key, proof = await asyncio.to_thread(_new_key, part.key_type)
        owner = {"apiVersion": "v1", "kind": "Pod", "name": meta.name, "uid": meta.uid}
        spec: dict[str, Any] = {
            "signerName": part.signer_name,
            "podName": meta.name,
            "podUID": meta.uid,
            "serviceAccountName": account_name,
            "serviceAccountUID": account.metadata.uid,
            "nodeName": node.metadata.name,
            "nodeUID": node.metadata.uid,
            "maxExpirationSeconds": part.max_expiration_seconds,
            "stubPKCS10Request": b64encode(proof).decode(),
            "unverifiedUserAnnotations": part.user_annotations,
        }
        metadata = {"generateName": "req-", "namespace": meta.namespace, "ownerReferences": [owner]}
        made = await self._client.create(from_dict(PodCertificateRequest, {"metadata": metadata, "spec": spec}))
        return _Asked(made.metadata.name, key)


def _new_key(kind: str) -> tuple[bytes, bytes]:
    """A private key as PEM, and a request for a certificate (PKCS #10, DER) that says nothing but proves the key."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

    key: Any
    algorithm: hashes.SHA256 | hashes.SHA384 | hashes.SHA512 | None
    match kind:
        case "RSA3072" | "RSA4096":
            key, algorithm = rsa.generate_private_key(65537, int(kind[3:])), hashes.SHA256()
        case "ECDSAP256":
            key, algorithm = ec.generate_private_key(ec.SECP256R1()), hashes.SHA256()
        case "ECDSAP384":
            key, algorithm = ec.generate_private_key(ec.SECP384R1()), hashes.SHA384()
        case "ECDSAP521":
            key, algorithm = ec.generate_private_key(ec.SECP521R1()), hashes.SHA512()
        case "ED25519":
            key, algorithm = ed25519.Ed25519PrivateKey.generate(), None
        case _:
            raise MountError(f"unknown key type {quote(kind)}")
    request = x509.CertificateSigningRequestBuilder().subject_name(x509.Name([])).sign(key, algorithm)
    encoding, form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    text: bytes = key.private_bytes(encoding, form, serialization.NoEncryption())
    return text, request.public_bytes(serialization.Encoding.DER)
