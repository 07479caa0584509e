"""Hypothesis strategies for custom resources: any object that the API server would accept, from a class or a CRD.

    from konverge.testing import strategies

    @given(app=strategies.objects(WebApp))
    def test_every_app_has_a_deployment(app): ...

The schema says what is drawn (types, limits, patterns, formats, enums, list kinds, required fields); what it cannot say
in that way (CEL rules, `not`, unusual patterns) is left to the API server's own validation, which every object passes.
Needs Hypothesis: `pip install konverge[test]`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from konverge.apiserver.crd.serving.strategy import CustomKind
from konverge.apiserver.status import ApiError
from konverge.objects import CustomResource
from konverge.objects.codec import from_dict, to_dict
from konverge.objects.custom.definition import lone_crd_dict
from konverge.objects.kinds.apiextensions_v1 import CustomResourceDefinition
from konverge.testing.strategies.values import Obj, Values, accepted

__all__ = ["names", "objects", "objects_of_crd"]

T = TypeVar("T", bound=CustomResource[Any, Any])


def names() -> SearchStrategy[str]:
    """Names of objects: short ones that every kind takes.

    >>> names().example()   # doctest: +SKIP
    'a7-x'
    """
    return st.from_regex(r"\A[a-z]([-a-z0-9]{0,20}[a-z0-9])?\Z")


def objects(
    cls: type[T],
    *,
    name: SearchStrategy[str] | str | None = None,
    namespace: str = "default",
    fields: Mapping[str, SearchStrategy[Any]] | None = None,
) -> SearchStrategy[T]:
    """Objects of a custom resource's class.

        @given(app=objects(WebApp, fields={"spec.image": st.sampled_from(["nginx:1.27", "redis:8"])}))

    `fields` are strategies for some fields, by path (`spec.ports[].name`, `spec.env.*` for the values of a map); what
    they give must still be valid. A status is never drawn where the kind has it as a subresource.
    """
    drawn = objects_of_crd(
        lone_crd_dict(cls), version=cls.resource.version, name=name, namespace=namespace, fields=fields
    )
    return drawn.map(lambda obj: from_dict(cls, obj))


def objects_of_crd(
    definition: CustomResourceDefinition | Obj,
    *,
    version: str = "",
    name: SearchStrategy[str] | str | None = None,
    namespace: str = "default",
    fields: Mapping[str, SearchStrategy[Any]] | None = None,
) -> SearchStrategy[Obj]:
    """Objects of a CustomResourceDefinition, as plain data: in the given version, else in the one that is stored.

    @given(obj=objects_of_crd(yaml.safe_load(Path("crd.yaml").read_text())))
    """
    plain: Obj = to_dict(definition) if isinstance(definition, CustomResourceDefinition) else definition
    chosen = _version(plain, version)
    kind = CustomKind(plain, chosen)
    schema = {**kind.raw, "properties": dict(kind.raw.get("properties") or {})}
    metadata = schema["properties"].pop("metadata", {})
    for member in ("apiVersion", "kind", *(("status",) if kind.has_status else ())):
        schema["properties"].pop(member, None)
    schema["required"] = [
        n for n in schema.get("required") or () if n not in ("apiVersion", "kind", "metadata", "status")
    ]
    values = Values(fields or {})
    called = st.just(name) if isinstance(name, str) else name or _names(values, metadata)
    namespaced = plain["spec"]["scope"] == "Namespaced"

    def completed(drawn: tuple[Obj, str]) -> Obj:
        body, chosen_name = drawn
        place = {"name": chosen_name, "namespace": namespace} if namespaced else {"name": chosen_name}
        return {"apiVersion": f"{kind.group}/{kind.version}", "kind": kind.kind, "metadata": place, **body}

    drawn = st.tuples(values.of(schema, ""), called).map(completed)
    return accepted(drawn, lambda obj: _is_accepted(kind, obj))


def _version(definition: Obj, name: str) -> Obj:
    versions: list[Obj] = definition["spec"]["versions"]
    for version in versions:
        if version["name"] == name if name else version["storage"]:
            return version
    known = ", ".join(version["name"] for version in versions)
    raise LookupError(f"{definition['metadata']['name']} has no version {name!r}: it has {known}")


def _names(values: Values, metadata: Obj) -> SearchStrategy[str]:
    """By the schema, where a definition restricts the names of its objects."""
    schema = (metadata.get("properties") or {}).get("name") or {}
    limits = {key: schema[key] for key in ("pattern", "maxLength", "minLength", "enum") if key in schema}
    return values.of({"type": "string", "pattern": r"^[a-z]([-a-z0-9]{0,20}[a-z0-9])?$", **limits}, "metadata.name")


def _is_accepted(kind: CustomKind, obj: Obj) -> bool:
    try:
        return not kind.errors_of_new(obj)
    except ApiError:
        return False
