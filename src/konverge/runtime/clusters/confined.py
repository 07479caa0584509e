"""Kubeconfigs from the API: whoever may write a Secret must not run a program here, nor read a file.

A kubeconfig can name an exec plugin (a program), a token file, and files with certificates and keys. Of a kubeconfig
that came from the API all of these are refused, before anything looks whether such a file exists. So is YAML that is
small to write and large to read: aliases, merge keys, tags, and numbers of thousands of digits.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from konverge.client import Config
from konverge.client.errors import ConfigError
from konverge.client.kubeconfig import Kubeconfig

PROGRAMS = ("exec", "auth-provider")
FILES = ("tokenFile", "client-certificate", "client-key", "certificate-authority")
MAX_BYTES = 1 << 20
MAX_EVENTS = 50_000
"""Scalars, and begins and ends of lists and mappings."""
MAX_DEPTH = 50
MAX_NUMBER = 40
"""Characters of what is not text. Reading a number takes the square of its length."""


def confined_config(content: bytes, source: str, *, allow_exec: bool = False, allow_files: bool = False) -> Config:
    """The configuration of a kubeconfig that others wrote. Raises ConfigError, without any of its content.

    >>> confined_config(b"{users: [{name: a, user: {exec: {command: sh}}}]}", "Secret a")
    Traceback (most recent call last):
    konverge.client.errors.ConfigError: Secret a: user 'a' has exec, which would run a program here: refused
    """
    kubeconfig = Kubeconfig.parse(_loaded(content, source), source)
    for section in (*kubeconfig.users.values(), *kubeconfig.clusters.values()):
        for key in PROGRAMS:
            if section.values.get(key) and not allow_exec:
                raise ConfigError(f"{source}: {section.label} has {key}, which would run a program here: refused")
        for key in FILES:
            if section.values.get(key) and not allow_files:
                raise ConfigError(
                    f"{source}: {section.label} has {key}, which would read a file here: refused; put the content "
                    f"itself into {'token' if key == 'tokenFile' else f'{key}-data'}"
                )
    return kubeconfig.config()


def _loaded(content: bytes, source: str) -> Any:
    import yaml

    from konverge.go_yaml import Loader

    if len(content) > MAX_BYTES:
        raise ConfigError(f"{source} is larger than {MAX_BYTES} bytes: not a kubeconfig")
    try:
        refused = _refused(yaml.parse(content, Loader))
        loaded = None if refused else yaml.load(content, Loader)  # noqa: S506 - safe
    except (yaml.YAMLError, RecursionError, ValueError, LookupError, AttributeError, TypeError, ArithmeticError):
        # The error of the parser quotes the line that it does not understand, which may be a token.
        raise ConfigError(f"{source} is not YAML") from None
    if refused:
        raise ConfigError(f"{source} has {refused}: refused; write it as plain YAML")
    return loaded or {}


def _refused(events: Iterable[Any]) -> str:
    """What a kubeconfig needs not have; empty when there is no such thing."""
    from yaml import AliasEvent, ScalarEvent, ScalarNode

    from konverge.go_yaml import Resolver

    resolver: Any = Resolver()
    depth = 0
    for number, event in enumerate(events):
        if isinstance(event, AliasEvent):
            return "a YAML alias"
        if getattr(event, "tag", None):
            return "a YAML tag"
        if number > MAX_EVENTS:
            return f"more than {MAX_EVENTS} parts"
        depth += _DEPTH.get(type(event).__name__, 0)
        if depth > MAX_DEPTH:
            return f"more than {MAX_DEPTH} levels"
        if isinstance(event, ScalarEvent) and event.implicit[0]:
            kind = resolver.resolve(ScalarNode, event.value, (True, False)).rpartition(":")[2]
            if kind == "merge":
                return "a YAML merge key"
            if kind != "str" and len(event.value) > MAX_NUMBER:
                return f"a value of {len(event.value)} characters that is no text"
    return ""


_DEPTH = {"MappingStartEvent": 1, "SequenceStartEvent": 1, "MappingEndEvent": -1, "SequenceEndEvent": -1}
