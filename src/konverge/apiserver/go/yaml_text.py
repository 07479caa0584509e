"""YAML as sigs.k8s.io/yaml writes it, with goyaml v2.

It differs from PyYAML's safe dumper: a text that could be read as something else is in double quotes, one of several
lines is written as a block, and nothing is an alias of something above it.
"""

from __future__ import annotations

from typing import Any

import yaml

from konverge.go_yaml import is_text

_BASE: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
_TEXT = "tag:yaml.org,2002:str"
_OTHER = frozenset(f"tag:yaml.org,2002:{name}" for name in ("bool", "float", "int", "merge", "null", "timestamp"))


class _Dumper(_BASE):  # type: ignore[misc]
    def ignore_aliases(self, data: Any) -> bool:
        return True


def _represented(dumper: Any, text: str) -> Any:  # upstream: encoder.stringv (goyaml.v2/encode.go)
    return dumper.represent_scalar(_TEXT, text, style=_style(dumper, text))


def _style(dumper: Any, text: str) -> str | None:
    if "\n" in text:
        return "|"
    ambiguous = not is_text(text) or dumper.resolve(yaml.ScalarNode, text, (True, False)) in _OTHER
    return '"' if ambiguous else None


_Dumper.add_representer(str, _represented)


def dump(value: Any) -> str:
    text: str = yaml.dump(value, Dumper=_Dumper, default_flow_style=False, allow_unicode=True)
    return text
