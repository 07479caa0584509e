"""YAML bodies: read as the real server's library reads them, with its words about what is wrong.

Both libraries are children of libyaml, so that the problem itself is worded alike; only the frame around it differs.
"""

from __future__ import annotations

from typing import Any

import msgspec
import yaml

_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_Dumper: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


class YamlError(Exception):
    """The message is the real server's."""


def to_json(body: bytes) -> bytes:
    """A YAML document as JSON."""
    try:
        return msgspec.json.encode(yaml.load(body, Loader=_Loader))  # noqa: S506 - a safe loader
    except yaml.YAMLError as error:
        raise YamlError(_words(error)) from None
    except (TypeError, ValueError, RecursionError) as error:
        raise YamlError(f"yaml: {error}") from None


def _words(error: yaml.YAMLError) -> str:
    problem = getattr(error, "problem", None)
    if problem is None:
        return "yaml: " + str(error).partition("\n")[0]
    mark = getattr(error, "context_mark", None) or getattr(error, "problem_mark", None)
    if mark is None or mark.line == 0:
        mark = getattr(error, "problem_mark", None)
    line = mark.line if mark is not None else 0
    if isinstance(error, yaml.scanner.ScannerError) and line:
        line += 1
    return f"yaml: line {line}: {problem}" if line else f"yaml: {problem}"


def repeated_keys(body: bytes) -> list[str]:
    """Keys that stand twice in a map: `line 4: key "w" already set in map`."""
    try:
        root = yaml.compose(body, Loader=_Loader)
    except (yaml.YAMLError, RecursionError):
        return []
    found: list[str] = []
    _walk(root, found)
    return found


def _walk(node: Any, found: list[str]) -> None:
    if isinstance(node, yaml.MappingNode):
        seen: set[str] = set()
        for key, value in node.value:
            if isinstance(key, yaml.ScalarNode):
                if key.value in seen:
                    found.append(f'line {key.start_mark.line + 1}: key "{key.value}" already set in map')
                seen.add(key.value)
            _walk(value, found)
    elif isinstance(node, yaml.SequenceNode):
        for item in node.value:
            _walk(item, found)


def dump(obj: Any) -> bytes:
    text: str = yaml.dump(obj, Dumper=_Dumper, default_flow_style=False, allow_unicode=True, width=1 << 20)
    return text.encode()
