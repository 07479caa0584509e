"""Names of certificate signers and of the trust bundles that belong to them."""

from __future__ import annotations

from typing import Any

from konverge.apiserver.field_errors import quote
from konverge.apiserver.kinds.framework.declare import Report, even_absent
from konverge.objects.names import Format, dns_label_errors, dns_subdomain_errors

_DOMAIN_LIMIT = 253
_NAME_LIMIT = 571


def is_kubernetes_signer(name: str) -> bool:
    host = name.partition("/")[0]
    return host == "kubernetes.io" or host.endswith(".kubernetes.io")


def _labels(segment: str, errors_of: Format, path: str, report: Report) -> None:
    """Report the first bad label only: the errors of the others would read the same."""
    for label in segment.split("."):
        errors = errors_of(label)
        for detail in errors:
            report.invalid(path, segment, f"validating label {quote(label)}: {detail}")
        if errors:
            return


@even_absent
def signer_name(value: Any, path: str, report: Report) -> bool:
    """`example.com/signer-name`."""
    if not value:
        return report.required(path)
    segments = value.split("/")
    if len(segments) != 2:
        detail = "must be a fully qualified domain and path of the form 'example.com/signer-name'"
        return report.invalid(path, value, detail)
    domain, rest = segments
    if len(domain) > _DOMAIN_LIMIT:
        report.too_long(path, _DOMAIN_LIMIT)
    _labels(domain, dns_label_errors, path, report)
    if "." not in domain:
        report.invalid(path, domain, "should be a domain with at least two segments separated by dots")
    _labels(rest, dns_subdomain_errors, path, report)
    return len(value) <= _NAME_LIMIT or report.too_long(path, _NAME_LIMIT)


def trust_bundle_errors(name: str, signer: str) -> list[str]:
    """A ClusterTrustBundle of a signer has the signer's name before its own."""
    if not signer:
        if ":" in name:
            return ['ClusterTrustBundle without signer name must not have ":" in its name']
        return dns_subdomain_errors(name)
    prefix = signer.replace("/", ":") + ":"
    if not name.startswith(prefix):
        return [f"ClusterTrustBundle for signerName {signer} must be named with prefix {prefix}"]
    return dns_subdomain_errors(name.removeprefix(prefix))
