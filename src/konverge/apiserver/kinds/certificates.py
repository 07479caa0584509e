"""certificates.k8s.io: CertificateSigningRequest with /approval and /status, ClusterTrustBundle, PodCertificateRequest.

The spec of a CertificateSigningRequest names the requester, and the server writes it once. /approval approves, /status
issues; each keeps the fields of the other.

Upstream: pkg/registry/certificates/certificates/strategy.go, pkg/apis/certificates/validation.
"""

from __future__ import annotations

import base64
import binascii
import re
from typing import Any

from konverge.apiserver.kinds.framework.declarative_validation import Declared
from konverge.apiserver.kinds.framework.declare import (
    Report,
    Transition,
    as_created,
    creation,
    distinct,
    field,
    items,
    one_of,
    required,
    section,
    text,
    unchanged,
    update,
)
from konverge.apiserver.kinds.framework.lifecycle import kept, metadata_kept, prepared, selectable
from konverge.apiserver.kinds.rules.conditions import conditions
from konverge.apiserver.kinds.rules.defaults import fill_unset, section_of
from konverge.apiserver.kinds.rules.names import dns_subdomain, path_segment_name, signer_name, trust_bundle_errors
from konverge.apiserver.kinds.rules.numbers import at_least
from konverge.apiserver.meta.system import timestamp
from konverge.apiserver.strategy import Context, Obj, StatusRules, Strategy

# --- CertificateSigningRequest

USAGES = (
    "any",
    "cert sign",
    "client auth",
    "code signing",
    "content commitment",
    "crl sign",
    "data encipherment",
    "decipher only",
    "digital signature",
    "email protection",
    "encipher only",
    "ipsec end system",
    "ipsec tunnel",
    "ipsec user",
    "key agreement",
    "key encipherment",
    "microsoft sgc",
    "netscape sgc",
    "ocsp signing",
    "s/mime",
    "server auth",
    "signing",
    "timestamping",
)
_DECISIONS = ("Approved", "Denied")
_FINAL = (*_DECISIONS, "Failed")
_STATUSES = ("False", "True", "Unknown")


def _prepare_create(obj: Obj, context: Context) -> None:  # upstream: csrStrategy.PrepareForCreate
    """The requester is the caller, as the server knows it."""
    spec = obj["spec"]
    known = {
        "username": context.username,
        "uid": context.user_uid,
        "groups": list(context.groups),
        "extra": {name: list(values) for name, values in context.user_extra.items()},
    }
    for name, value in known.items():
        spec.pop(name, None)
        if value:
            spec[name] = value
    obj["status"] = {}


def _prepare_update(obj: Obj, old: Obj, context: Context) -> None:  # upstream: csrStrategy.PrepareForUpdate
    obj["spec"], obj["status"] = old["spec"], old.get("status") or {}


def _conditions(obj: Obj) -> list[Obj]:
    return (obj.get("status") or {}).get("conditions") or []


def _of_type(obj: Obj, kind: str) -> list[Obj]:
    return [condition for condition in _conditions(obj) if condition.get("type") == kind]


def _add_times(obj: Obj, old: Obj) -> None:  # upstream: populateConditionTimestamps
    now = timestamp()
    for condition in _conditions(obj):
        before = [earlier for earlier in _of_type(old, condition.get("type", "")) if _same_status(earlier, condition)]
        since = next((earlier["lastTransitionTime"] for earlier in before if earlier.get("lastTransitionTime")), now)
        condition["lastUpdateTime"] = condition.get("lastUpdateTime") or now
        condition["lastTransitionTime"] = condition.get("lastTransitionTime") or since


def _same_status(condition: Obj, other: Obj) -> bool:
    return condition.get("status") == other.get("status")


# upstream: csrStatusStrategy.PrepareForUpdate, preserveConditionInstances
def _prepare_status(obj: Obj, old: Obj, context: Context) -> None:
    """Decisions stay as they are: the signer may have an old copy of them."""
    obj["spec"] = old["spec"]
    conditions = _conditions(obj)
    for kind in _DECISIONS:
        mine, theirs = _of_type(obj, kind), _of_type(old, kind)
        if len(mine) == len(theirs):
            for condition, kept in zip(mine, theirs, strict=True):
                conditions[conditions.index(condition)] = dict(kept)
    _add_times(obj, old)


def _prepare_approval(obj: Obj, old: Obj, context: Context) -> None:  # upstream: csrApprovalStrategy.PrepareForUpdate
    _add_times(obj, old)
    conditions = _conditions(obj)
    obj["spec"], obj["status"] = old["spec"], dict(old.get("status") or {})
    if conditions:
        obj["status"]["conditions"] = conditions
    else:
        obj["status"].pop("conditions", None)


def _decoded(value: str) -> bytes:
    try:
        return base64.b64decode(value, validate=True)
    except binascii.Error:
        return b""


