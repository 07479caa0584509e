"""The vocabulary of cells: how values, ages, labels, selectors and lists are shown."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from itertools import islice
from typing import Any

from konverge import clock
from konverge.apiserver.crd.serving import columns
from konverge.apiserver.strategy import Obj
from konverge.objects.labels import SelectorError, from_selector_dict
from konverge.objects.quantity import Quantity

Cell = Callable[[Obj], Any]

NONE, UNSET, UNKNOWN = "<none>", "<unset>", "<unknown>"
_SHOWN = 3


def at(path: str, default: Any = "") -> Cell:
    """The value at a dotted path, or the default where it is missing or null."""
    names = path.split(".")

    def cell(obj: Obj) -> Any:
        value: Any = obj
        for name in names:
            value = value.get(name)
            if value is None:
                return default
        return value

    return cell


def text_at(path: str, default: str = NONE) -> Cell:
    """The text at a path; the default also where it is empty."""
    value_at = at(path)
    return lambda obj: value_at(obj) or default


def count(*paths: str) -> Cell:
    """How many entries the lists or maps at some paths have together."""
    entries_at = [at(path, ()) for path in paths]
    return lambda obj: sum(len(entries(obj)) for entries in entries_at)


def name(obj: Obj) -> str:
    return str(obj["metadata"].get("name", ""))


def created_at(obj: Obj) -> str:
    return obj["metadata"].get("creationTimestamp") or "0001-01-01T00:00:00Z"


def seconds(stamp: str) -> float:
    return datetime.fromisoformat(stamp).timestamp()


def duration(elapsed: float) -> str:
    """A number of seconds in short. Upstream: HumanDuration (apimachinery/pkg/util/duration)."""
    return columns.age(elapsed)


def since(stamp: str | None, default: str = UNKNOWN) -> str:
    """The time since a moment."""
    return duration(clock.now() - seconds(stamp)) if stamp else default


def since_at(path: str, default: str = "") -> Cell:
    stamp_at = at(path)
    return lambda obj: since(stamp_at(obj), default)


def age(obj: Obj) -> str:
    return since(obj["metadata"].get("creationTimestamp"))


def quantity(value: Any) -> str:
    return str(Quantity(value)) if value is not None else "0"


def labels(pairs: Mapping[str, str] | None) -> str:
    return ",".join(f"{key}={pairs[key]}" for key in sorted(pairs)) if pairs else NONE


def labels_at(path: str) -> Cell:
    pairs_at = at(path, None)
    return lambda obj: labels(pairs_at(obj))


def selector_at(path: str, empty: str = NONE, invalid: str = "<error>") -> Cell:
    """A LabelSelector as text."""
    selector = at(path, None)

    def cell(obj: Obj) -> str:
        try:
            return str(from_selector_dict(selector(obj))) or empty
        except SelectorError:
            return invalid

    return cell


def each(path: str, key: str) -> Cell:
    """One member of each entry of a list: the names of containers."""
    entries = at(path, ())
    return lambda obj: ",".join(entry.get(key, "") for entry in entries(obj))


def joined(path: str, empty: str = "") -> Cell:
    texts = at(path, ())
    return lambda obj: ",".join(texts(obj)) or empty


def pair(path: str, first: str, second: str, empty: str = "") -> Cell:
    """Two members of an object with a slash between: the namespace and the name of a reference."""
    reference_at = at(path)

    def cell(obj: Obj) -> str:
        reference = reference_at(obj)
        return f"{reference.get(first, '')}/{reference.get(second, '')}" if reference else empty

    return cell


def shown(path: str, default: str) -> Cell:
    """Any value as text."""
    value_at = at(path, default)
    return lambda obj: str(value_at(obj))


def some(texts: Iterable[str], total: int, empty: str = UNSET) -> str:
    """The first few of so many texts, and how many more there are. Upstream: listWithMoreString."""
    joined = ",".join(islice(texts, _SHOWN))
    return f"{joined} + {total - _SHOWN} more..." if total > _SHOWN else joined or empty


def status_of(obj: Obj) -> Obj:
    """An object's status; a new object may have none."""
    return obj.get("status") or {}


def condition(obj: Obj, kind: str) -> Obj | None:
    """The first condition of a type."""
    for candidate in status_of(obj).get("conditions") or ():
        if candidate.get("type") == kind:
            return dict(candidate)
    return None


def is_true(obj: Obj, kind: str) -> bool:
    return (condition(obj, kind) or {}).get("status") == "True"
