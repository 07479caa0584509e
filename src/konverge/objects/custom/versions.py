"""Several classes as versions of one resource: that they belong together, and which of them is stored."""

from __future__ import annotations

from typing import Any

from konverge.objects.custom.resource import CustomResource

Kind = type[CustomResource[Any, Any]]


def check_same(classes: tuple[Kind, ...]) -> None:
    """Raise TypeError unless all are versions of one resource."""
    first = classes[0]
    for cls in classes[1:]:
        if _identity(cls) != _identity(first):
            raise TypeError(
                f"{cls.__name__} is another resource than {first.__name__} ({_identity(cls)}, {_identity(first)}); "
                'versions of one resource share group, kind, plural and scope: give kind="…" in the class'
            )


def _identity(cls: Kind) -> tuple[str, str, str, bool]:
    return cls.resource.group, cls.resource.kind, cls.resource.plural, cls.resource.namespaced


def named_versions(classes: tuple[Kind, ...]) -> list[tuple[str, Kind]]:
    """The names of all versions, each with its class."""
    pairs = [(version, cls) for cls in classes for version in cls.options.versions]
    if len({version for version, _ in pairs}) != len(pairs):
        raise TypeError(f"each version once, got {[version for version, _ in pairs]}")
    return pairs


def stored_version(classes: tuple[Kind, ...]) -> tuple[str, Kind]:
    """The version in which objects are stored: of the class with `storage=True`, else the first that may be."""
    pairs = named_versions(classes)
    chosen = [(version, cls) for version, cls in pairs if cls.options.storage]
    candidates = [(version, cls) for version, cls in pairs if cls.options.storage is None]
    if not (chosen or candidates) or len({cls for _, cls in chosen}) > 1:
        raise TypeError("exactly one class may have storage=True, and one has to be stored")
    return (chosen or candidates)[0]