def _request_error(pem: bytes) -> str:  # upstream: ParseCSR, validateCSR
    """What is wrong with a request for a certificate; `cryptography` is only loaded when there is one."""
    if b"-----BEGIN CERTIFICATE REQUEST-----" not in pem:
        return "PEM block type must be CERTIFICATE REQUEST"
    from cryptography import x509
    from cryptography.exceptions import UnsupportedAlgorithm

    try:
        request = x509.load_pem_x509_csr(pem)
        return "" if request.is_signature_valid or _signed_with_sha1(request) else "x509: signature check failed"
    except UnsupportedAlgorithm:
        return ""
    except ValueError as error:
        return f"asn1: structure error: {error}"


def _signed_with_sha1(request: Any) -> bool:
    """Signed with SHA-1, which `cryptography` refuses here and the real server accepts in a request."""
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey

    key, digest = request.public_key(), request.signature_hash_algorithm
    if not isinstance(key, RSAPublicKey) or digest is None or digest.name != "sha1":
        return False
    try:
        key.verify(request.signature, request.tbs_certrequest_bytes, PKCS1v15(), digest)
    except InvalidSignature:
        return False
    return True


def _request(spec: Any, path: str, report: Report) -> bool:  # upstream: validateCertificateSigningRequest
    value = spec.get("request") or ""
    error = _request_error(_decoded(value))
    return not error or report.invalid(f"{path}.request", spec.get("request"), error)


def _signer(spec: Any, path: str, report: Report) -> bool:  # upstream: validateCertificateSigningRequest
    name = spec.get("signerName") or ""
    if name == "kubernetes.io/legacy-unknown":
        detail = "the legacy signerName is not allowed via this API version"
        return report.invalid(f"{path}.signerName", name, detail)
    return signer_name(name, f"{path}.signerName", report)


def _usages(value: Any, path: str, report: Report) -> bool:  # upstream: validateCertificateSigningRequest
    items(one_of(*USAGES))(value, path, report)
    return items(distinct)(value, path, report)


_EXPIRATION = "may not specify a duration less than 600 seconds (10 minutes)"
_SPEC = section(  # upstream: validateCertificateSigningRequest
    "spec",
    _request,
    field("usages", required, _usages),
    _signer,
    field("expirationSeconds", at_least(600, _EXPIRATION)),
)


def _condition(value: Any, path: str, report: Report) -> bool:  # upstream: validateConditions
    kind, status = value.get("type") or "", value.get("status") or ""
    if not kind:
        report.required(f"{path}.type")
    allowed = ("True",) if kind in _FINAL else _STATUSES
    if not status:
        report.required(f"{path}.status")
    elif status not in allowed:
        report.not_supported(f"{path}.status", status, allowed)
    distinct(kind, f"{path}.type", report)
    return True


_CONDITIONS = section("status", field("conditions", items(_condition)))


def _certificate_error(pem: bytes) -> str:  # upstream: validateCertificate
    from cryptography import x509

    blocks = [line[11:-5] for line in pem.decode("latin-1").splitlines() if line.startswith("-----BEGIN ")]
    for block in blocks:
        if block != "CERTIFICATE":
            return f'only CERTIFICATE PEM blocks are allowed, found "{block}"'
    if not blocks:
        return "must contain at least one CERTIFICATE PEM block"
    try:
        x509.load_pem_x509_certificates(pem)
    except ValueError as error:
        return f"x509: malformed certificate: {error}"
    return ""


# upstream: validateCertificateSigningRequest
def _new_certificate(new: Obj, old: Obj, path: str, report: Report) -> bool:
    certificate = (new.get("status") or {}).get("certificate") or ""
    if not certificate or certificate == ((old.get("status") or {}).get("certificate") or ""):
        return True
    error = _certificate_error(_decoded(certificate))
    return not error or report.invalid("status.certificate", "<certificate data>", error)


# upstream: validateCertificateSigningRequestUpdate
def _nothing_removed(new: Obj, old: Obj, path: str, report: Report) -> bool:
    for kind in _FINAL:
        if len(_of_type(new, kind)) < len(_of_type(old, kind)):
            report.forbidden("status.conditions", f'updates may not remove a condition of type "{kind}"')
    return True


# upstream: validateCertificateSigningRequestUpdate
def _nothing_decided(new: Obj, old: Obj, path: str, report: Report) -> bool:
    for kind in _DECISIONS:
        if len(_of_type(new, kind)) > len(_of_type(old, kind)):
            report.forbidden("status.conditions", f'updates may not add a condition of type "{kind}"')
    return True


def _certificate_kept(*, may_set: bool) -> Transition:  # upstream: validateCertificateSigningRequestUpdate
    def check(new: Obj, old: Obj, path: str, report: Report) -> bool:
        before = (old.get("status") or {}).get("certificate") or ""
        if ((new.get("status") or {}).get("certificate") or "") == before:
            return True
        if not may_set:
            return report.forbidden("status.certificate", "updates may not set certificate content")
        return not before or report.forbidden(
            "status.certificate", "updates may not modify existing certificate content"
        )

    return check


_DECLARED = Declared("certificates/v1.CertificateSigningRequest")
_ANY_STATE = ((_SPEC, _CONDITIONS), _new_certificate, _nothing_removed)

