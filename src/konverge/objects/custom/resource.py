"""`CustomResource`: a kind of one's own as a class.

    class WebApp(CustomResource[WebAppSpec, WebAppStatus], group="apps.example.com", version="v1", short_names=["wa"]):
        \"\"\"A web application.\"\"\"

The class keywords say what the definition says besides the schema. From them and from the two type arguments the
metaclass derives the fields of the object (`api_version`, `kind`, `spec`, `status`) and its `resource`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar, get_args, get_origin

import msgspec
from msgspec import Meta

from konverge.objects.meta import Object
from konverge.objects.model import Model, ModelMeta, field, required
from konverge.objects.names import dns_1035_errors, dns_subdomain_errors
from konverge.objects.resource import Resource

if TYPE_CHECKING:
    from konverge.objects.custom.conversion import Converter

_Spec = TypeVar("_Spec", bound=Model)
_Status = TypeVar("_Status", bound=Model)


class NoStatus(Model):
    """The status of a resource that has none: `CustomResource[Spec, NoStatus]`."""


class Column(msgspec.Struct, frozen=True):
    """A column of `kubectl get`. Without a type, it is taken from the field that the path leads to."""

    name: str
    path: str
    type: str | None = None
    format: str | None = None
    description: str | None = None
    priority: int = 0


class Scale(msgspec.Struct, frozen=True):
    """Where `kubectl scale` and autoscalers find their numbers."""

    spec: str = ".spec.replicas"
    status: str = ".status.replicas"
    selector: str | None = None


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """What a class says about its definition, besides the schema."""

    versions: tuple[str, ...]
    singular: str
    list_kind: str
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    status: bool = True
    scale: Scale | None = None
    columns: tuple[Column, ...] = ()
    selectable: tuple[str, ...] = ()
    deprecated: str | bool = False
    served: bool = True
    storage: bool | None = None


class CustomResourceMeta(ModelMeta):
    """Takes the class keywords and completes the class."""

    def __new__(
        mcls: type[CustomResourceMeta],
        name: str,
        bases: tuple[type, ...],
        namespace: dict[str, Any],
        *,
        group: str = "",
        version: str | None = None,
        versions: Sequence[str] = (),
        kind: str | None = None,
        plural: str | None = None,
        singular: str | None = None,
        list_kind: str | None = None,
        short_names: Sequence[str] = (),
        categories: Sequence[str] = (),
        namespaced: bool = True,
        status: bool | None = None,
        scale: Scale | None = None,
        columns: Sequence[Column] = (),
        selectable: Sequence[str] = (),
        deprecated: str | bool = False,
        served: bool = True,
        storage: bool | None = None,
        rules: Sequence[Meta] = (),
        **config: Any,
    ) -> CustomResourceMeta:
        parts = _type_arguments(namespace)
        if parts is None:
            if group or version or versions:
                raise TypeError(f"{name}: write class {name}(CustomResource[Spec, Status], group=…, version=…)")
            return super().__new__(mcls, name, bases, namespace, rules=rules, **config)
        kind = kind or name
        all_versions = tuple(versions) or ((version,) if version else ())
        resource = Resource(group, (*all_versions, "")[0], kind, plural or guess_plural(kind), namespaced)
        _check(name, resource, all_versions)
        spec, status_class = parts
        base = _base(mcls, name, bases, namespace, resource, spec, status_class)
        cls = super().__new__(mcls, name, (base,), namespace, rules=rules, **config)
        cls.resource = resource
        cls.converters = {}
        cls.options = Options(
            versions=all_versions,
            singular=singular or kind.lower(),
            list_kind=list_kind or f"{kind}List",
            short_names=tuple(short_names),
            categories=tuple(categories),
            status=status_class is not NoStatus if status is None else status,
            scale=scale,
            columns=tuple(columns),
            selectable=tuple(selectable),
            deprecated=deprecated,
            served=served,
            storage=storage,
        )
        return cls

    resource: Resource
    options: Options
    converters: dict[type, Converter]
    """Functions to other versions (`@converts`), by their classes."""


def guess_plural(kind: str) -> str:
    """The plural that Kubernetes itself would guess. Upstream: UnsafeGuessKindToResource."""
    word = kind.lower()
    if word.endswith("s"):
        return word + "es"
    return word[:-1] + "ies" if word.endswith("y") else word + "s"


def _type_arguments(namespace: dict[str, Any]) -> tuple[type[Model], type[Model]] | None:
    for base in namespace.get("__orig_bases__", ()):
        origin, arguments = get_origin(base), get_args(base)
        if isinstance(origin, CustomResourceMeta) and not any(isinstance(a, TypeVar) for a in arguments):
            return arguments
    return None


def _check(name: str, resource: Resource, versions: tuple[str, ...]) -> None:
    if "." not in resource.group or dns_subdomain_errors(resource.group):
        raise TypeError(f'{name}: group="{resource.group}" must be a domain of yours, such as apps.example.com')
    if not versions or any(dns_1035_errors(version) for version in versions):
        raise TypeError(f'{name}: give version="v1" (or versions=["v1", "v1beta1"]), got {versions}')


def _base(
    mcls: type[ModelMeta],
    name: str,
    bases: tuple[type, ...],
    namespace: dict[str, Any],
    resource: Resource,
    spec: type[Model],
    status: type[Model],
) -> type:
    """A class between the author's and CustomResource that holds the fields with their types and defaults.

    They could not be put into the author's own class: since Python 3.14 its annotations may not exist yet.
    """
    if missing := _without_default(status):
        raise TypeError(
            f"{name}: a new object has an empty status, but {status.__name__}.{missing[0]} has no default; "
            "give it one, or make it optional (… | None = None)"
        )
    fields: dict[str, Any] = {
        "__module__": namespace["__module__"],
        "__qualname__": f"{namespace['__qualname__']}.Fields",
        "__annotations__": {"spec": spec, "status": status},
        "resource": resource,
        "status": field(default_factory=status),
    }
    # A spec with something to say must be given; one without gets its defaults.
    fields["spec"] = msgspec.field() if _without_default(spec) else field(default_factory=spec)
    made: type = ModelMeta.__new__(mcls, f"{name}Fields", bases, fields)
    return made


def _without_default(model: type[Model]) -> list[str]:
    return [part.name for part in msgspec.structs.fields(model) if part.required]


def _status_of_subclass() -> Any:
    raise TypeError("CustomResource is a base: make a class of CustomResource[Spec, Status] with a group and a version")


class CustomResource(Object, Generic[_Spec, _Status], metaclass=CustomResourceMeta):
    """The base of custom resources. A new object has an empty status, never None."""

    options: ClassVar[Options]

    spec: _Spec = required(dict)
    status: _Status = field(default_factory=_status_of_subclass)
