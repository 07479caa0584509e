"""YAML as sigs.k8s.io/yaml reads it, with goyaml v2: YAML 1.1 that becomes JSON.

What its scalars mean, `konverge.go_yaml` says. Here a repeated key is reported with its line, and bodies have limits.

A few bytes of YAML can mean very large values: endless levels, aliases of aliases. Levels are counted before the value
is built (the library would exhaust the stack), aliases before they are written out.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import yaml

from konverge import go_yaml
from konverge.apiserver import nesting
from konverge.apiserver.go import json_pieces

_BASE: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

_MOST_DIGITS = 1000
"""Of a whole number: a limit of ours, more than any type takes and less than Python refuses to read."""
_MOST_MERGED = 20_000
"""Members of a map that is merged from others: a limit of ours."""
_MOST_MEMBERS = 200_000
"""Of a body whose aliases are written out: a limit of ours. Upstream: decoder.unmarshal limits the ratio."""


class YamlError(ValueError):
    """A body that is not YAML; the message is goyaml's."""


class Parsed(NamedTuple):
    value: Any
    repeated: list[str]
    """`line 4: key "w" already set in map`"""


_SCALARS = frozenset(f"tag:yaml.org,2002:{name}" for name in ("null", "bool", "int", "float", "str"))
_EXCESSIVE = "yaml: document contains excessive aliasing"


class _Loader(go_yaml.Loader):
    def __init__(self, stream: bytes) -> None:
        super().__init__(stream)
        self.repeated: list[str] = []
        self._frees = b"*" not in stream
        """No part of the tree is used twice: each is given back when it has been read. All at once would take long."""

    def construct_object(self, node: Any, deep: bool = False) -> Any:
        if type(node) is yaml.ScalarNode and node.tag in _SCALARS:
            return self.yaml_constructors[node.tag](self, node)  # a scalar need not be remembered for its aliases
        return super().construct_object(node, deep)

    def construct_sequence(self, node: Any, deep: bool = False) -> list[Any]:
        if not isinstance(node, yaml.SequenceNode):
            return super().construct_sequence(node, deep)  # type: ignore[no-any-return]
        values = []
        for index, part in enumerate(node.value):
            values.append(self.construct_object(part, deep=True))
            if self._frees:
                node.value[index] = None
        return values

    def flatten_mapping(self, node: Any) -> None:
        written = len(node.value)
        super().flatten_mapping(node)
        if len(node.value) > max(written, _MOST_MERGED):
            raise YamlError(_EXCESSIVE)

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[str, Any]:
        self.flatten_mapping(node)
        mapping: dict[str, Any] = {}
        for index, (key_node, value_node) in enumerate(node.value):
            key = go_yaml.key_text(self.construct_object(key_node, deep=True))
            if key in mapping:
                line = key_node.start_mark.line + 1
                self.repeated.append(f'line {line}: key "{key}" already set in map')
            mapping[key] = self.construct_object(value_node, deep=True)
            if self._frees:
                node.value[index] = None
        return mapping


def _construct_int(loader: Any, node: Any) -> int | float | str:
    digits = len(loader.construct_scalar(node).replace("_", ""))
    if digits > _MOST_DIGITS:
        raise YamlError(f"yaml: a number of {digits} digits is out of range")
    return go_yaml.construct_int(loader, node)


def _construct_float(loader: Any, node: Any) -> int | float | str:
    value = go_yaml.construct_float(loader, node)
    return json_pieces.whole(value) if isinstance(value, float) else value  # upstream goes through JSON


_Loader.add_constructor("tag:yaml.org,2002:int", _construct_int)
_Loader.add_constructor("tag:yaml.org,2002:float", _construct_float)


class Body(bytes):
    """A body that has been parsed already, in a thread (`parse_ahead`)."""

    result: Parsed | YamlError


def parse_ahead(body: bytes) -> Body:
    """Parse a body in a thread, where it does not block the event loop. `parse` then has the result ready."""
    parsed = Body(body)
    try:
        parsed.result = parse(body)
    except YamlError as error:
        parsed.result = error
    return parsed


