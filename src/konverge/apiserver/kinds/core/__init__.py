"""The kinds of the core group."""

from __future__ import annotations

from konverge.apiserver.strategy import Strategy

STRATEGIES: dict[str, Strategy] = {}
