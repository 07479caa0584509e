"""Hides secrets in a resource before this service shows it.

Passwords belong in Secrets, and the operator warns about others; but older resources have them in plain fields, in
environment variables and in configuration texts. Users who may read the resource with kubectl can read them there. This
service never shows them, because here they would end up in browsers, screenshots and logs.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

Obj = dict[str, Any]

HIDDEN = "(hidden)"
_SECRET_KEY = re.compile(
    r"pass(word|wd|phrase)?$|pwd|secret|token$|credential|(private|access).?key|identity.?value", re.IGNORECASE
)
_NOT_SECRET = re.compile(r"(refs?|names?|username.?key|password.?key|password.?hash.?key|checksum|seconds)$", re.I)
_PROPERTY = re.compile(
    r"^(?P<head>[ \t]*(?P<key>[^#!=:\s][^=:\s]*)(?:[ \t]*[=:][ \t]*|[ \t]+))"
    r"(?P<value>[^\s\\](?:[^\n\\]|\\.|\\\n)*|\\.*)$",
    re.MULTILINE,
)
"""A line of a properties file; a backslash at its end continues it in the next. The time of every pattern
here is linear in the length of the text."""
_URL_PASSWORD = re.compile(r"(?P<head>://[^/\s:@]{1,256}:)[^@\s/]{1,512}(?=@)")
_QUERY_PASSWORD = re.compile(r"(?P<head>[?&;](?:password|passwd|pwd|token|secret)=)[^&;\s\"']+", re.I)
_DROPPED_ANNOTATIONS = ("kubectl.kubernetes.io/last-applied-configuration",)
_TEXTS = ("config",)
"""Fields whose text is a file of properties."""


def shown(resource: Obj) -> Obj:
    """A copy of a resource without its secrets and without managedFields."""
    metadata = resource.get("metadata")
    if not isinstance(metadata, dict):
        return {key: _clean(part, key) for key, part in resource.items()}
    plain = {key: part for key, part in metadata.items() if key != "managedFields"}
    copied: Obj = {key: _clean(part, key) for key, part in {**resource, "metadata": plain}.items()}
    _drop_annotations(copied["metadata"])
    return copied


def _drop_annotations(metadata: Obj) -> None:
    annotations = metadata.get("annotations")
    if not isinstance(annotations, dict):
        return
    for name in _DROPPED_ANNOTATIONS:  # the last applied configuration repeats the whole spec as text
        annotations.pop(name, None)
    if not annotations:
        del metadata["annotations"]


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
    return in_text(
        _PROPERTY.sub(lambda match: f"{match['head']}{HIDDEN}" if is_secret(match["key"]) else match[0], text)
    )


def in_text(text: str) -> str:
    """Passwords inside of URLs.

    >>> in_text("jdbc:mysql://root:pw@db/nacos?user=a&password=b")
    'jdbc:mysql://root:(hidden)@db/nacos?user=a&password=(hidden)'
    """
    if "://" not in text and "=" not in text:  # the usual case
        return text
    for pattern in (_URL_PASSWORD, _QUERY_PASSWORD):
        text = pattern.sub(lambda match: f"{match['head']}{HIDDEN}", text)
    return text


def _clean(value: Any, name: str = "") -> Any:
    if isinstance(value, dict):
        return _entry(value) if _is_variable(value) else {key: _clean(part, key) for key, part in value.items()}
    if isinstance(value, list):
        return [_clean(part) for part in value]
    if not isinstance(value, str) or not value:
        return value
    if is_secret(name):
        return HIDDEN
    return properties(value) if name in _TEXTS else in_text(value)


def _is_variable(value: Obj) -> bool:
    return isinstance(value.get("name"), str) and isinstance(value.get("value"), str)


def _entry(value: Obj) -> Obj:
    """An environment variable: its name says whether its value is secret."""
    hidden = is_secret(value["name"]) and value["value"]
    return {**value, "value": HIDDEN if hidden else in_text(value["value"])}
