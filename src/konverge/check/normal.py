"""A state as two runs can share it: names, uids, addresses and times of this one run are replaced by what they mean.

A name with a generated part becomes its folded form wherever it stands, also inside of values; a uid becomes "the uid
of that object", so that a reference to an object that is gone differs from one to the object that is there; the same
for the addresses of pods and Services.
"""

from __future__ import annotations

import functools
import re
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from konverge.check.differences import ABSENT, Masks, differences
from konverge.check.folding import folded
from konverge.check.model import Obj, Run

_UID = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
_TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)"
_ADDRESS = r"(?<![\d.])\d{1,3}(?:\.\d{1,3}){3}(?![\d.])"
_VOLUME = r"kube-api-access-[a-z0-9]{5}(?![a-z0-9])"  # upstream: plugin/pkg/admission/serviceaccount

States = dict[str, list[Obj]]
"""By folded key; several objects may have the same."""


def normal(state: dict[str, Obj]) -> States:
    """The objects of a state under names that two runs share, with values that two runs can share.

    Several oracles ask for the same states, and every run for those of the reference: the last ones are remembered.
    What is returned is shared, and must not be changed.
    """
    key = (id(state), *map(id, state.values()))
    with _lock:
        if key in _last:
            _last.move_to_end(key)
            return _last[key][1]
    made = _normal(state)
    with _lock:
        _last[key] = (state, made)  # the state as well: an id means nothing once its object is gone
        if len(_last) > _REMEMBERED:
            _last.popitem(last=False)
    return made


_REMEMBERED = 64
_last: OrderedDict[tuple[int, ...], tuple[dict[str, Obj], States]] = OrderedDict()
_lock = threading.Lock()


def _normal(state: dict[str, Obj]) -> States:
    if not state:
        return {}
    known = _meanings(state)
    names = sorted((name for name in known if not re.fullmatch(f"{_UID}|{_ADDRESS}", name)), key=len, reverse=True)
    rewritten = _texts(tuple(names)).rewriter(known)
    shared: States = {}
    for key in sorted(state):
        obj = rewritten(state[key])
        _drop_history(obj.get("status"))
        shared.setdefault(folded(rewritten(key)), []).append(obj)
    for objects in shared.values():
        if len(objects) > 1:
            objects.sort(key=_order)
    return shared


_MOST_TEXTS = 100_000


class _Texts:
    """Which texts have something of one run in them. States have the same texts again and again, and few of those."""

    def __init__(self, names: tuple[str, ...]) -> None:
        generated = rf"(?<![\w-])(?:{'|'.join(map(re.escape, names))})(?!\w)"
        self._pattern = re.compile("|".join((_UID, _TIME, _ADDRESS, _VOLUME, *([generated] if names else ()))))
        self._is_of_one_run: dict[str, bool] = {}

    def rewriter(self, known: dict[str, str]) -> Callable[[Any], Any]:
        """A function that copies a value, with what its texts mean."""
        pattern, remembered = self._pattern, self._is_of_one_run
        if len(remembered) > _MOST_TEXTS:
            remembered.clear()

        def text(value: str) -> str:
            found = remembered.get(value)
            if found is None:
                found = remembered[value] = pattern.search(value) is not None
            return pattern.sub(lambda match: _meaning(match.group(), known), value) if found else value

        def copied(value: Any) -> Any:
            if isinstance(value, str):
                return text(value)
            if isinstance(value, dict):
                return {text(key): copied(item) for key, item in value.items()}
            return [copied(item) for item in value] if isinstance(value, list) else value

        return copied


_texts = functools.lru_cache(maxsize=16)(_Texts)


def _meanings(state: dict[str, Obj]) -> dict[str, str]:
    known: dict[str, str] = {}
    for key in sorted(state):
        metadata, common = state[key]["metadata"], folded(key)
        known[str(metadata.get("uid", ""))] = f"<uid of {common}>"
        if folded(metadata["name"]) != metadata["name"] and not re.fullmatch(_UID, metadata["name"]):
            known[metadata["name"]] = folded(metadata["name"])
        for address in _addresses(state[key]):
            known.setdefault(address, f"<address of {common}>")
    known.pop("", None)
    return known


def _addresses(obj: Obj) -> Iterable[str]:
    spec, status = obj.get("spec"), obj.get("status")
    if isinstance(status, dict) and isinstance(status.get("podIP"), str):
        yield status["podIP"]
    if isinstance(spec, dict) and isinstance(spec.get("clusterIP"), str):
        yield spec["clusterIP"]


def _meaning(text: str, known: dict[str, str]) -> str:
    if text in known:
        return known[text]
    if re.fullmatch(_UID, text):
        return "<uid of what is gone>"
    if re.fullmatch(_TIME, text):
        return "<time>"
    return "kube-api-access-*" if re.fullmatch(_VOLUME, text) else text


