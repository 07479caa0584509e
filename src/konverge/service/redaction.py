"""Hides secrets in a resource before this service shows it.

Passwords belong in Secrets, and the operator warns about others; but older resources have them in plain fields, in
environment variables, arguments, annotations and configuration texts. Users who may read the resource with kubectl can
read them there. This service never shows them, because here they would end up in browsers, screenshots and logs.

A value is hidden by its name: that of its field, of its variable, or the name before it in a text (`-Ddb.password=…`,
`--token …`, `"secret": "…"`); and by its form: passwords in URLs, bearer tokens, private keys. In doubt it is hidden.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

Obj = dict[str, Any]

HIDDEN = "(hidden)"
_SECRET_KEY = re.compile(
    r"pass(word|wd|phrase)|pass$|pwd|secret|token|credential|(private|access|api|signing|encryption).?key"
    r"|identity.?value|authorization|cookie|jwt",
    re.IGNORECASE,
)
_NOT_SECRET = re.compile(
    r"(refs?|names?|username.?key|password.?key|password.?hash.?key|checksum|seconds|time|version|result|message"
    r"|enabled?|policy|file|path|dir)$",
    re.IGNORECASE,
)
_PROPERTY = re.compile(
    r"^(?P<head>[ \t]*(?P<key>[^#!=:\s][^=:\s]*)(?:[ \t]*[=:][ \t]*|[ \t]+))"
    r"(?P<value>[^\s\\](?:[^\n\\]|\\.|\\\n)*|\\.*)$",
    re.MULTILINE,
)
"""A line of a properties file; a backslash at its end continues it in the next. The time of every pattern
here is linear in the length of the text."""
_VALUE = r"(?:\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'|(?:\\.|[^\s\\])+)"
"""Quoted, or up to the next space."""
_ASSIGNMENT = re.compile(rf"(?<![^\s\"'`,;:(\[{{])(?P<head>(?P<key>[-\w][-\w.\[\]]*)=){_VALUE}", re.DOTALL)
_FLAG = re.compile(rf"(?<![^\s\"'`,;(])(?P<head>--?(?P<key>\w[-\w.]*)[ \t]+)(?!-){_VALUE}", re.DOTALL)
_QUOTED = re.compile(
    r"(?P<head>[\"'](?P<key>[\w.\-/]{1,253})\\*[\"'][ \t]{0,8}:[ \t]{0,8})"
    r"(?:\"(?:[^\"\\]|\\.)*\"?|'(?:[^'\\]|\\.)*'?|\\.*|[^\s,}\]\"']+)",
    re.DOTALL,
)
"""An entry of a JSON or YAML text. In one that is itself quoted all that follows is hidden: its end is uncertain."""
_REFUSED = re.compile(
    r"(?<![\w.\[\]/-])(?P<head>(?P<key>[\w.\[\]/-]+): (?:Invalid|Unsupported|Duplicate) value: )"
    r"(?:\"(?:[^\"\\]|\\.)*\"|[^\s:]+)"
)
"""As the API server writes: `spec.database.mysqlPassword: Invalid value: "…"`."""
_NAMED = (_ASSIGNMENT, _FLAG, _QUOTED, _REFUSED)
_FORMS = (
    re.compile(r"(?P<head>://[^/\s:@]{0,256}:)[^@\s/]{1,512}(?=@)"),
    re.compile(r"(?P<head>[?&;](?:password|passwd|pwd|token|secret|sslpassword|access_token)=)[^&;\s\"']+", re.I),
    re.compile(r"(?P<head>\b(?:Bearer|Basic)[ \t]+)[\w.~+/=-]{8,}", re.I),
    re.compile(r"(?P<head>)\beyJ[\w-]{8,}\.[\w-]+\.[\w-]*"),
    re.compile(r"(?P<head>-----BEGIN [A-Z ]{0,32}PRIVATE KEY-----)[^-]*(?:-----END [A-Z ]{0,32}PRIVATE KEY-----)?"),
)
_APPLIED = re.compile(r"applied", re.IGNORECASE)
"""Annotations of tools that repeat the whole resource, as text or packed: kubectl's last-applied-configuration, …"""
_TEXTS = ("config",)
"""Fields whose text is a file of properties."""


