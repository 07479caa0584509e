"""ConfigMap and Secret: keys and bytes.

Upstream: pkg/apis/core/validation, pkg/registry/core/configmap, pkg/registry/core/secret.
"""

from __future__ import annotations

import re
from base64 import b64decode, b64encode
from collections.abc import Iterable
from typing import Any

from konverge.apiserver.go.json import unmarshal_error
from konverge.apiserver.go.tls import key_pair_error
from konverge.apiserver.kinds.framework.declare import Report, Transition, as_created, creation, unchanged, update
from konverge.apiserver.kinds.framework.lifecycle import selectable
from konverge.apiserver.kinds.rules.defaults import fill
from konverge.apiserver.kinds.rules.names import config_key
from konverge.apiserver.strategy import Context, Obj, Strategy

SIZE_LIMIT = 1024 * 1024
_FROZEN = "field is immutable when `immutable` is set"


_is_plain_key = re.compile(r"[-_a-zA-Z0-9][-._a-zA-Z0-9]{0,252}").fullmatch


def _decoded_size(text: str) -> int:
    return len(text) * 3 // 4 - text[-2:].count("=")


def _text_size(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode())


def _frozen(*names: str) -> Transition:  # upstream: ValidateConfigMapUpdate, ValidateSecretUpdate
    """What an object marked immutable may not change; the mark itself comes first."""

    def check(new: Obj, old: Obj, path: str, report: Report) -> bool:
        if not old.get("immutable"):
            return True
        if not new.get("immutable"):
            report.forbidden("immutable", _FROZEN)
        for name in names:
            if (new.get(name) or {}) != (old.get(name) or {}):
                report.forbidden(name, _FROZEN)
        return True

    return check


def _config_map(value: Any, path: str, report: Report) -> bool:  # upstream: ValidateConfigMap
    data, binary = value.get("data") or {}, value.get("binaryData") or {}
    # Nearly all are so; four bytes are the most that a character can need. (A loop gives way, `map` does not.)
    if not binary and all(_is_plain_key(key) for key in data) and 4 * sum(map(len, data.values())) <= SIZE_LIMIT:
        return True
    total = 0
    for key in sorted(data):
        config_key(key, f"data[{key}]", report)
        if key in binary:
            report.invalid(f"data[{key}]", key, "duplicate of key present in binaryData")
        total += _text_size(data[key])
    for key in sorted(binary):
        config_key(key, f"binaryData[{key}]", report)
        total += _decoded_size(binary[key])
    return total <= SIZE_LIMIT or report.too_long("[]", SIZE_LIMIT)


CONFIG_MAP = Strategy(  # upstream: strategy (configmap)
    validate_create=creation(_config_map),
    validate_update=update(_frozen("data", "binaryData"), as_created(_config_map)),
)


def _default_secret(secret: Obj) -> None:  # upstream: SetDefaults_Secret, Convert_v1_Secret_To_core_Secret
    """stringData is a way to write data, never stored."""
    strings = secret.pop("stringData", None)
    if strings:
        secret["data"] = {
            **(secret.get("data") or {}),
            **{k: b64encode(v.encode()).decode() for k, v in strings.items()},
        }
    fill(secret, {"type": "Opaque"})


def _docker_config(key: str, data: dict[str, str], report: Report) -> None:  # upstream: ValidateSecret
    if key not in data:
        report.required(f"data[{key}]")
        return
    problem = unmarshal_error(b64decode(data[key]), dict, "map[string]interface {}")
    if problem:
        report.invalid(f"data[{key}]", "<secret contents redacted>", problem)


_NEEDED_KEYS = {
    "kubernetes.io/ssh-auth": ("ssh-privatekey",),
    "kubernetes.io/tls": ("tls.crt", "tls.key"),
}
_ACCOUNT = "kubernetes.io/service-account.name"


def _secret(value: Any, path: str, report: Report) -> bool:  # upstream: ValidateSecret
    data, kind = value.get("data") or {}, value.get("type") or ""
    for key in () if all(_is_plain_key(key) for key in data) else sorted(data):
        config_key(key, f"data[{key}]", report)
    total = sum(map(_decoded_size, data.values()))
    if total > SIZE_LIMIT:
        report.too_long("data", SIZE_LIMIT)
    if kind == "kubernetes.io/service-account-token":
        if not (value["metadata"].get("annotations") or {}).get(_ACCOUNT):
            report.required(f"metadata.annotations[{_ACCOUNT}]")
    elif kind == "kubernetes.io/dockercfg":
        _docker_config(".dockercfg", data, report)
    elif kind == "kubernetes.io/dockerconfigjson":
        _docker_config(".dockerconfigjson", data, report)
    elif kind == "kubernetes.io/basic-auth" and not data.keys() & {"username", "password"}:
        report.required("data[username]")
        report.required("data[password]")
    for key in _NEEDED_KEYS.get(kind, ()):
        if key not in data or (key == "ssh-privatekey" and not data[key]):
            report.required(f"data[{key}]")
    return True


def _secret_warnings(secret: Obj, old: Obj | None, context: Context) -> Iterable[str]:  # upstream: warningsForSecret
    if secret.get("type") == "kubernetes.io/tls":
        data = secret.get("data") or {}
        problem = key_pair_error(b64decode(data.get("tls.crt", "")), b64decode(data.get("tls.key", "")))
        if problem:
            yield problem


def _keep_type(secret: Obj, old: Obj, context: Context) -> None:  # upstream: strategy.PrepareForUpdate (secret)
    if not secret.get("type"):
        secret["type"] = old.get("type", "")


SECRET = Strategy(  # upstream: strategy (secret)
    defaults=_default_secret,
    prepare_update=_keep_type,
    validate_create=creation(_secret),
    validate_update=update(unchanged("type"), _frozen("data"), as_created(_secret)),
    warnings=_secret_warnings,
    field_selectors=selectable("type"),
)