def _drop_history(status: Any) -> None:
    """Lists of what happened when, without names: no two runs share them, and only people read them."""
    if not isinstance(status, dict):
        return
    for field, items in list(status.items()):
        if isinstance(items, list) and any(_is_entry(item) for item in items):
            del status[field]


def _is_entry(item: Any) -> bool:
    return isinstance(item, dict) and "<time>" in item.values() and not item.keys() & {"name", "type", "id"}


def _order(obj: Obj) -> bytes:
    """Objects of one folded name are matched by what is compared of them, and not by chance."""
    metadata = {key: obj["metadata"][key] for key in ("labels", "annotations") if key in obj["metadata"]}
    spec = {key: value for key, value in (obj.get("spec") or {}).items() if key != "nodeName"}
    return msgspec.json.encode([metadata, spec], order="sorted")


# ------------------------------------------------------------------ what is compared of an object

COUNTED = frozenset(("pods", "persistentvolumeclaims", "batch/jobs"))
"""Made by controllers of the cluster, and yet counted: a missing or surplus one is something that users feel."""

_CLUSTERS = r"[^.:]*|[^:]*\.k8s\.io"
"""Groups whose controllers are the cluster's own, as the start of a pattern over `resource:path`."""

CLUSTERS = Masks(
    (
        rf"(?:{_CLUSTERS})(?:/[^:]*)?:status\.(?!(?:replicas|readyReplicas|availableReplicas|updatedReplicas|succeeded"
        r"|failed|active|phase|loadBalancer|capacity)\b).*",
        r"pods:status\.(?!phase$).*",
        r"persistentvolumeclaims:metadata\.(finalizers.*|annotations\.volume.*)",
        r"[^:]*:.*(pod-template-hash|controller-revision-hash|controller-uid).*",
        r"pods:spec\.(hostname|schedulingGates|priority|preemptionPolicy)",
    )
)
"""What the controllers of the cluster decide, whatever the operator does."""


def made_by_others(runs: Iterable[Run]) -> frozenset[str]:
    """The folded keys of what the operator or the user has made; all else was derived by the cluster."""
    return frozenset(
        folded(str(change.ref))
        for run in runs
        for change in run.changes
        if change.moment.type == "ADDED" and change.writer != "cluster"
    )


def compared(key: str, one: Obj, other: Obj, masks: Masks, *, derived: bool) -> list[tuple[str, Any, Any]]:
    """The fields of two objects that differ and count."""
    resource = key.partition(" ")[0]
    if derived and resource not in COUNTED:
        return []
    return [
        (path, left, right)
        for path, left, right in differences(one, other)
        if _counts(resource, path, left, right, masks)
    ]


def _counts(resource: str, path: str, one: Any, other: Any, masks: Masks) -> bool:
    """Whether a difference says something. No labels are the same as labels without any: where only one of two objects
    has some, it is each of them that does or does not."""
    if masks.hides(resource, path) or CLUSTERS.hides(resource, path) or _is_count(resource, path, one, other):
        return False
    whole = one if other == ABSENT else other if one == ABSENT else None
    if not isinstance(whole, dict) or not whole or not path.endswith(_MAPS):
        return True
    return any(_counts(resource, f"{path}.{key}", value, ABSENT, masks) for key, value in whole.items())


_MAPS = ("metadata.labels", "metadata.annotations")
_NOTED = re.compile(r"(?:.*\.)?metadata\.(labels|annotations)\.(.+)")
_VERSIONS = re.compile(r"(?:.*[-_./])?(?:rv|resource-?version|revision|generation)", re.IGNORECASE)


def _is_count(resource: str, path: str, one: Any, other: Any) -> bool:
    """A number that an object notes of another one's versions (`owner-rv`), or a program of its own on its pod.

    It says how often something was written, and no two runs write equally often.
    """
    noted = _NOTED.fullmatch(path)
    if noted is None or not all(
        value == ABSENT or (isinstance(value, str) and value.isdigit()) for value in (one, other)
    ):
        return False
    if _VERSIONS.fullmatch(noted[2]):
        return True  # also where only one has it: some note it when they write a second time
    return resource == "pods" and noted[1] == "annotations" and ABSENT not in (one, other)


def counted(key: str, objects: list[Obj], *, derived: bool) -> int:
    """How many of these objects count."""
    if not derived:
        return len(objects)
    if key.partition(" ")[0] not in COUNTED:
        return 0
    return sum(1 for obj in objects if not _finished(obj))


def _finished(obj: Obj) -> bool:
    """A pod that has ended is history."""
    status = obj.get("status")
    return obj.get("kind") == "Pod" and isinstance(status, dict) and status.get("phase") in ("Succeeded", "Failed")
