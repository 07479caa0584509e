"""Which standard a namespace wants: by label, for enforcing, auditing and warning."""

from __future__ import annotations

import re

import msgspec

from konverge.apiserver import field_errors
from konverge.apiserver.field_errors import FieldError

PREFIX = "pod-security.kubernetes.io/"
LEVELS = ("privileged", "baseline", "restricted")
LATEST = 1 << 30
"""The minor version that is newer than all others."""
_VERSION = re.compile(r"v1\.([0-9]|[1-9][0-9]*)")


class Standard(msgspec.Struct, frozen=True):
    level: str = "privileged"
    minor: int = LATEST

    def __str__(self) -> str:
        return f"{self.level}:{'latest' if self.minor == LATEST else f'v1.{self.minor}'}"

    @property
    def strictness(self) -> int:
        return LEVELS.index(self.level)


class Policy(msgspec.Struct, frozen=True):
    """What is refused, and what is warned of. Audits go to a log that this server does not keep."""

    enforce: Standard
    warn: Standard


def policy_of(labels: dict[str, str] | None) -> tuple[Policy, list[FieldError]]:
    """The policy of a namespace. What cannot be read is taken most strictly for enforcing, else as nothing."""
    errors: list[FieldError] = []
    if not labels:
        return Policy(Standard(), Standard()), errors
    enforce, read = _standard(labels, "enforce", "restricted", errors)
    _standard(labels, "audit", "privileged", errors)
    warn, _ = _standard(labels, "warn", "privileged", errors)
    if f"{PREFIX}warn" not in labels and read and enforce.strictness > warn.strictness:
        warn = Standard(enforce.level, warn.minor if f"{PREFIX}warn-version" in labels else enforce.minor)
    return Policy(enforce, warn), errors


def _standard(labels: dict[str, str], mode: str, fallback: str, errors: list[FieldError]) -> tuple[Standard, bool]:
    """The standard of a mode, and whether its level was given and could be read."""
    level, minor, read = "privileged", LATEST, False
    label = f"{PREFIX}{mode}"
    if label in labels:
        read = labels[label] in LEVELS
        level = labels[label] if read else fallback
        if not read:
            path = f"metadata.labels[{label}]"
            errors.append(field_errors.invalid(path, labels[label], f"must be one of {', '.join(LEVELS)}"))
    label = f"{PREFIX}{mode}-version"
    if label in labels and labels[label] != "latest":
        found = _VERSION.fullmatch(labels[label])
        if found is None:
            path = f"metadata.labels[{label}]"
            errors.append(field_errors.invalid(path, labels[label], 'must be "latest" or "v1.x"'))
        else:
            minor = int(found[1])
    return Standard(level, minor), read