REQUEST = Strategy(  # upstream: csrStrategy
    prepare_create=_prepare_create,
    prepare_update=_prepare_update,
    validate_create=creation(_SPEC, _CONDITIONS),
    validate_update=update(*_ANY_STATE, _nothing_decided, _certificate_kept(may_set=False)),
    status=StatusRules(
        prepare=_prepare_status,
        validate=update(*_ANY_STATE, _nothing_decided, _certificate_kept(may_set=True), _DECLARED.updated),
    ),
    subresources={
        "approval": StatusRules(
            prepare=_prepare_approval, validate=update(*_ANY_STATE, _certificate_kept(may_set=False), _DECLARED.updated)
        )
    },
    name_check=path_segment_name,
    field_selectors=selectable("spec.signerName"),
)


# --- ClusterTrustBundle and PodCertificateRequest

_BLOCK = re.compile(r"-----BEGIN ([A-Z0-9 ]+)-----(.*?)-----END \1-----", re.S)
_LARGEST_BUNDLE = 1024 * 1024
_OMITTED = "<value omitted>"


def _anchor_error(kind: str, block: str) -> str:  # upstream: validateTrustBundle
    """What is wrong with one trust anchor; `cryptography` is only loaded when there is one."""
    from cryptography import x509

    if kind != "CERTIFICATE":
        return f"has bad block type: {kind}"
    try:
        certificate = x509.load_pem_x509_certificate(block.encode())
        constraints = certificate.extensions.get_extension_for_class(x509.BasicConstraints).value
    except x509.ExtensionNotFound:
        return "does not have the CA bit set"
    except ValueError:
        return "does not parse as X.509"
    return "" if constraints.ca else "does not have the CA bit set"


def _anchors(pem: str, path: str, report: Report) -> bool:  # upstream: validateTrustBundle
    """Certificates of authorities, each once. They are long, so messages do not show them."""
    if len(pem) > _LARGEST_BUNDLE:
        return report.too_long(path, _LARGEST_BUNDLE)
    before = len(report.errors)
    places: dict[str, list[int]] = {}
    for index, match in enumerate(_BLOCK.finditer(pem)):
        error = _anchor_error(match[1], match[0])
        if error:
            report.invalid(path, _OMITTED, f"entry {index} {error}")
        places.setdefault("".join(match[2].split()), []).append(index)
    if len(report.errors) > before:
        return False
    for indices in places.values():
        if len(indices) > 1:
            shown = " ".join(map(str, indices))
            report.invalid(path, _OMITTED, f"duplicate trust anchor (indices [{shown}])")
    return bool(places) or report.invalid(path, _OMITTED, "at least one trust anchor must be provided")


def _named(obj: Any, path: str, report: Report) -> bool:  # upstream: ValidateClusterTrustBundle
    name, signer = obj["metadata"].get("name") or "", obj["spec"].get("signerName") or ""
    for error in trust_bundle_errors(name, signer):
        report.invalid("metadata.name", name, error)
    return not signer or signer_name(signer, "spec.signerName", report)


def _bundle(obj: Any, path: str, report: Report) -> bool:  # upstream: ValidateClusterTrustBundle
    return _anchors(obj["spec"].get("trustBundle") or "", "spec.trustBundle", report)


# upstream: ValidateClusterTrustBundleUpdate
def _changed_bundle(new: Obj, old: Obj, path: str, report: Report) -> bool:
    """What was stored stays valid."""
    return new["spec"].get("trustBundle") == old["spec"].get("trustBundle") or _bundle(new, path, report)


TRUST_BUNDLE = Strategy(  # upstream: strategy (clustertrustbundle)
    validate_create=creation(_named, _bundle),
    validate_update=update(as_created(_named), _changed_bundle, unchanged("spec.signerName")),
    name_check=path_segment_name,
    unconditional_update=False,
    field_selectors=selectable("spec.signerName"),
)

_POD_REQUEST = section(  # upstream: ValidatePodCertificateRequestCreate
    "spec",
    text("signerName", signer_name),
    text("podName", required, dns_subdomain),
    text("podUID", required),
    text("serviceAccountName", required, dns_subdomain),
    text("serviceAccountUID", required),
    text("nodeName", required, dns_subdomain),
    text("nodeUID", required),
)


def _default_pod_request(obj: Obj) -> None:  # upstream: SetObjectDefaults_PodCertificateRequest
    fill_unset(section_of(obj, "spec"), {"maxExpirationSeconds": 86400})


POD_CERTIFICATE_REQUEST = Strategy(  # upstream: Strategy (podcertificaterequest)
    defaults=_default_pod_request,
    **prepared(status=("certificates.k8s.io", "v1", "PodCertificateRequest")),
    validate_create=creation(_POD_REQUEST),
    validate_update=update(kept("spec", "certificates.PodCertificateRequestSpec")),
    status=StatusRules(prepare=metadata_kept, validate=update(section("status", field("conditions", conditions)))),
    unconditional_update=False,
    field_selectors=selectable("spec.signerName", "spec.podName", "spec.nodeName"),
)

STRATEGIES = {
    "CertificateSigningRequest": REQUEST,
    "ClusterTrustBundle": TRUST_BUNDLE,
    "PodCertificateRequest": POD_CERTIFICATE_REQUEST,
}
