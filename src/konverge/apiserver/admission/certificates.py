"""Certificates: who may approve, sign and attest for a signer, and what a request may not ask for.

Upstream: plugin/pkg/admission/certificates.
"""

from __future__ import annotations

import base64

from konverge.apiserver.admission.plugin import Kind, Step, Validating, refusal, spec_of
from konverge.apiserver.auth.authorization import Authorization
from konverge.apiserver.auth.rules import Attributes
from konverge.apiserver.auth.well_known import MASTERS
from konverge.apiserver.go.strconv import quote
from konverge.apiserver.request.admission import AdmissionRequest

_GROUP = "certificates.k8s.io"
_REQUESTS = "certificatesigningrequests"
_CLIENT_SIGNER = "kubernetes.io/kube-apiserver-client"


class _SignerCheck(Validating):
    """A plugin that asks whether the user may do something for a signer."""

    def __init__(self, authorization: Authorization) -> None:
        self._authorization = authorization

    def _require(self, request: AdmissionRequest, verb: str, signer: str, action: str) -> None:
        """By the signer's name or for its whole domain. Upstream: IsAuthorizedForSignerName (pkg/certauthorization)."""
        names = (signer, f"{signer.partition('/')[0]}/*")
        all_attrs = (Attributes(verb, _GROUP, "signers", name=name) for name in names)
        if not any(self._authorization.allowed(request.user, attrs) for attrs in all_attrs):
            raise refusal(request, f"user not permitted to {action} signerName {quote(signer)}")


class CertificateApproval(_SignerCheck):
    def validate(self, kind: Kind) -> Step | None:
        return self._check if kind.writes(_GROUP, _REQUESTS, "UPDATE", subresource="approval") else None

    def _check(self, request: AdmissionRequest) -> None:
        self._require(request, "approve", request.before["spec"].get("signerName", ""), "approve requests with")


class CertificateSigning(_SignerCheck):
    def validate(self, kind: Kind) -> Step | None:
        return self._check if kind.writes(_GROUP, _REQUESTS, "UPDATE", subresource="status") else None

    def _check(self, request: AdmissionRequest) -> None:
        new, old = request.new.get("status") or {}, request.before.get("status") or {}
        if any((new.get(part) or None) != (old.get(part) or None) for part in ("certificate", "conditions")):
            self._require(request, "sign", request.before["spec"].get("signerName", ""), "sign requests with")


class ClusterTrustBundleAttest(_SignerCheck):
    def validate(self, kind: Kind) -> Step | None:
        return self._check if kind.writes(_GROUP, "clustertrustbundles", "CREATE", "UPDATE") else None

    def _check(self, request: AdmissionRequest) -> None:
        signer = spec_of(request.new).get("signerName") or ""
        if signer:
            self._require(request, "attest", signer, "attest for")


class CertificateSubjectRestriction(Validating):
    """No user becomes a master by a certificate that was asked for."""

    def validate(self, kind: Kind) -> Step | None:
        return _check_subject if kind.writes(_GROUP, _REQUESTS, "CREATE") else None


def _check_subject(request: AdmissionRequest) -> None:
    spec = spec_of(request.new)
    if spec.get("signerName") == _CLIENT_SIGNER and MASTERS in _organizations(spec.get("request") or ""):
        raise refusal(request, f"use of {_CLIENT_SIGNER} signer with system:masters group is not allowed")


def _organizations(encoded: str) -> list[str]:
    """The organizations that a certificate request names; validation has checked that it can be read."""
    from cryptography.x509 import load_pem_x509_csr
    from cryptography.x509.oid import NameOID

    subject = load_pem_x509_csr(base64.b64decode(encoded)).subject
    return [str(attribute.value) for attribute in subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)]