def shown(resource: Obj) -> Obj:
    """A copy of a resource without its secrets and without managedFields."""
    return {key: _clean(part, key) for key, part in resource.items()}


@lru_cache(maxsize=4096)  # the same names come again in every resource
def is_secret(name: str) -> bool:
    """
    >>> [is_secret(name) for name in ("mysqlPassword", "token", "NACOS_AUTH_TOKEN", "db.password.0", "passwordKey")]
    [True, True, True, True, False]
    >>> [is_secret(name) for name in ("token_expire_seconds", "tokenSecretRef", "tlsSecretName", "adminSecretChecksum")]
    [False, False, False, False]
    """
    last = re.sub(r"[.\[]\d+\]?$", "", name)
    return _NOT_SECRET.search(last) is None and _SECRET_KEY.search(last) is not None


def properties(text: str) -> str:
    """A properties file without its secrets.

    >>> properties("db.user=nacos\\ndb.password=s3cret")
    'db.user=nacos\\ndb.password=(hidden)'
    """
    return in_text(_PROPERTY.sub(_hide_named, text))


def in_text(text: str) -> str:
    """A text without the secrets in it.

    >>> in_text("jdbc:mysql://root:pw@db/nacos?user=a&password=b")
    'jdbc:mysql://root:(hidden)@db/nacos?user=a&password=(hidden)'
    >>> in_text("-Xms1g -Ddb.password=pw --token pw -Dserver.port=8848")
    '-Xms1g -Ddb.password=(hidden) --token (hidden) -Dserver.port=8848'
    """
    if not any(sign in text for sign in ("=", ":", " ", "eyJ")):  # the usual case: one word
        return text
    for pattern in _FORMS:
        text = pattern.sub(lambda match: f"{match['head']}{HIDDEN}", text)
    for pattern in _NAMED:
        text = pattern.sub(_hide_named, text)
    return text


def _hide_named(match: re.Match[str]) -> str:
    return f"{match['head']}{HIDDEN}" if is_secret(match["key"]) else match[0]


def _clean(value: Any, name: str = "") -> Any:
    if isinstance(value, dict):
        return _entry(value) if _is_variable(value) else dict(_entries(value, name))
    if isinstance(value, list):
        return _items(value, name)
    if isinstance(value, bool) or value is None or value == "":
        return value
    if is_secret(name):
        return HIDDEN
    return _clean_text(value, name) if isinstance(value, str) else value


def _entries(value: Obj, name: str) -> Iterator[tuple[str, Any]]:
    for key, part in value.items():
        if name == "metadata" and key == "managedFields":
            continue
        if name == "annotations" and _APPLIED.search(key):
            continue
        cleaned = _clean(part, key)
        if name == "metadata" and key == "annotations" and part and not cleaned:
            continue  # there were only such that are not shown
        yield key, cleaned


def _items(value: list[Any], name: str) -> list[Any]:
    """Of arguments: the one after a flag of a secret's name is the secret."""
    cleaned, secret = [], False
    for part in value:
        text = isinstance(part, str)
        cleaned.append(HIDDEN if secret and part else _clean(part, name))
        secret = text and part.startswith("-") and "=" not in part and " " not in part and is_secret(part)
    return cleaned


def _clean_text(text: str, name: str) -> str:
    if text[0] in "{[":
        try:
            return json.dumps(_clean(json.loads(text), name))
        except (ValueError, RecursionError):
            pass
    return properties(text) if name in _TEXTS or "\n" in text else in_text(text)


def _is_variable(value: Obj) -> bool:
    return isinstance(value.get("name"), str) and isinstance(value.get("value"), str)


def _entry(value: Obj) -> Obj:
    """An environment variable or a header: its name says whether its value is secret."""
    name, text = value["name"], value["value"]
    return {**value, "value": HIDDEN if text and is_secret(name) else _clean(text)}
