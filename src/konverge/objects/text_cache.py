"""Results remembered by the texts they were found for, as long as the texts are short.

What clients send is remembered here, so a bound on the number of entries alone would not bound the memory: a few
thousand texts of a megabyte each are some gigabytes.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import Any, TypeVar, cast

LONGEST = 512
"""Of a text that is remembered; names, keys and addresses are far shorter."""

F = TypeVar("F", bound=Callable[..., Any])


def remembered(entries: int) -> Callable[[F], F]:
    """As `lru_cache`, for functions of texts; long ones are computed each time."""

    def decorate(function: F) -> F:
        cached = lru_cache(maxsize=entries)(function)

        @wraps(function)
        def look(text: str, *more: Any) -> Any:
            if len(text) > LONGEST or (more and any(len(other) > LONGEST for other in more)):
                return function(text, *more)
            return cached(text, *more)

        return cast("F", look)

    return decorate
