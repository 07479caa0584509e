"""ClusterTrustBundle and PodCertificateRequest. Upstream: pkg/apis/certificates/validation."""

from __future__ import annotations

import re
from typing import Any

from konverge.apiserver.kinds.framework.declare import (
    Report,
    as_created,
    creation,
    field,
    required,
    section,
    text,
    unchanged,
    update,
)
from konverge.apiserver.kinds.framework.lifecycle import kept, metadata_kept, selectable, status_cleared, status_kept
from konverge.apiserver.kinds.rules.conditions import conditions
from konverge.apiserver.kinds.rules.names import dns_subdomain, path_segment_name, signer_name, trust_bundle_errors
from konverge.apiserver.strategy import Obj, StatusRules, Strategy

_BLOCK = re.compile(r"-----BEGIN ([A-Z0-9 ]+)-----(.*?)-----END \1-----", re.S)
_LARGEST = 1024 * 1024
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
    if len(pem) > _LARGEST:
        return report.too_long(path, _LARGEST)
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

_SPEC = section(  # upstream: ValidatePodCertificateRequestCreate
    "spec",
    text("signerName", signer_name),
    text("podName", required, dns_subdomain),
    text("podUID", required),
    text("serviceAccountName", required, dns_subdomain),
    text("serviceAccountUID", required),
    text("nodeName", required, dns_subdomain),
    text("nodeUID", required),
)


POD_CERTIFICATE_REQUEST = Strategy(  # upstream: Strategy (podcertificaterequest)
    prepare_create=status_cleared("certificates.k8s.io", "v1", "PodCertificateRequest"),
    prepare_update=status_kept,
    validate_create=creation(_SPEC),
    validate_update=update(kept("spec", "certificates.PodCertificateRequestSpec")),
    status=StatusRules(prepare=metadata_kept, validate=update(section("status", field("conditions", conditions)))),
    unconditional_update=False,
    field_selectors=selectable("spec.signerName", "spec.podName", "spec.nodeName"),
)
