"""Image references: just enough of their grammar to know the default pull policy."""

from __future__ import annotations

import re

from konverge.objects.text_cache import remembered

_NAME = re.compile(
    r"(?P<name>(?:(?:localhost|[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+(?::[0-9]+)?|[A-Za-z0-9-]+:[0-9]+"
    r"|\[[0-9a-fA-F:]+\](?::[0-9]+)?)/)?"
    r"[a-z0-9]+(?:(?:\.|_{1,2}|-+)[a-z0-9]+)*(?:/[a-z0-9]+(?:(?:\.|_{1,2}|-+)[a-z0-9]+)*)*)"
    r"(?::(?P<tag>\w[\w.-]{0,127}))?(?P<digest>@[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,})?"
)
_LONGEST_NAME = 255


@remembered(1024)
def default_pull_policy(image: str) -> str:
    """Always for `:latest` and for no tag at all; a reference that is no reference counts as tagged."""
    match = _NAME.fullmatch(image)
    if match is None or len(match["name"]) > _LONGEST_NAME:
        return "IfNotPresent"
    return "Always" if match["tag"] == "latest" or not (match["tag"] or match["digest"]) else "IfNotPresent"
