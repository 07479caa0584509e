"""`Model`: the base of everything that travels as JSON.

A model is a msgspec Struct with keyword arguments, snake_case in Python and camelCase on the wire; what has its default
value is not sent and what the class does not know is ignored. Three kinds of fields:

- optional: `replicas: int | None = None`, `env: list[EnvVar] = []`;
- required of the author, forgiven of the server: `name: str = required(str)`. A type checker asks for it, it is always
  sent, and an object without it still decodes (a server of another version must never stop a watch);
- lists, maps and times that some servers send as null: `rules: NullableList[PolicyRule] = []`. They read as empty. The
  module needs `from __future__ import annotations`: the metaclass knows such a field by the text of its annotation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar, dataclass_transform

import msgspec
from msgspec import Meta, field

from konverge.objects.resource import Resource

__all__ = [
    "Model",
    "ModelMeta",
    "NullableList",
    "NullableMap",
    "NullableText",
    "Required",
    "field",
    "required",
]

_T = TypeVar("_T")
_K = TypeVar("_K")
_V = TypeVar("_V")
_Meta = TypeVar("_Meta", bound="ModelMeta")

if TYPE_CHECKING:
    NullableList = list[_T]
    NullableMap = dict[_K, _V]
    NullableText = str
else:
    NullableList = list[_T] | None
    NullableMap = dict[_K, _V] | None
    NullableText = str | None


_EMPTY_OF: dict[str, Callable[[], Any]] = {"NullableList": list, "NullableMap": dict, "NullableText": str}


class Required:
    """Makes the zero value of a required field. A class of its own, so that msgspec never takes the value for a default
    and so that a schema distinguishes the field from an optional one."""

    __slots__ = ("factory",)

    def __init__(self, factory: Callable[..., Any]) -> None:
        self.factory = factory

    def __call__(self) -> Any:
        return self.factory()


def required(factory: Callable[..., Any], *, name: str | None = None) -> Any:
    """A field that an author must give. `factory` makes the zero value that stands in where a server omits it."""
    return msgspec.field(default_factory=Required(factory), name=name)


class ModelMeta(msgspec.StructMeta):
    """Makes every model keyword-only, which msgspec asks for class by class, and takes its CEL rules.

    A kind (a class with a `resource`) gets its `api_version` and `kind` filled in, and a class with nullable fields a
    `__post_init__` that makes their nulls empty.
    """

    def __new__(
        mcls: type[_Meta],
        name: str,
        bases: tuple[type, ...],
        namespace: dict[str, Any],
        *,
        rules: Sequence[Meta] = (),
        **config: Any,
    ) -> _Meta:
        config.setdefault("kw_only", True)
        if isinstance(resource := namespace.get("resource"), Resource):
            bases = _with_identity(mcls, name, bases, namespace, resource)
        _turn_nulls_to_empty(bases, namespace)
        cls = super().__new__(mcls, name, bases, namespace, **config)
        inherited = [rule for base in bases for rule in getattr(base, "__rules__", ())]
        if rules or inherited:
            cls.__rules__ = (*dict.fromkeys(inherited), *rules)
        return cls

    __rules__: tuple[Meta, ...]


def _with_identity(
    mcls: type[ModelMeta], name: str, bases: tuple[type, ...], namespace: dict[str, Any], resource: Resource
) -> tuple[type, ...]:
    """Add `api_version` and `kind` to a kind; the result are its bases. Factories, as msgspec omits plain defaults."""
    identity = {"api_version": resource.api_version, "kind": resource.kind}
    fields = {field_name: field(default_factory=partial(str, value)) for field_name, value in identity.items()}
    annotations = dict.fromkeys(identity, "str")
    if "__annotations__" in namespace:
        namespace["__annotations__"] = annotations | namespace["__annotations__"]
        namespace |= fields
        return bases
    # Since Python 3.14 the annotations of a class may not exist yet: then a class in between holds the fields.
    place = {"__module__": namespace["__module__"], "__qualname__": f"{namespace['__qualname__']}.Identity"}
    between = {**place, "__annotations__": annotations, **fields}
    return (msgspec.StructMeta.__new__(mcls, f"{name}Identity", bases, between, kw_only=True),)


def _turn_nulls_to_empty(bases: tuple[type, ...], namespace: dict[str, Any]) -> None:
    """Give a class with nullable fields a `__post_init__` for them; its own or inherited one runs afterwards."""
    fields = []
    for name, annotation in namespace.get("__annotations__", {}).items():
        if isinstance(annotation, str) and "Nullable" in annotation:
            empty = _EMPTY_OF.get(annotation.removeprefix("Annotated[").split("[")[0].split(",")[0])
            if empty is not None:
                fields.append((name, empty))
    if not fields:
        return
    inherited = (getattr(base, "__post_init__", None) for base in bases)
    then = namespace.get("__post_init__") or next(filter(None, inherited), None)

    def post_init(self: Model) -> None:
        for name, empty in fields:
            if getattr(self, name) is None:
                setattr(self, name, empty())
        if then is not None:
            then(self)

    namespace["__post_init__"] = post_init


# The transform stands on the base class because msgspec has its own there, and type checkers take the nearest.
@dataclass_transform(kw_only_default=True, field_specifiers=(field, required))
class Model(msgspec.Struct, metaclass=ModelMeta, omit_defaults=True, rename="camel", gc=False):
    """The base of API objects and their parts.

    They are trees of plain data, so the garbage collector does not look into them (`gc=False`): in a program that holds
    many of them it has that much less to do. An object that contains itself is never freed.
    """
