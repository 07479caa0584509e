"""The formats of names: what Kubernetes calls labels, subdomains, qualified names, keys and paths.

Each format is a *complaints* function, `(text) -> list of details`, which is empty for a good name, and a rule of
`declare` made of it, which reports one `Invalid value` per complaint.

    field("name", required, dns_label)              # as a rule
    for detail in label_value_complaints(text): …   # where the value stands elsewhere
    Strategy(name_check=named(dns_1035_complaints)) # for metadata.name and generateName
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from konverge.apiserver.kinds.framework.declare import Report, Rule

Complaints = Callable[[str], list[str]]

_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_LABEL}(\.{_LABEL})*"
_LABEL_ = "_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
_SUBDOMAIN_ = rf"{_LABEL_}(\.{_LABEL_})*"
_LABEL_1035 = "[a-z]([-a-z0-9]*[a-z0-9])?"
_WILDCARD = rf"\*\.{_SUBDOMAIN}"
_QUALIFIED = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_VALUE = f"({_QUALIFIED})?"
_CONFIG_KEY = "[-._a-zA-Z0-9]+"
_HEADER = "[-A-Za-z0-9]+"
_PERCENT = "[0-9]+%"

_is_label = re.compile(_LABEL).fullmatch
_is_subdomain = re.compile(_SUBDOMAIN).fullmatch
_is_label_value = re.compile(_VALUE).fullmatch
_is_qualified = re.compile(_QUALIFIED).fullmatch
_is_config_key = re.compile(_CONFIG_KEY).fullmatch
_is_port_name = re.compile("[-a-z0-9]+").fullmatch
_is_env_name = re.compile(r"[ -<>-~]+").fullmatch


def explained(message: str, pattern: str, *examples: str) -> str:
    """A complaint with the pattern that was used, worded as the API words it (two spaces before "or" included)."""
    if not examples:
        return f"{message} (regex used for validation is '{pattern}')"
    shown = "".join(f"{' or ' if i else ''}'{example}', " for i, example in enumerate(examples))
    return f"{message} (e.g. {shown}regex used for validation is '{pattern}')"


def _size(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode())


def too_long_text(maximum: int) -> str:
    return f"must be no more than {maximum} characters"


def _too_many_bytes(maximum: int) -> str:
    return f"must be no more than {maximum} bytes"


_LABEL_WORDS = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', "
    "and must start and end with an alphanumeric character"
)
_SUBDOMAIN_WORDS = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', "
    "and must start and end with an alphanumeric character"
)
_SUBDOMAIN_WORDS_ = _SUBDOMAIN_WORDS.replace("'-' or '.'", "'_', '-' or '.'")
_WORDS_1035 = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', "
    "start with an alphabetic character, and end with an alphanumeric character"
)
_WILDCARD_WORDS = (
    "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist of "
    "lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character"
)
_QUALIFIED_WORDS = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character"
)
_VALUE_WORDS = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', "
    "and must start and end with an alphanumeric character"
)
_QUALIFIED_TEXT = explained(_QUALIFIED_WORDS, _QUALIFIED, "MyName", "my.name", "123-abc")


def _pattern(pattern: str, maximum: int | None, words: str, *examples: str) -> Complaints:
    matches = re.compile(pattern).fullmatch
    complaint = explained(words, pattern, *examples)

    def complaints(text: str) -> list[str]:
        found = [] if maximum is None or _size(text) <= maximum else [too_long_text(maximum)]
        if not matches(text):
            found.append(complaint)
        return found

    return complaints


def dns_label_complaints(text: str) -> list[str]:
    """RFC 1123 label."""
    if _is_label(text):
        return [] if len(text) <= 63 else [too_long_text(63)]
    found = [too_long_text(63)] if _size(text) > 63 else []
    if _is_subdomain(text):
        return [*found, "must not contain dots"]
    return [*found, explained(_LABEL_WORDS, _LABEL, "my-name", "123-abc")]


dns_subdomain_complaints = _pattern(_SUBDOMAIN, 253, _SUBDOMAIN_WORDS, "example.com")


def declared_subdomain_complaints(text: str) -> list[str]:
    """RFC 1123 subdomain, as the API's declared rules word it: they count bytes."""
    found = dns_subdomain_complaints(text)
    return [_too_many_bytes(253) if complaint == too_long_text(253) else complaint for complaint in found]


dns_subdomain_underscore_complaints = _pattern(_SUBDOMAIN_, 253, _SUBDOMAIN_WORDS_, "example.com")
dns_1035_complaints = _pattern(_LABEL_1035, 63, _WORDS_1035, "my-name", "abc-123")
wildcard_complaints = _pattern(_WILDCARD, 253, _WILDCARD_WORDS, "*.example.com")
http_header_complaints = _pattern(
    _HEADER, None, "a valid HTTP header must consist of alphanumeric characters or '-'", "X-Header-Name"
)
percent_complaints = _pattern(
    _PERCENT, None, "a valid percent string must be a numeric string followed by an ending '%'", "1%", "93%"
)


