"""The kinds of the core group."""

from __future__ import annotations

from konverge.apiserver.kinds.core.pods import POD
from konverge.apiserver.strategy import Strategy

STRATEGIES: dict[str, Strategy] = {
    "Pod": POD,
}
