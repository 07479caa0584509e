"""The formats of names (`konverge.objects.names`) as rules of fields and as checks of an object's own name.

`field("name", required, dns_label)` reports one `Invalid value` per message; `Strategy(name_check=…)` takes
`object_name(dns_label_errors)` for metadata.name and generateName.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from konverge.apiserver.field_errors import FieldError, invalid, too_long
from konverge.apiserver.go.strconv import quote
from konverge.apiserver.kinds.framework.declare import Report, Rule, even_absent, field, section
from konverge.objects.names import (
    Format,
    config_key_errors,
    dns_1035_errors,
    dns_label_errors,
    dns_subdomain_errors,
    dns_subdomain_underscore_errors,
    env_name_errors,
    label_value_errors,
    path_segment_errors,
    path_segment_prefix_errors,
    port_name_errors,
    qualified_name_errors,
    regex_error,
    wildcard_errors,
)


def object_name(errors_of: Format) -> Callable[[str, bool], Sequence[str]]:
    """`Strategy.name_check`: a prefix for generateName may end with a dash (upstream: maskTrailingDash)."""

    def check(name: str, is_prefix: bool) -> Sequence[str]:
        if is_prefix and len(name) > 1 and name.endswith("-"):
            name = name[:-2] + "a"
        return errors_of(name)

    return check


def path_segment_name(name: str, is_prefix: bool) -> Sequence[str]:
    """`Strategy.name_check` of kinds whose names need only fit into a path (upstream: path.ValidatePathSegmentName)."""
    return path_segment_prefix_errors(name) if is_prefix else path_segment_errors(name)


def format_rule(errors_of: Format) -> Rule:
    """A rule that reports every error of a format."""

    def check(value: Any, path: str, report: Report) -> bool:
        errors = errors_of(value)
        if not errors:
            return True
        for detail in errors:
            report.invalid(path, value, detail)
        return False

    return check


dns_label = format_rule(dns_label_errors)
dns_subdomain = format_rule(dns_subdomain_errors)
dns_subdomain_underscore = format_rule(dns_subdomain_underscore_errors)
dns_1035 = format_rule(dns_1035_errors)
wildcard_subdomain = format_rule(wildcard_errors)
qualified_name = format_rule(qualified_name_errors)
label_value = format_rule(label_value_errors)
config_key = format_rule(config_key_errors)
env_name = format_rule(env_name_errors)
port_name = format_rule(port_name_errors)
path_segment = format_rule(path_segment_errors)


def label_errors(value: Mapping[str, str] | None, path: str) -> list[FieldError]:  # upstream: ValidateLabels
    """Of a map of labels; keys and values are both reported at the path of the map."""
    errors: list[FieldError] = []
    for key, text in sorted(value.items()) if value else ():
        if messages := qualified_name_errors(key):
            errors += [invalid(path, key, message) for message in messages]
        if messages := label_value_errors(text):
            errors += [invalid(path, text, message) for message in messages]
    return errors


def labels(value: Any, path: str, report: Report) -> bool:
    report.errors += label_errors(value, path)
    return True


def map_size(value: Mapping[str, str]) -> int:
    """In bytes, keys and values together."""
    return sum(len(key.encode()) + len(text.encode()) for key, text in value.items())


ANNOTATIONS_LIMIT = 256 * 1024  # upstream: TotalAnnotationSizeLimitB


def annotation_errors(value: Mapping[str, str] | None, path: str) -> list[FieldError]:  # upstream: ValidateAnnotations
    """Keys are qualified names in any case; all together are limited in size."""
    errors: list[FieldError] = []
    for key in sorted(value or ()):
        errors += [invalid(path, key, message) for message in qualified_name_errors(key.lower())]
    if value and map_size(value) > ANNOTATIONS_LIMIT:
        errors.append(too_long(path, ANNOTATIONS_LIMIT))
    return errors


def annotation_map(value: Any, path: str, report: Report) -> bool:
    report.errors += annotation_errors(value, path)
    return True


_PATH = r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+"
_is_path = re.compile(_PATH).fullmatch


@even_absent
def domain_path(value: Any, path: str, report: Report) -> bool:  # upstream: IsDomainPrefixedPath
    """`example.com/controller`."""
    if not value:
        return report.required(path)
    domain, _, rest = value.partition("/")
    if not domain or not rest:
        return report.invalid(path, value, 'must be a domain-prefixed path (such as "acme.io/foo")')
    for error in dns_subdomain_errors(domain):
        report.invalid(path, domain, error)
    return bool(_is_path(rest)) or report.invalid(path, rest, regex_error("Invalid path", _PATH))


@even_absent
def three_segments(value: Any, path: str, report: Report) -> bool:  # upstream: IsFullyQualifiedName
    """The name of a webhook: `check.example.com`."""
    return _segments(value, path, report, 3, "three")


@even_absent
def domain_name(value: Any, path: str, report: Report) -> bool:  # upstream: IsFullyQualifiedDomainName
    """A fully qualified domain name; a dot may end it."""
    name = value.removesuffix(".") if value else ""
    if not _segments(name, path, report, 2, "two"):
        return False
    for label in name.split("."):
        errors = dns_label_errors(label)
        if errors:
            return report.invalid(path, label, ",".join(errors))
    return True


def _segments(value: Any, path: str, report: Report, least: int, spelled: str) -> bool:
    if not value:
        return report.required(path)
    errors = dns_subdomain_errors(value)
    if errors:
        return report.invalid(path, value, ",".join(errors))
    detail = f"should be a domain with at least {spelled} segments separated by dots"
    return len(value.split(".")) >= least or report.invalid(path, value, detail)


_DOMAIN_LIMIT = 253
_NAME_LIMIT = 571


def is_kubernetes_signer(name: str) -> bool:  # upstream: IsKubernetesSignerName
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
def signer_name(value: Any, path: str, report: Report) -> bool:  # upstream: ValidateSignerName
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


def trust_bundle_errors(name: str, signer: str) -> list[str]:  # upstream: ValidateClusterTrustBundleName
    """A ClusterTrustBundle of a signer has the signer's name before its own."""
    if not signer:
        if ":" in name:
            return ['ClusterTrustBundle without signer name must not have ":" in its name']
        return dns_subdomain_errors(name)
    prefix = signer.replace("/", ":") + ":"
    if not name.startswith(prefix):
        return [f"ClusterTrustBundle for signerName {signer} must be named with prefix {prefix}"]
    return dns_subdomain_errors(name.removeprefix(prefix))


