"""Sharding."""

import konverge.runtime.sharding.shares  # noqa: F401 - before any loop runs
