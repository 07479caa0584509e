"""The syntax of names, label keys and label values, with the words that the API server refuses them in.

Each check returns the complaints (none when the value is fine), so that callers can put them behind a field's path.
"""

from __future__ import annotations

import re

from konverge.objects.text_cache import remembered

_LABEL_KEY = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_LABEL_VALUE = f"({_LABEL_KEY})?"
_DNS_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_DNS_SUBDOMAIN = rf"{_DNS_LABEL}(\.{_DNS_LABEL})*"
_DNS_1035 = "[a-z]([-a-z0-9]*[a-z0-9])?"

_label_key = re.compile(_LABEL_KEY).fullmatch
_label_value = re.compile(_LABEL_VALUE).fullmatch
_dns_label = re.compile(_DNS_LABEL).fullmatch
_dns_subdomain = re.compile(_DNS_SUBDOMAIN).fullmatch
_dns_1035 = re.compile(_DNS_1035).fullmatch

_ALPHANUMERIC_ENDS = "must start and end with an alphanumeric character"
_LABEL_KEY_WORDS = f"must consist of alphanumeric characters, '-', '_' or '.', and {_ALPHANUMERIC_ENDS}"
_LABEL_VALUE_WORDS = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', "
    f"and {_ALPHANUMERIC_ENDS}"
)
_DNS_LABEL_WORDS = (
    f"a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and {_ALPHANUMERIC_ENDS}"
)
_DNS_SUBDOMAIN_WORDS = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', "
    f"and {_ALPHANUMERIC_ENDS}"
)
_DNS_1035_WORDS = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, "
    "and end with an alphanumeric character"
)


def _bytes(value: str) -> int:
    return len(value) if value.isascii() else len(value.encode(errors="surrogatepass"))


def _too_long(maximum: int) -> str:
    return f"must be no more than {maximum} bytes"


def pattern_words(words: str, pattern: str, *examples: str) -> str:
    """A complaint that quotes the pattern, in the API's punctuation."""
    if not examples:
        return f"{words} (regex used for validation is '{pattern}')"
    shown = " or ".join(f"'{example}', " for example in examples)
    return f"{words} (e.g. {shown}regex used for validation is '{pattern}')"


_KEY_EXAMPLES = ("MyName", "my.name", "123-abc")


@remembered(4096)
def label_key_errors(key: str) -> tuple[str, ...]:
    """What is wrong with a label key (also: annotation keys, finalizers, taint keys: any qualified name)."""
    parts = key.split("/")
    if len(parts) > 2:
        words = pattern_words(_LABEL_KEY_WORDS, _LABEL_KEY, *_KEY_EXAMPLES)
        return (f"a valid label key {words} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')",)
    errors: list[str] = []
    if len(parts) == 2:
        errors += [f"prefix part {words}" for words in _prefix_errors(parts[0])]
    name = parts[-1]
    if not name:
        errors.append("name part must be non-empty")
    elif _bytes(name) > 63:
        errors.append("name part " + _too_long(63))
    if not _label_key(name):
        errors.append("name part " + pattern_words(_LABEL_KEY_WORDS, _LABEL_KEY, *_KEY_EXAMPLES))
    return tuple(errors)


def _prefix_errors(prefix: str) -> list[str]:
    return dns_subdomain_errors(prefix) if prefix else ["must be non-empty"]


@remembered(4096)
def label_value_errors(value: str) -> tuple[str, ...]:
    errors: list[str] = []
    if _bytes(value) > 63:
        errors.append(_too_long(63))
    if not _label_value(value):
        errors.append(pattern_words(_LABEL_VALUE_WORDS, _LABEL_VALUE, "MyValue", "my_value", "12345"))
    return tuple(errors)


def dns_label_errors(value: str) -> list[str]:
    errors: list[str] = []
    if _bytes(value) > 63:
        errors.append(_too_long(63))
    if not _dns_label(value):
        if _dns_subdomain(value):
            errors.append("must not contain dots")
        else:
            errors.append(pattern_words(_DNS_LABEL_WORDS, _DNS_LABEL, "my-name", "123-abc"))
    return errors


def dns_subdomain_errors(value: str) -> list[str]:
    errors: list[str] = []
    if _bytes(value) > 253:
        errors.append(_too_long(253))
    if not _dns_subdomain(value):
        errors.append(pattern_words(_DNS_SUBDOMAIN_WORDS, _DNS_SUBDOMAIN, "example.com"))
    return errors


def dns_1035_errors(value: str) -> list[str]:
    errors: list[str] = []
    if _bytes(value) > 63:
        errors.append(_too_long(63))
    if not _dns_1035(value):
        errors.append(pattern_words(_DNS_1035_WORDS, _DNS_1035, "my-name", "abc-123"))
    return errors
