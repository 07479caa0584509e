"""The formats of texts that Kubernetes declares by tags (`+k8s:format=k8s-short-name`, …).

They differ from those of hand-written rules (`names`) in their messages: lengths are counted in bytes, and of a name in
parts the message says in which part the error is. Upstream: k8s.io/apimachinery/pkg/api/validate/strfmt.go.
"""

from __future__ import annotations

import re
from typing import Any

from konverge.apiserver.go.strconv import quote
from konverge.apiserver.kinds.framework.declare import Report, Rule
from konverge.apiserver.kinds.rules.names import format_rule
from konverge.objects.names import (
    counted_in_bytes,
    dns_label_errors,
    dns_subdomain_caseless_errors,
    dns_subdomain_errors,
    qualified_name_errors,
    regex_error,
)

LONGEST_DOMAIN = 63
LONGEST_IDENTIFIER = 32
LONGEST_POOL_NAME = 253
BAD_UUID = "must be a lowercase UUID in 8-4-4-4-12 format"
_IDENTIFIER = "[A-Za-z_][A-Za-z0-9_]*"
_IDENTIFIER_ERROR = regex_error(
    "a valid C identifier must start with alphabetic character or '_', "
    "followed by a string of alphanumeric characters or '_'",
    _IDENTIFIER,
    "my_name",
    "MY_NAME",
    "MyName",
)
_is_identifier = re.compile(_IDENTIFIER).fullmatch
_is_uuid = re.compile("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}").fullmatch
_KUBERNETES_DOMAIN = "kubernetes.io/"
_QUOTA_PREFIX = "requests."

_long_name_errors = counted_in_bytes(dns_subdomain_errors)
short_name = format_rule(counted_in_bytes(dns_label_errors))
long_name = format_rule(_long_name_errors)
long_name_caseless = format_rule(counted_in_bytes(dns_subdomain_caseless_errors))
label_key = format_rule(qualified_name_errors)


def uuid(value: Any, path: str, report: Report) -> bool:
    return bool(_is_uuid(value)) or report.invalid(path, value, BAD_UUID)


def identifier(value: Any, path: str, report: Report) -> bool:
    """An identifier of the C language, at most 32 bytes long. Upstream: validateCIdentifier."""
    if len(value.encode()) > LONGEST_IDENTIFIER:
        report.too_long(path, LONGEST_IDENTIFIER)
    return bool(_is_identifier(value)) or report.invalid(path, value, _IDENTIFIER_ERROR)


def resource_pool_name(value: Any, path: str, report: Report) -> bool:
    """Subdomains with slashes between them."""
    before = len(report.errors)
    if len(value.encode()) > LONGEST_POOL_NAME:
        report.too_long(path, LONGEST_POOL_NAME)
    for index, segment in enumerate(value.split("/")):
        if not segment:
            report.invalid(path, value, f"segment {index}: must not be empty")
            continue
        for detail in _long_name_errors(segment):
            report.invalid(path, segment, f"segment {index}: {detail}")
    return len(report.errors) == before


def extended_resource_name(value: Any, path: str, report: Report) -> bool:
    """`domain/name` outside of kubernetes.io, which fits behind `requests.` in a quota."""
    details = []
    if "/" not in value:
        details.append("a name must be a domain-prefixed path, such as 'example.com/my-prop'")
    elif _KUBERNETES_DOMAIN in value:
        details.append(f"must not have {quote(_KUBERNETES_DOMAIN)} domain")
    if value.startswith(_QUOTA_PREFIX):
        details.append(f"must not have {quote(_QUOTA_PREFIX)} prefix")
    for detail in (*details, *qualified_name_errors(_QUOTA_PREFIX + value)):
        report.invalid(path, value, detail)
    return not details


def fully_qualified_name(value: Any, path: str, report: Report) -> bool:
    """`domain/identifier`."""
    before = len(report.errors)
    prefix, slash, name = value.rpartition("/")
    if not slash:
        identifier(value, path, report)
        return report.invalid(path, value, "a fully qualified name must be a domain and a name separated by a slash")
    if "/" in prefix:  # upstream leaves names with several slashes unchecked
        return True
    if not prefix:
        report.invalid(path, "", "prefix must not be empty")
    else:
        if len(prefix.encode()) > LONGEST_DOMAIN:
            report.too_long(path, LONGEST_DOMAIN)
        for detail in _long_name_errors(prefix):
            report.invalid(path, prefix, f"prefix: {detail}")
    if not name:
        report.invalid(path, "", "name must not be empty")
    else:
        identifier(name, path, report)
    return len(report.errors) == before


FORMATS: dict[str, Rule] = {
    "ExtendedResourceName": extended_resource_name,
    "LabelKey": label_key,
    "LongName": long_name,
    "LongNameCaseless": long_name_caseless,
    "ResourceFullyQualifiedName": fully_qualified_name,
    "ResourcePoolName": resource_pool_name,
    "ShortName": short_name,
    "UUID": uuid,
}
"""By the name of the function in Go."""
