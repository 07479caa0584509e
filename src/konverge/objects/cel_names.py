"""Names of fields in CEL: which cannot be written as they are, and how they are written instead.

In the rules of a definition a reserved word stands between underscores (`self.__namespace__`), and what no identifier
has is spelled out (`self.my__dash__field`). In admission policies `object` is plain data, and its names are its own.
Upstream: Escape and Unescape (apiserver/pkg/cel/escaping.go).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

_WORDS: Final = (
    "true false null in as break const continue else for function if import let loop package namespace return var "
    "void while"
)
RESERVED: Final = frozenset(_WORDS.split())
IDENTIFIER: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*").fullmatch

_SPELLED: Final = {"__": "__underscores__", ".": "__dot__", "-": "__dash__", "/": "__slash__"}
_READ: Final = {spelled: sign for sign, spelled in _SPELLED.items()}
_WRITABLE: Final = re.compile(r"[a-zA-Z0-9_./-]+").fullmatch
_QUOTES: Final = r"'''|\"\"\"|'|\""
_APART: Final = rf"//[^\n]*|\b[bB]?[rR](?P<raw>{_QUOTES}).*?(?P=raw)|(?P<quote>{_QUOTES})(?:\\.|.)*?(?P=quote)"
"""Comments and texts: what looks like a name in them is none."""
_SELECTED: Final = re.compile(rf"{_APART}|\.\s*\??\s*(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?!\s*\(|[A-Za-z0-9_])", re.S)
_TESTED: Final = re.compile(rf"{_APART}|\bhas\((?P<of>[\w.\s]*?)\.\s*(?P<name>[A-Za-z_][A-Za-z0-9_]*)\s*\)", re.S)


def escape(name: str) -> str | None:
    """The name of a field in a rule; None if there is no way to write it.

    >>> [escape(name) for name in ("size", "namespace", "my-field", "a__b", "1st")]
    ['size', '__namespace__', 'my__dash__field', 'a__underscores__b', None]
    """
    if not name or name[0].isdigit():
        return None
    if name in RESERVED:
        return f"__{name}__"
    return re.sub(r"__|[./-]", lambda match: _SPELLED[match[0]], name) if _WRITABLE(name) else None


def unescape(name: str) -> str:
    """The field that a rule means by a name.

    >>> [unescape(name) for name in ("size", "__namespace__", "my__dash__field", "a__underscores__b")]
    ['size', 'namespace', 'my-field', 'a__b']
    """
    if name.startswith("__") and name.endswith("__") and name[2:-2] in RESERVED:
        return name[2:-2]
    return re.sub(r"__(?:underscores|dot|dash|slash)__", lambda match: _READ[match[0]], name)


def reserved_in(expression: str) -> str | None:
    """The first reserved word that is selected as if it were a name.

    >>> reserved_in("self.ref.namespace != 'a.package'"), reserved_in("self.__namespace__ != 'a.package'")
    ('namespace', None)
    """
    names = (match["name"] for match in _SELECTED.finditer(expression))
    return next((name for name in names if name in RESERVED), None)


def unescaped_in(expression: str, fields: Iterable[str]) -> str | None:
    """The first of these fields that is written as it is although it has to be escaped.

    >>> unescaped_in("self.my-field > self.size", ["size", "my-field"])
    'my-field'
    """
    code = re.sub(_APART, "''", expression, flags=re.S)
    awkward = (name for name in fields if escape(name) != name)
    return next((name for name in awkward if re.search(rf"\.\s*{re.escape(name)}(?![A-Za-z0-9_(])", code)), None)


def over_plain_data(expression: str) -> str:
    """A rule over the fields of a schema as an expression over plain data, where names are not escaped.

    >>> over_plain_data("has(self.my__dash__field) && self.__namespace__ == self.a.my__dash__field")
    '("my-field" in self) && self.namespace == self.a["my-field"]'
    """
    return _SELECTED.sub(_selected, _TESTED.sub(_tested, expression))


def _tested(match: re.Match[str]) -> str:
    """`has()` takes a selection alone; for other names there is `in`."""
    name = unescape(match["name"] or "")
    return match[0] if not name or IDENTIFIER(name) else f'("{name}" in {match["of"]})'


def _selected(match: re.Match[str]) -> str:
    written = match["name"]
    if not written or (name := unescape(written)) == written:
        return match[0]
    optional = "?" if "?" in match[0] else ""
    return f".{optional}{name}" if IDENTIFIER(name) else f'[{optional}"{name}"]'
