"""Which fields of an object hold what must not be shown."""

from __future__ import annotations

_CONTENT = frozenset(("data", "stringData"))
_TOKENS = {"TokenReview": ("spec", "spec.token"), "TokenRequest": ("status", "status.token")}
_COPY = "metadata.annotations.kubectl.kubernetes.io/last-applied-configuration"


def is_confidential(kind: str, path: str) -> bool:
    """Whether a field holds content of a Secret (the content itself, or the copy that `kubectl apply` keeps), or a
    token.

    >>> is_confidential("Secret", "data.password"), is_confidential("Secret", "metadata.labels.app")
    (True, False)
    """
    if kind in _TOKENS:
        return path in _TOKENS[kind]
    # All annotations at once, where there were none before, may have the copy among them.
    inside = path.partition(".")[0] in _CONTENT or path in (_COPY, "metadata.annotations")
    return kind == "Secret" and inside
