"""Which targets can be right, and how names are quoted for people and programs."""

from __future__ import annotations

from konverge.operators.nacos.database.contract import Engine, Target
from konverge.operators.nacos.database.errors import DatabaseError

_LONGEST_NAME = 255
_LONGEST_SECRET = 4096


def refuse_unusable(target: Target) -> None:
    """Raises InvalidTarget for what no server could accept, before anything is tried."""
    for name, text, longest in (
        ("host", target.host, _LONGEST_NAME),
        ("database", target.database, _LONGEST_NAME),
        ("username", target.username, _LONGEST_NAME),
        ("password", target.password, _LONGEST_SECRET),
    ):
        if not text and name != "password":
            raise DatabaseError("InvalidTarget", f"the database's {name} is empty: set it")
        if "\0" in text or len(text) > longest:
            raise DatabaseError("InvalidTarget", f"the database's {name} has a zero byte or is longer than {longest}")
        if not _encodable(text):
            raise DatabaseError("InvalidTarget", f"the database's {name} is not valid Unicode")
    if not 0 < target.port < 65536:
        raise DatabaseError("InvalidTarget", f"{target.port} is no port: give one from 1 to 65535")


def _encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def quote_name(engine: Engine, name: str) -> str:
    """A name of a database, table or user as the engine's SQL wants it."""
    mark = '"' if engine == "postgresql" else "`"
    return mark + name.replace(mark, mark * 2) + mark
