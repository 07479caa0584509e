"""ConfigMaps: the user's own properties, the merged application.properties, the script for MySQL."""

from __future__ import annotations

import hashlib

from konverge.objects.kinds.core_v1 import ConfigMap
from konverge.operators.nacos import names
from konverge.operators.nacos.children.metadata import metadata
from konverge.operators.nacos.children.properties import base_properties
from konverge.operators.nacos.wish import Wish

CUSTOM_KEY = "custom.properties"
FINAL_KEY = "application.properties"
SCRIPT_KEY = "SQL_SCRIPT"


def config_map(wish: Wish) -> ConfigMap:
    """`<name>`: what the user gave as `config`. Images up to 2.1.0 read it from init.d."""
    return ConfigMap(metadata=metadata(wish, wish.name), data={CUSTOM_KEY: wish.spec.config})


def final_config_map(wish: Wish, text: str) -> ConfigMap:
    """The application.properties of the servers, where the operator writes it."""
    return ConfigMap(metadata=metadata(wish, wish.final_config), data={FINAL_KEY: text})


def mysql_config_map(wish: Wish, script: str) -> ConfigMap:
    return ConfigMap(metadata=metadata(wish, names.mysql_init(wish.name)), data={SCRIPT_KEY: script})


def merged_properties(wish: Wish, internal: str | None, user: str | None) -> str:
    """Internal settings, then the user's: of a key that stands twice the last one counts.

    Without an `internalConfigRef` the internal half is ours, which reads the same environment as the image's own file.
    """
    parts = ["# ===== Internal Configuration =====", base_properties(wish) if internal is None else internal, ""]
    parts += ["# ===== User Configuration =====", user or ""]
    if wish.spec.config:
        parts += ["# ===== spec.config =====", wish.spec.config]
    return "\n".join(parts).rstrip("\n") + "\n"


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]
