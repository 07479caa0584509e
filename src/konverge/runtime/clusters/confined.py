"""Kubeconfigs from the API: whoever may write a Secret must not run a program here, nor read a file.

A kubeconfig can name an exec plugin (a program), a token file, and files with certificates and keys. Of a kubeconfig
that came from the API all of these are refused, before anything looks whether such a file exists.
"""

from __future__ import annotations

from typing import Any

from konverge.client import Config
from konverge.client.errors import ConfigError
from konverge.client.kubeconfig import Kubeconfig

PROGRAMS = ("exec", "auth-provider")
FILES = ("tokenFile", "client-certificate", "client-key", "certificate-authority")
MAX_BYTES = 1 << 20


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

    if len(content) > MAX_BYTES:
        raise ConfigError(f"{source} is larger than {MAX_BYTES} bytes: not a kubeconfig")
    try:
        return yaml.load(content, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)) or {}  # noqa: S506 - safe
    except (yaml.YAMLError, RecursionError, ValueError):
        # The error of the parser quotes the line that it does not understand, which may be a token.
        raise ConfigError(f"{source} is not YAML") from None
