"""Times that the server itself writes into objects."""

from __future__ import annotations

from konverge import clock


def timestamp() -> str:
    """Now, as conditions have it: whole seconds in UTC."""
    return clock.utc_now().strftime("%Y-%m-%dT%H:%M:%SZ")
