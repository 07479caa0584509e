"""Texts that begin with a domain: qualified names of webhooks, domains, paths of controllers."""

from __future__ import annotations

import re
from typing import Any

from konverge.apiserver.kinds.framework.declare import Report, even_absent
from konverge.objects.names import dns_label_errors, dns_subdomain_errors, regex_error

_PATH = r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+"
_is_path = re.compile(_PATH).fullmatch


@even_absent
def domain_path(value: Any, path: str, report: Report) -> bool:
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
def three_segments(value: Any, path: str, report: Report) -> bool:
    """The name of a webhook: `check.example.com`."""
    return _segments(value, path, report, 3, "three")


@even_absent
def domain_name(value: Any, path: str, report: Report) -> bool:
    """A fully qualified domain name; a dot may end it."""
    name = value.removesuffix(".") if value else ""
    if not _segments(name, path, report, 2, "two"):
        return False
    for label in name.split("."):
        errors = dns_label_errors(label)
        if errors:
            return report.invalid(path, label, ",".join(errors))
    return True


def _segments(value: Any, path: str, report: Report, least: int, word: str) -> bool:
    if not value:
        return report.required(path)
    errors = dns_subdomain_errors(value)
    if errors:
        return report.invalid(path, value, ",".join(errors))
    detail = f"should be a domain with at least {word} segments separated by dots"
    return len(value.split(".")) >= least or report.invalid(path, value, detail)
