"""The text of an error in events and conditions: the server's own message, as client-go gives it."""

from __future__ import annotations

from konverge.client import ApiStatusError


def message_of(error: BaseException) -> str:
    """What the server said, without the request and the hint that a person at a terminal gets. Upstream: err.Error().

    >>> from konverge.client import NotFound
    >>> from konverge.objects.meta import Status
    >>> message_of(NotFound(Status(message='pods "a" not found'), request="GET /api/v1/namespaces/x/pods/a"))
    'pods "a" not found'
    """
    return error.message if isinstance(error, ApiStatusError) and error.message else str(error)
