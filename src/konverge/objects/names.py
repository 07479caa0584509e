"""The formats of names: what Kubernetes calls labels, subdomains, qualified names, keys and path segments.

A format is a function from a text to the messages of the API server about it; none when the text is fine. The caller
puts them behind a field's path. Upstream has most formats twice, with messages that differ in one word: lengths are
counted in characters (k8s.io/apimachinery/pkg/util/validation) and, where types declare their rules by tags, in bytes
(pkg/api/validate/content). `counted_in_bytes` makes the second from the first.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from konverge.objects.text_cache import remembered

Format = Callable[[str], Sequence[str]]

_ENDS = "must start and end with an alphanumeric character"
_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_LABEL_MESSAGE = f"a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and {_ENDS}"
_SUBDOMAIN = rf"{_LABEL}(\.{_LABEL})*"
_SUBDOMAIN_MESSAGE = (
    f"a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and {_ENDS}"
)
_UNDERSCORE_LABEL = "_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
_QUALIFIED = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_VALUE = f"({_QUALIFIED})?"
_CONFIG_KEY = "[-._a-zA-Z0-9]+"

_is_label = re.compile(_LABEL).fullmatch
_is_subdomain = re.compile(_SUBDOMAIN).fullmatch
_is_label_value = re.compile(_VALUE).fullmatch
_is_qualified = re.compile(_QUALIFIED).fullmatch
_is_config_key = re.compile(_CONFIG_KEY).fullmatch
_is_port_name = re.compile("[-a-z0-9]+").fullmatch
_is_env_name = re.compile(r"[ -<>-~]+").fullmatch


def regex_error(message: str, pattern: str, *examples: str) -> str:
    """A message that quotes the pattern (with two spaces before "or", as upstream: RegexError)."""
    if not examples:
        return f"{message} (regex used for validation is '{pattern}')"
    shown = " or ".join(f"'{example}', " for example in examples)
    return f"{message} (e.g. {shown}regex used for validation is '{pattern}')"


def max_length_error(maximum: int) -> str:  # upstream: MaxLenError (util/validation)
    return f"must be no more than {maximum} characters"


def _max_bytes_error(maximum: int) -> str:  # upstream: MaxLenError (api/validate/content)
    return f"must be no more than {maximum} bytes"


def _size(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode(errors="surrogatepass"))


def _pattern(pattern: str, maximum: int | None, message: str, *examples: str) -> Callable[[str], list[str]]:
    matches = re.compile(pattern).fullmatch
    mismatch = regex_error(message, pattern, *examples)

    def format_errors(text: str) -> list[str]:
        errors = [] if maximum is None or _size(text) <= maximum else [max_length_error(maximum)]
        if not matches(text):
            errors.append(mismatch)
        return errors

    return format_errors


def counted_in_bytes(check: Format) -> Format:
    """The same format with its length in bytes, as rules that upstream declares by tags report it."""

    def format_errors(text: str) -> list[str]:
        return [re.sub(r"^(must be no more than \d+) characters$", r"\1 bytes", error) for error in check(text)]

    return format_errors


def dns_label_errors(text: str) -> list[str]:  # upstream: IsDNS1123Label
    if _is_label(text):
        return [] if len(text) <= 63 else [max_length_error(63)]
    errors = [max_length_error(63)] if _size(text) > 63 else []
    if _is_subdomain(text):
        return [*errors, "must not contain dots"]
    return [*errors, regex_error(_LABEL_MESSAGE, _LABEL, "my-name", "123-abc")]


# upstream: IsDNS1123Subdomain
dns_subdomain_errors = _pattern(_SUBDOMAIN, 253, _SUBDOMAIN_MESSAGE, "example.com")

_CASELESS_ERROR = regex_error(
    f"an RFC 1123 subdomain must consist of alphanumeric characters, '-' or '.', and {_ENDS}", _SUBDOMAIN, "Example.com"
)


def dns_subdomain_caseless_errors(text: str) -> list[str]:  # upstream: IsDNS1123SubdomainCaseless
    errors = [] if _size(text) <= 253 else [max_length_error(253)]
    return errors if _is_subdomain(text.lower()) else [*errors, _CASELESS_ERROR]


# upstream: IsDNS1123SubdomainWithUnderscore
dns_subdomain_underscore_errors = _pattern(
    rf"{_UNDERSCORE_LABEL}(\.{_UNDERSCORE_LABEL})*",
    253,
    _SUBDOMAIN_MESSAGE.replace("'-' or '.'", "'_', '-' or '.'"),
    "example.com",
)

# upstream: IsDNS1035Label
dns_1035_errors = _pattern(
    "[a-z]([-a-z0-9]*[a-z0-9])?",
    63,
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', "
    "start with an alphabetic character, and end with an alphanumeric character",
    "my-name",
    "abc-123",
)

# upstream: IsWildcardDNS1123Subdomain
wildcard_errors = _pattern(
    rf"\*\.{_SUBDOMAIN}",
    253,
    "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist of "
    "lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character",
    "*.example.com",
)

# upstream: IsHTTPHeaderName
http_header_errors = _pattern(
    "[-A-Za-z0-9]+", None, "a valid HTTP header must consist of alphanumeric characters or '-'", "X-Header-Name"
)

# upstream: IsValidPercent
percent_errors = _pattern(
    "[0-9]+%", None, "a valid percent string must be a numeric string followed by an ending '%'", "1%", "93%"
)


_VALUE_ERROR = regex_error(
    f"a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and {_ENDS}",
    _VALUE,
    "MyValue",
    "my_value",
    "12345",
)


@remembered(4096)
def label_value_errors(text: str) -> tuple[str, ...]:  # upstream: IsLabelValue (api/validate/content)
    errors: list[str] = []
    if _size(text) > 63:
        errors.append(_max_bytes_error(63))
    if not _is_label_value(text):
        errors.append(_VALUE_ERROR)
    return tuple(errors)


_QUALIFIED_ERROR = regex_error(
    f"must consist of alphanumeric characters, '-', '_' or '.', and {_ENDS}",
    _QUALIFIED,
    "MyName",
    "my.name",
    "123-abc",
)


@remembered(4096)
def qualified_name_errors(text: str) -> tuple[str, ...]:
    """`[prefix/]name`: label keys, annotation keys, finalizers, taint keys, resources.

    upstream: IsLabelKey (api/validate/content), which IsQualifiedName is another name of.
    """
    prefix, slash, name = text.rpartition("/")
    if "/" in prefix:
        hint = " with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        return (f"a valid label key {_QUALIFIED_ERROR}{hint}",)
    errors = [f"prefix part {error}" for error in _prefix_errors(prefix)] if slash else []
    if not name:
        errors.append("name part must be non-empty")
    elif _size(name) > 63:
        errors.append(f"name part {_max_bytes_error(63)}")
    if not _is_qualified(name):
        errors.append(f"name part {_QUALIFIED_ERROR}")
    return tuple(errors)


_subdomain_bytes_errors = counted_in_bytes(dns_subdomain_errors)


def _prefix_errors(prefix: str) -> Sequence[str]:
    return _subdomain_bytes_errors(prefix) if prefix else ("must be non-empty",)


def _dot_errors(text: str) -> list[str]:  # upstream: hasChDirPrefix
    if text in (".", ".."):
        return [f"must not be '{text}'"]
    return ["must not start with '..'"] if text.startswith("..") else []


def config_key_errors(text: str) -> list[str]:
    """The key of a ConfigMap or Secret. upstream: IsConfigMapKey."""
    if _is_config_key(text) and len(text) <= 253 and text[0] != ".":
        return []
    errors = [max_length_error(253)] if _size(text) > 253 else []
    if not _is_config_key(text):
        message = "a valid config key must consist of alphanumeric characters, '-', '_' or '.'"
        errors.append(regex_error(message, _CONFIG_KEY, "key.name", "KEY_NAME", "key-name"))
    return errors + _dot_errors(text)


def env_name_errors(text: str) -> list[str]:
    """The name of an environment variable (the relaxed rule, which is on since 1.34). upstream: IsRelaxedEnvVarName."""
    if _is_env_name(text):
        return []
    if not text:
        return ["environment variable name must be non-empty"]
    return ["a valid environment variable name must consist only of printable ASCII characters other than '='"]


def port_name_errors(text: str) -> list[str]:
    """An IANA service name: the name of a container port. upstream: IsValidPortName."""
    errors = [max_length_error(15)] if _size(text) > 15 else []
    if not _is_port_name(text):
        errors.append("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")
    if not any("a" <= letter <= "z" for letter in text):
        errors.append("must contain at least one letter (a-z)")
    if "--" in text:
        errors.append("must not contain consecutive hyphens")
    if text.startswith("-") or text.endswith("-"):
        errors.append("must not begin or end with a hyphen")
    return errors


def path_segment_errors(text: str) -> list[str]:
    """A name that is a segment of a URL and nothing more (RBAC names). upstream: IsPathSegmentName."""
    if text in (".", ".."):
        return [f"may not be '{text}'"]
    return path_segment_prefix_errors(text)


def path_segment_prefix_errors(text: str) -> list[str]:  # upstream: IsPathSegmentPrefix
    return [f"may not contain '{part}'" for part in ("/", "%") if part in text]
