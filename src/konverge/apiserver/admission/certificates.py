"""Certificates: who may approve, sign and attest for a signer, and what a request may not ask for."""

from __future__ import annotations

import base64

from konverge.apiserver.admission.plugin import Kind, Step, Validating, refusal, spec_of
from konverge.apiserver.auth.authorization import Authorization
from konverge.apiserver.auth.rules import Ask
from konverge.apiserver.auth.well_known import MASTERS
from konverge.apiserver.field_errors import quote
from konverge.apiserver.request.admission import AdmissionRequest
from konverge.apiserver.request.user import User

_GROUP = "certificates.k8s.io"
_REQUESTS = "certificatesigningrequests"
_CLIENT_SIGNER = "kubernetes.io/kube-apiserver-client"


def may(authorization: Authorization, user: User, verb: str, signer: str) -> bool:
    """Whether a user may do this for a signer, by its name or for its whole domain."""
    domain = signer.partition("/")[0]
    return any(authorization.allowed(user, Ask(verb, _GROUP, "signers", name=name)) for name in (signer, f"{domain}/*"))


class CertificateApproval(Validating):
    def __init__(self, authorization: Authorization) -> None:
        self._authorization = authorization

    def validate(self, kind: Kind) -> Step | None:
        wanted = (_GROUP, _REQUESTS, "approval", "UPDATE")
        return self._check if (kind.group, kind.plural, kind.subresource, kind.operation) == wanted else None

    def _check(self, request: AdmissionRequest) -> None:
        assert request.old is not None
        signer = request.old["spec"].get("signerName", "")
        if not may(self._authorization, request.user, "approve", signer):
            raise refusal(request, f"user not permitted to approve requests with signerName {quote(signer)}")


class CertificateSigning(Validating):
    def __init__(self, authorization: Authorization) -> None:
        self._authorization = authorization

    def validate(self, kind: Kind) -> Step | None:
        wanted = (_GROUP, _REQUESTS, "status", "UPDATE")
        return self._check if (kind.group, kind.plural, kind.subresource, kind.operation) == wanted else None

    def _check(self, request: AdmissionRequest) -> None:
        assert request.obj is not None
        assert request.old is not None
        new, old = request.obj.get("status") or {}, request.old.get("status") or {}
        if all((new.get(part) or None) == (old.get(part) or None) for part in ("certificate", "conditions")):
            return
        signer = request.old["spec"].get("signerName", "")
        if not may(self._authorization, request.user, "sign", signer):
            raise refusal(request, f"user not permitted to sign requests with signerName {quote(signer)}")


class ClusterTrustBundleAttest(Validating):
    def __init__(self, authorization: Authorization) -> None:
        self._authorization = authorization

    def validate(self, kind: Kind) -> Step | None:
        return self._check if kind.writes(_GROUP, "clustertrustbundles", "CREATE", "UPDATE") else None

    def _check(self, request: AdmissionRequest) -> None:
        assert request.obj is not None
        signer = spec_of(request.obj).get("signerName") or ""
        if signer and not may(self._authorization, request.user, "attest", signer):
            raise refusal(request, f"user not permitted to attest for signerName {quote(signer)}")


class CertificateSubjectRestriction(Validating):
    """Nobody becomes a master by a certificate that was asked for."""

    def validate(self, kind: Kind) -> Step | None:
        return _check_subject if kind.writes(_GROUP, _REQUESTS, "CREATE") else None


def _check_subject(request: AdmissionRequest) -> None:
    assert request.obj is not None
    spec = spec_of(request.obj)
    if spec.get("signerName") == _CLIENT_SIGNER and MASTERS in _organizations(spec.get("request") or ""):
        raise refusal(request, f"use of {_CLIENT_SIGNER} signer with system:masters group is not allowed")


def _organizations(encoded: str) -> list[str]:
    """The organizations that a certificate request names; validation has seen that it is one."""
    from cryptography.x509 import load_pem_x509_csr
    from cryptography.x509.oid import NameOID

    parsed = load_pem_x509_csr(base64.b64decode(encoded))
    return [str(found.value) for found in parsed.subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)]
