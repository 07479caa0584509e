"""The samples that a check is given."""

from __future__ import annotations

from collections.abc import Sequence

from konverge.apiserver.registry import Registry
from konverge.check.manifests import CannotCheck
from konverge.check.model import Delete, Obj


def require_usable(objects: Sequence[Obj], definitions: Sequence[Obj]) -> None:
    """Raises CannotCheck for samples that no run could create, change and delete.

    An operator that is given without any definition may make them itself, so that nothing is known of its kinds.
    """
    defined = [*definitions, *(obj for obj in objects if obj["kind"] == "CustomResourceDefinition")]
    builtin = Registry.builtin()
    for obj in objects:
        if not obj["metadata"].get("name"):
            raise CannotCheck(f"a sample of kind {obj['kind']} has no metadata.name, only generateName: give it a name")
        group, _, version = obj["apiVersion"].rpartition("/")
        known = by_kind([obj], defined)
        if known:
            _require_version(obj, known[0][1])
        elif definitions and builtin.by_kind(group, version, obj["kind"]) is None:
            raise CannotCheck(
                f"nothing defines the kind of the sample {_named(obj)}: correct its apiVersion and kind, "
                "or give the definition with --crds"
            )


def _require_version(obj: Obj, definition: Obj) -> None:
    spec = definition["spec"]  # an old definition may have the one version alone
    versions = spec.get("versions") or ([{"name": spec["version"]}] if spec.get("version") else ())
    served = [item["name"] for item in versions if item.get("served", True)]
    if version_of(obj) not in served:
        listed = ", ".join(served) or "no version at all"
        raise CannotCheck(
            f"the sample {_named(obj)} is of a version that is not served: its definition serves {listed}; "
            "correct the sample"
        )


def _named(obj: Obj) -> str:
    return f"{obj['apiVersion']} {obj['kind']} {obj['metadata']['name']}"


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