def parse(body: bytes) -> Parsed:
    """The first document of a body. Raises YamlError with a text like `yaml: line 2: found a tab character …`."""
    if isinstance(body, Body):
        if isinstance(body.result, YamlError):
            raise body.result
        return body.result
    try:
        _check_depth(body)
        loader = _Loader(body)
        try:
            value = loader.get_data() if loader.check_data() else None
        finally:
            loader.dispose()
        if b"*" in body:
            _check_size(value)
        return Parsed(value, loader.repeated)
    except yaml.YAMLError as error:
        raise YamlError(_message(error, body)) from None
    except YamlError:
        raise
    except (ValueError, RecursionError, UnicodeError, TypeError) as error:
        raise YamlError(f"yaml: {error}") from None


def parse_all(body: bytes) -> list[Any]:
    """Every document of a file, as kubectl reads it. Raises yaml.YAMLError, or ValueError for what is too large."""
    _check_depth(body, every=True)
    loader = _Loader(body)
    values = []
    try:
        while loader.check_data():
            values.append(loader.get_data())
    finally:
        loader.dispose()
    if b"*" in body:
        for value in values:
            _check_size(value)
    return values


_ODD_BREAKS = (b"\0", b"\r", b"\xc2\x85", b"\xe2\x80\xa8", b"\xe2\x80\xa9")
"""Lines may end in other ways, and texts may be in UTF-16."""
_INDENTED = re.compile(rb"\n[ \-?:]{%d}" % (nesting.MOST // 4))


def _may_be_deep(body: bytes) -> bool:
    """Whether a body can have too many levels at all: each takes a bracket, or a column of the indentation. A list may
    begin in the column of its key, so that a column can be two levels."""
    if body.count(b"[") + body.count(b"{") >= nesting.MOST // 4 or any(text in body for text in _ODD_BREAKS):
        return True
    return _INDENTED.search(b"\n" + body) is not None


def _check_depth(body: bytes, *, every: bool = False) -> None:
    if not _may_be_deep(body):
        return
    level = 0
    for event in yaml.parse(body, Loader=_BASE):
        if isinstance(event, yaml.CollectionStartEvent):
            level += 1
            if level > nesting.MOST:
                raise YamlError(f"yaml: {nesting.TOO_DEEP} of {nesting.MOST}")
        elif isinstance(event, yaml.CollectionEndEvent):
            level -= 1
        elif isinstance(event, yaml.DocumentEndEvent) and not every:
            return


def _check_size(value: Any) -> None:
    """What aliases share is written out each time that it is used; what contains itself would be endless."""
    sizes: dict[int, int] = {}

    def size(part: Any) -> int:
        if not isinstance(part, (dict, list)):
            return 1
        known = sizes.get(id(part))
        if known is None:
            sizes[id(part)] = 0
            known = 1 + sum(map(size, part.values() if isinstance(part, dict) else part))
            if known > _MOST_MEMBERS:
                raise YamlError(_EXCESSIVE)
            sizes[id(part)] = known
        elif known == 0:
            raise YamlError("yaml: an anchor's value contains itself")
        return known

    size(value)


def _message(error: yaml.YAMLError, body: bytes) -> str:
    if not isinstance(error, yaml.MarkedYAMLError):
        return f"yaml: {getattr(error, 'reason', error)}"
    if isinstance(error, yaml.composer.ComposerError) and error.problem == "found undefined alias":
        assert error.problem_mark is not None
        line = body.decode(errors="replace").splitlines()[error.problem_mark.line]
        name = re.match(r"[\w-]*", line[error.problem_mark.column + 1 :])
        return f"yaml: unknown anchor '{name.group() if name else ''}' referenced"
    problem = error.problem or error.context or "unknown problem parsing YAML content"
    for mark in (error.context_mark, error.problem_mark):
        if mark is not None and mark.line:
            # The parser counts from one in its own errors, but from zero in those of its scanner.
            return f"yaml: line {mark.line + isinstance(error, yaml.scanner.ScannerError)}: {problem}"
    return f"yaml: {problem}"
