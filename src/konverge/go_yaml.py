"""YAML as kubectl and Helm read it: by sigs.k8s.io/yaml with goyaml v2, YAML 1.1 that becomes JSON.

It differs from PyYAML's safe loader: times stay texts, `1:30` is not a number but `1e3` and `089` are, `y` and `n` are
booleans, keys are texts. `dump` puts texts in quotes that would be read as something else. Importing this costs what
PyYAML costs.
"""

from __future__ import annotations

import math
import re
from typing import Any

import yaml
from yaml.resolver import Resolver as _AnyResolver

_BASE: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_TAG = "tag:yaml.org,2002:"
_BOOLS = {
    **dict.fromkeys(("y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"), True),
    **dict.fromkeys(("n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"), False),
}
_BASES = {"0b": 2, "0o": 8, "0x": 16}


class _Number:
    """The form of a number that begins with a sign or a digit: after that, underscores do not count anywhere."""

    def __init__(self, form: str) -> None:
        self._form = re.compile(form)

    def match(self, text: str) -> re.Match[str] | None:
        return self._form.fullmatch(text.replace("_", ""))


class Resolver(_AnyResolver):
    """What a text without quotes means. Upstream: resolve (goyaml.v2/resolve.go)."""

    yaml_implicit_resolvers = {
        first: [(tag, form) for tag, form in resolvers if tag in (f"{_TAG}null", f"{_TAG}merge")]
        for first, resolvers in _AnyResolver.yaml_implicit_resolvers.items()
    }

    @classmethod
    def add(cls, kind: str, form: Any, first: str) -> None:
        cls.add_implicit_resolver(f"{_TAG}{kind}", form, list(first))


Resolver.add("bool", re.compile("(?:" + "|".join(_BOOLS) + ")$"), "yYnNtTfFoO")
Resolver.add(
    "int",
    _Number(r"[-+]?(?:0[bB][01]+|0[xX][0-9a-fA-F]+|0[oO]?[0-7]+|0|[1-9][0-9]*)|0b[-+][01]+"),
    "-+0123456789",
)
Resolver.add("float", _Number(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?"), "-+0123456789")
_DIGITS = "[0-9]+(?:_[0-9]+)*"
Resolver.add("float", re.compile(rf"\.{_DIGITS}(?:[eE][-+]?{_DIGITS})?$"), ".")


class Loader(_BASE):  # type: ignore[misc]
    """For `yaml.load`."""

    yaml_implicit_resolvers = Resolver.yaml_implicit_resolvers

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[str, Any]:
        self.flatten_mapping(node)
        return {
            key_text(self.construct_object(key, deep=True)): self.construct_object(value, deep=True)
            for key, value in node.value
        }


def key_text(key: Any) -> str:
    """A key as JSON has it."""
    if isinstance(key, bool):
        return "true" if key else "false"
    return "null" if key is None else str(key)


def _undecodable(node: Any, kind: str) -> ValueError:
    """Of a tag that was written out, on something else."""
    return ValueError(f"cannot decode !!str `{node.value}` as a !!{kind}")


def _construct_bool(loader: Any, node: Any) -> bool:
    text = loader.construct_scalar(node)
    if text not in _BOOLS:
        raise _undecodable(node, "bool")
    return _BOOLS[text]


def construct_int(loader: Any, node: Any) -> int | float | str:
    """A number that no float64 holds is a text, here and below. Upstream: resolve (goyaml resolve.go)."""
    text = loader.construct_scalar(node).replace("_", "")
    sign, digits = (-1, text[1:]) if text.startswith("-") else (1, text.lstrip("+"))
    base = _BASES.get(digits[:2].lower())
    try:
        value = int(digits[2:], base) if base else int(digits, 8 if digits.startswith("0") else 10)
    except ValueError:
        raise _undecodable(node, "int") from None
    try:
        return sign * value if value < 1 << 63 else float(sign * value)
    except OverflowError:
        return str(node.value)


def construct_float(loader: Any, node: Any) -> float | str:
    text: str = loader.construct_scalar(node)
    try:
        value = float(text.replace("_", ""))
    except ValueError:
        raise _undecodable(node, "float") from None
    return text if math.isinf(value) else value


def _construct_map(loader: Any, node: Any) -> Any:
    if not isinstance(node, yaml.MappingNode):
        raise _undecodable(node, "map")
    mapping: dict[str, Any] = {}
    yield mapping
    mapping.update(loader.construct_mapping(node))


def _construct_unknown(loader: Any, tag: str, node: Any) -> Any:
    """A tag that is not known is ignored."""
    if isinstance(node, yaml.MappingNode):
        return loader.construct_mapping(node)
    return loader.construct_sequence(node, deep=True) if isinstance(node, yaml.SequenceNode) else node.value


Loader.add_constructor(f"{_TAG}bool", _construct_bool)
Loader.add_constructor(f"{_TAG}int", construct_int)
Loader.add_constructor(f"{_TAG}float", construct_float)
Loader.add_constructor(f"{_TAG}map", _construct_map)
Loader.add_multi_constructor("!", _construct_unknown)
for _name in ("timestamp", "set", "omap", "pairs"):  # JSON has no form for these
    Loader.add_constructor(f"{_TAG}{_name}", lambda loader, node: _construct_unknown(loader, "", node))

_RESOLVER: Any = Resolver()


def is_text(plain: str) -> bool:
    """Whether these characters, without quotes, are read as a text.

    >>> is_text("shop"), is_text("1:30"), is_text("y"), is_text("12345e7")
    (True, True, False, False)
    """
    return bool(_RESOLVER.resolve(yaml.ScalarNode, plain, (True, False)) == f"{_TAG}str")


class _Dumper(yaml.SafeDumper):
    """The base class puts in quotes what PyYAML itself would not read as a text."""


def _represented(dumper: Any, text: str) -> Any:
    return dumper.represent_scalar(f"{_TAG}str", text, style=None if is_text(text) else "'")


_Dumper.add_representer(str, _represented)


def dump(value: Any) -> str:
    """YAML for people, with keys in their order, that PyYAML and goyaml read as the same."""
    text: str = yaml.dump(value, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=120)
    return text
