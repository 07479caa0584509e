"""How many examples property tests take, by profile: few in the fast suite, many in the long one."""

from __future__ import annotations

from hypothesis import settings


def examples(share: float) -> int:
    """A share of what the profile has, for tests whose single examples are expensive (or cheap)."""
    return max(1, round(settings.default.max_examples * share))