def label_value_complaints(text: str) -> list[str]:
    """The value of a label."""
    if _is_label_value(text) and len(text) <= 63:
        return []
    found = [_too_many_bytes(63)] if _size(text) > 63 else []
    if not _is_label_value(text):
        found.append(explained(_VALUE_WORDS, _VALUE, "MyValue", "my_value", "12345"))
    return found


def qualified_name_complaints(text: str) -> list[str]:
    """A label key: `[prefix/]name`."""
    prefix, slash, name = text.rpartition("/")
    if "/" in prefix:
        hint = " with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        return [f"a valid label key {_QUALIFIED_TEXT}{hint}"]
    found = []
    if slash:
        found = _prefix_complaints(prefix)
    if not name:
        found.append("name part must be non-empty")
    elif _size(name) > 63:
        found.append(f"name part {_too_many_bytes(63)}")
    if not _is_qualified(name):
        found.append(f"name part {_QUALIFIED_TEXT}")
    return found


def _prefix_complaints(prefix: str) -> list[str]:
    if not prefix:
        return ["prefix part must be non-empty"]
    complaints = [] if _size(prefix) <= 253 else [_too_many_bytes(253)]
    if not _is_subdomain(prefix):
        complaints.append(explained(_SUBDOMAIN_WORDS, _SUBDOMAIN, "example.com"))
    return [f"prefix part {complaint}" for complaint in complaints]


def _dots(text: str) -> list[str]:
    if text in (".", ".."):
        return [f"must not be '{text}'"]
    return ["must not start with '..'"] if text.startswith("..") else []


def config_key_complaints(text: str) -> list[str]:
    """The key of a ConfigMap or Secret."""
    if _is_config_key(text) and len(text) <= 253 and text[0] != ".":
        return []
    found = [too_long_text(253)] if _size(text) > 253 else []
    if not _is_config_key(text):
        words = "a valid config key must consist of alphanumeric characters, '-', '_' or '.'"
        found.append(explained(words, _CONFIG_KEY, "key.name", "KEY_NAME", "key-name"))
    return found + _dots(text)


def env_name_complaints(text: str) -> list[str]:
    """The name of an environment variable (the relaxed rule, which is on since 1.34)."""
    if _is_env_name(text):
        return []
    if not text:
        return ["environment variable name must be non-empty"]
    return ["a valid environment variable name must consist only of printable ASCII characters other than '='"]


def port_name_complaints(text: str) -> list[str]:
    """An IANA service name: the name of a container port."""
    found = [too_long_text(15)] if _size(text) > 15 else []
    if not _is_port_name(text):
        found.append("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")
    if not any("a" <= letter <= "z" for letter in text):
        found.append("must contain at least one letter (a-z)")
    if "--" in text:
        found.append("must not contain consecutive hyphens")
    if text.startswith("-") or text.endswith("-"):
        found.append("must not begin or end with a hyphen")
    return found


def path_segment_complaints(text: str) -> list[str]:
    """A name that is a segment of a URL and nothing more (RBAC names)."""
    if text in (".", ".."):
        return [f"may not be '{text}'"]
    return [f"may not contain '{bad}'" for bad in ("/", "%") if bad in text]


def named(complaints: Complaints) -> Callable[[str, bool], list[str]]:
    """`Strategy.name_check`: a prefix for generateName may end with a dash."""

    def check(name: str, is_prefix: bool) -> list[str]:
        if is_prefix and len(name) > 1 and name.endswith("-"):
            name = name[:-2] + "a"
        return complaints(name)

    return check


def path_segment_name(name: str, is_prefix: bool) -> list[str]:
    """`Strategy.name_check` of kinds whose names need only fit into a path."""
    return [c for c in path_segment_complaints(name) if not is_prefix or c.startswith("may not contain")]


def worded(complaints: Complaints) -> Rule:
    """A rule that reports every complaint about a text."""

    def check(value: Any, path: str, report: Report) -> bool:
        found = complaints(value)
        if not found:
            return True
        for detail in found:
            report.invalid(path, value, detail)
        return False

    return check


dns_label = worded(dns_label_complaints)
dns_subdomain = worded(dns_subdomain_complaints)
dns_subdomain_underscore = worded(dns_subdomain_underscore_complaints)
dns_1035 = worded(dns_1035_complaints)
wildcard_subdomain = worded(wildcard_complaints)
qualified_name = worded(qualified_name_complaints)
label_value = worded(label_value_complaints)
config_key = worded(config_key_complaints)
env_name = worded(env_name_complaints)
port_name = worded(port_name_complaints)
http_header_name = worded(http_header_complaints)


def labels(value: Any, path: str, report: Report) -> bool:
    """A map of labels; keys and values are both reported at the path of the map."""
    for key in sorted(value or ()):
        qualified_name(key, path, report)
        label_value(value[key], path, report)
    return True
