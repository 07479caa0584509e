"""The console: a whole cluster in a browser, and why anything is as it is. docs/console.md describes it.

    console = Console(transport)            # any transport to an API server, without credentials
    async with console.serving("127.0.0.1", 8083) as address: ...

It stores nothing and has no rights of its own: what a browser asks for is asked at the API server with the caller's own
credentials. Operators add pages of their own by a `Page`. The names are loaded when they are first used: an operator
that declares a page imports no server.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from konverge.lazy_imports import lazy_names

if TYPE_CHECKING:
    from konverge.console.app import About as About
    from konverge.console.app import Console as Console
    from konverge.console.pages import Action as Action
    from konverge.console.pages import Card as Card
    from konverge.console.pages import Column as Column
    from konverge.console.pages import Input as Input
    from konverge.console.pages import Page as Page
    from konverge.console.sessions import Identity as Identity
    from konverge.console.sessions import Owner as Owner

__all__, __getattr__, __dir__ = lazy_names(
    __name__,
    {
        "konverge.console.app": "About Console",
        "konverge.console.pages": "Action Card Column Input Page",
        "konverge.console.sessions": "Identity Owner",
    },
)