def no_backsteps(value: Any, path: str, report: Report) -> bool:  # upstream: validatePathNoBacksteps
    """No `..` among the segments."""
    return ".." not in value.split("/") or report.invalid(path, value, "must not contain '..'")


def descending(value: Any, path: str, report: Report) -> bool:  # upstream: validateLocalDescendingPath
    """Relative, and never upwards."""
    if value.startswith("/"):
        report.invalid(path, value, "must be a relative path")
    return no_backsteps(value, path, report)


def local_path(value: Any, path: str, report: Report) -> bool:  # upstream: ValidateLocalNonReservedPath
    """A path that a volume of files may have: descending, and not one of the names that the kubelet uses."""
    descending(value, path, report)
    reserved = value.startswith("..") and not value.startswith("../")
    return not reserved or report.invalid(path, value, "must not start with '..'")


def absolute(value: Any, path: str, report: Report) -> bool:
    return value.startswith("/") or report.invalid(path, value, "must be an absolute path")


def _nothing_else(value: Any, path: str, report: Report) -> bool:
    for name in value:
        if name not in ("labels", "annotations") and value[name]:
            report.forbidden(f"{path}.{name}", "cannot be set")
    return True


TEMPLATE_METADATA = section("metadata", field("annotations", annotation_map), field("labels", labels), _nothing_else)
"""The metadata of a template of claims. Upstream: ValidateTemplateObjectMeta (pkg/apis/core/validation)."""
