"""The samples that a check is given."""

from __future__ import annotations

from collections.abc import Sequence

from konverge.check.model import Delete, Obj


def by_kind(objects: Sequence[Obj], definitions: Sequence[Obj]) -> list[tuple[list[Obj], Obj]]:
    """The samples that the check is about, those of a kind together, with their definition."""
    known = {
        (definition["spec"]["group"], definition["spec"]["names"]["kind"]): definition
        for definition in definitions
        if definition.get("kind") == "CustomResourceDefinition"
    }
    chosen: dict[tuple[str, str], tuple[list[Obj], Obj]] = {}
    for obj in objects:
        key = (obj["apiVersion"].partition("/")[0], obj["kind"])
        if key in known:
            chosen.setdefault(key, ([], known[key]))[0].append(obj)
    return list(chosen.values())


def subjects(objects: Sequence[Obj], definitions: Sequence[Obj]) -> list[tuple[Obj, Obj]]:
    """The first sample of every kind that has a definition, with it."""
    return [(samples[0], definition) for samples, definition in by_kind(objects, definitions)]


def version_of(obj: Obj) -> str:
    return str(obj["apiVersion"].rpartition("/")[2])


def placed(sample: Obj, namespace: str, definitions: Sequence[Obj] = ()) -> Obj:
    """The sample in a namespace, if it names none; without one, if its definition is of the whole cluster."""
    metadata = sample["metadata"]
    for _, definition in subjects([sample], definitions):
        if definition["spec"].get("scope") == "Cluster":
            return {**sample, "metadata": {key: value for key, value in metadata.items() if key != "namespace"}}
    return {**sample, "metadata": {"namespace": namespace, **metadata}}


def deletion(obj: Obj) -> Delete:
    metadata = obj["metadata"]
    return Delete(obj["apiVersion"], obj["kind"], metadata.get("namespace", ""), metadata["name"])
