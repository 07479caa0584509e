"""Whether a pod meets a standard."""

from __future__ import annotations

from functools import lru_cache

from konverge.apiserver.admission.security.checks import BASELINE, RESTRICTED, Finding, Look
from konverge.apiserver.admission.security.levels import Standard
from konverge.apiserver.strategy import Obj


@lru_cache(maxsize=256)
def _looks(standard: Standard) -> tuple[Look, ...]:
    """The checks of a standard, those of baseline first."""
    minor = standard.minor
    if standard.level == "privileged":
        return ()
    strict = [check for check in RESTRICTED if check.at(minor)] if standard.level == "restricted" else []
    replaced = {check.replaces for check in strict}
    checks = [check for check in BASELINE if check.id not in replaced] + strict
    return tuple(look for check in checks if (look := check.at(minor)) is not None)


def findings(standard: Standard, metadata: Obj, spec: Obj) -> list[Finding]:
    return [found for look in _looks(standard) if (found := look(metadata, spec)) is not None]


def detailed(found: list[Finding]) -> str:
    return ", ".join(f"{reason} ({detail})" if detail else reason for reason, detail in found)
