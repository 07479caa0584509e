"""Conversion between versions of a resource, by functions between their classes.

    @converts(WebAppV1, WebApp)
    def upgraded(old: WebAppV1) -> WebApp:
        return WebApp(spec=WebAppSpec(image=old.spec.image, replicas=old.spec.count))

One version is the hub: the others convert to and from it only, so n versions need 2(n - 1) functions. A function sees
and makes typed objects and need not care for the metadata: name, uid, owners and so on stay as they are, and labels and
annotations do so too unless the function gives its result metadata. Fields that the classes do not know (a newer
definition has them) and nulls are carried over at their place, and defaults are filled in. `converts_plain` is for
functions between plain data: they also convert what an older definition let in and the classes refuse.

Upstream: controller-runtime's pkg/conversion (Hub, Convertible).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, TypeVar

import msgspec

from konverge.objects.codec import from_dict, to_dict
from konverge.objects.custom import preserved
from konverge.objects.custom.carried import carry, without_nulls
from konverge.objects.custom.defaults import fill_defaults
from konverge.objects.custom.resource import CustomResource
from konverge.objects.custom.schema import Schema, schema_of
from konverge.objects.custom.versions import Kind, check_same, named_versions, stored_version
from konverge.objects.meta import ObjectMeta

Obj = dict[str, Any]
Plain = Callable[[Obj], Obj]
S = TypeVar("S", bound=CustomResource[Any, Any])
T = TypeVar("T", bound=CustomResource[Any, Any])

_IDENTITY = ("apiVersion", "kind", "metadata")
_CHANGEABLE = ("labels", "annotations")
_NO_METADATA = ObjectMeta()


class ConversionError(ValueError):
    """An object cannot be converted; the text says why."""


class Converter(msgspec.Struct, frozen=True):
    """One function, from one class to another."""

    function: Callable[[Any], Any]
    preserve: bool
    plain: bool = False
    """Whether it takes and returns plain data, without metadata."""


def converts(
    source: type[S], target: type[T], *, preserve: bool = False
) -> Callable[[Callable[[S], T]], Callable[[S], T]]:
    """The function under it converts objects of `source` to `target`; write the other direction as well.

    With `preserve=True`, what `target` cannot say is kept in an annotation of the converted object, and is there again
    when the object is converted back. What a user changes meanwhile counts more than what was kept. Taken back, what
    was kept so far stays in the annotations, and is no longer read.

        @converts(WebApp, WebAppV1, preserve=True)
        def downgraded(new: WebApp) -> WebAppV1:
            return WebAppV1(spec=WebAppV1Spec(image=new.spec.image, count=new.spec.replicas))
    """
    _check_pair(source, target)

    def register(function: Callable[[S], T]) -> Callable[[S], T]:
        _register(source, target, Converter(function, preserve))
        return function

    return register


def converts_plain(source: Kind, target: Kind, *, preserve: bool = False) -> Callable[[Plain], Plain]:
    """As `converts`, for a function between plain data: it gets a copy of the object without apiVersion, kind and
    metadata, may change it, and returns what the target has.

    What it does not touch stays: for versions that differ in few fields. No class has to accept the object, so one
    that an older definition let in does not fail the lists in other versions; the function must expect such objects.

        @converts_plain(WebAppV1, WebApp)
        def upgraded(content: dict[str, Any]) -> dict[str, Any]:
            content["spec"]["replicas"] = content["spec"].pop("count", 1)
            return content
    """
    _check_pair(source, target)

    def register(function: Plain) -> Plain:
        _register(source, target, Converter(function, preserve, plain=True))
        return function

    return register


def _check_pair(source: Kind, target: Kind) -> None:
    check_same((source, target))
    if source is target:
        raise TypeError(f"{source.__name__} is converted to itself: name two classes")


def _register(source: Kind, target: Kind, converter: Converter) -> None:
    known = source.converters.get(target)
    if known is not None and _name(known.function) != _name(converter.function):  # a notebook runs its cells again
        raise TypeError(f"{source.__name__} is converted to {target.__name__} already, by {_name(known.function)}")
    source.converters[target] = converter


def _name(function: Callable[..., Any]) -> str:
    return f"{function.__module__}.{function.__qualname__}"


def are_converted(classes: tuple[Kind, ...]) -> bool:
    """Whether there are functions between these versions. Without any, they differ in nothing but their schemas."""
    return any(other in cls.converters for cls in classes for other in classes)


class Conversions:
    """The conversions between all versions of a resource.

    webapps = Conversions(WebAppV1, WebApp)
    webapps.convert(obj, "apps.example.com/v1")

    The hub is the class that all others convert to and from; of several such classes, the stored one. Raises TypeError
    when a function is missing, and when one goes past the hub.
    """

    def __init__(self, *classes: Kind, hub: Kind | None = None) -> None:
        if len(classes) < 2:
            raise TypeError("a conversion needs two classes at least: Conversions(WebAppV1, WebApp)")
        check_same(classes)
        if hub is not None and hub not in classes:
            raise TypeError(f"the hub {hub.__name__} is none of the versions: list it among them")
        self.classes = classes
        self.hub = hub or _hub(classes)
        self.resource = classes[0].resource
        self._check()
        self._by_version = {f"{self.resource.group}/{name}": cls for name, cls in named_versions(classes)}

    def _check(self) -> None:
        for cls in self.classes:
            if cls is not self.hub:
                for source, target in ((cls, self.hub), (self.hub, cls)):
                    if target not in source.converters:
                        raise TypeError(
                            f"nothing converts {source.__name__} to {target.__name__}: write a function with "
                            f"@converts({source.__name__}, {target.__name__})"
                        )
                past = next(
                    (other for other in self.classes if other is not self.hub and other in cls.converters), None
                )
                if past is not None:
                    raise TypeError(
                        f"{cls.__name__} is converted to {past.__name__} past the hub {self.hub.__name__}, so that the "
                        f"function is never called: remove it, or give hub={past.__name__} and its functions"
                    )

    def convert(self, obj: Obj, desired: str) -> Obj:
        """An object in another version (`apps.example.com/v1`). The given one is not changed.

        Raises ConversionError, and what a function raises.
        """
        source, target = self._class_of(obj.get("apiVersion")), self._class_of(desired)
        if obj.get("kind") != self.resource.kind:
            raise ConversionError(f"it is of the kind {obj.get('kind')!r}, not {self.resource.kind}")
        if not isinstance(obj.get("metadata"), dict):
            raise ConversionError("it has no metadata")
        if source is not target and self.hub not in (source, target):
            obj, source = _step(obj, source, self.hub), self.hub
        converted = obj if source is target else _step(obj, source, target)
        return {**converted, "apiVersion": desired}

    def _class_of(self, version: Any) -> Kind:
        try:
            return self._by_version[version]
        except (KeyError, TypeError):
            known = ", ".join(self._by_version)
            raise ConversionError(
                f"there is no version {version!r} of {self.resource.group_resource}: {known}"
            ) from None


def _hub(classes: tuple[Kind, ...]) -> Kind:
    stored = stored_version(classes)[1]
    ordered = (stored, *(cls for cls in classes if cls is not stored))
    return next((cls for cls in ordered if _reaches_all(cls, classes)), stored)


def _reaches_all(hub: Kind, classes: tuple[Kind, ...]) -> bool:
    return all(cls is hub or (cls in hub.converters and hub in cls.converters) for cls in classes)


def _step(obj: Obj, source: Kind, target: Kind) -> Obj:
    """One conversion, with what was kept of the target before, and what has to be kept of the source."""
    # Where no conversion keeps anything, an annotation of that name is the user's own and means nothing.
    taken, kept = _take(obj, _annotation(target)) if _is_kept(target) else (obj, [])
    converted = _applied(taken, source, target)
    if kept:
        restored = preserved.restored(_content(converted), kept)
        converted = _accepted({**restored, **_identity(converted)}, target) or converted
    if source.converters[target].preserve:
        back = _content(_applied(converted, target, source))
        actual = msgspec.json.decode(msgspec.json.encode(_content(taken)))
        fill_defaults(actual, schema_for(source))
        differences = preserved.differences(back, actual, schema_for(source))
        converted, _ = _take(converted, _annotation(source))  # of the user: it would be read as ours on the way back
        if differences:
            _annotate(converted, _annotation(source), preserved.encode(differences))
    return converted


def _is_kept(cls: Kind) -> bool:
    return any(converter.preserve for converter in cls.converters.values())


def _annotation(cls: Kind) -> str:
    """The annotation that keeps what only this version can say."""
    return f"{cls.resource.group}/preserved-{cls.resource.version}"


def _applied(obj: Obj, source: Kind, target: Kind) -> Obj:
    """What the function makes of an object, with the object's metadata."""
    converter = source.converters[target]
    if converter.plain:
        content = converter.function(msgspec.json.decode(msgspec.json.encode(_content(obj))))
        fill_defaults(content, schema_for(target))
        return {**_identity(obj), **content}
    made = converter.function(_typed(obj, source))
    if not isinstance(made, target):
        raise ConversionError(
            f"the function from {source.__name__} to {target.__name__} returned {type(made).__name__}"
        )
    content = _content(to_dict(made))
    if "status" in obj:
        content.setdefault("status", {})  # an empty one is not encoded, and is not the same as none
    carry(_content(obj), content, schema_for(source), schema_for(target))
    # A write in this version has its defaults. An object without them would seem to be changed by every such write.
    fill_defaults(content, schema_for(target))
    return {**_identity(obj), "metadata": _metadata(obj["metadata"], made.metadata), **content}


def _typed(obj: Obj, cls: Kind) -> Any:
    metadata = {name: value for name, value in obj["metadata"].items() if name != "managedFields"}
    plain = {**obj, "metadata": metadata}
    try:
        return from_dict(cls, plain)
    except msgspec.ValidationError:
        try:  # null stands for absent, where the definition of the time allowed it
            return from_dict(cls, without_nulls(plain))
        except msgspec.ValidationError as error:
            raise ConversionError(f"it is no valid {cls.__name__}: {error}") from None


def _metadata(before: Obj, made: ObjectMeta) -> Obj:
    """Labels and annotations are the function's, if it gave any metadata; API servers restore everything else."""
    if made == _NO_METADATA:
        return dict(before)
    changed = {"labels": made.labels, "annotations": made.annotations}
    kept = {name: value for name, value in before.items() if name not in _CHANGEABLE}
    return kept | {name: dict(value) for name, value in changed.items() if value}


def _take(obj: Obj, name: str) -> tuple[Obj, list[preserved.Difference]]:
    """An object without one of its annotations, and what was in it."""
    annotations = obj["metadata"].get("annotations") or {}
    if name not in annotations:
        return obj, []
    rest = {key: value for key, value in annotations.items() if key != name}
    metadata = {key: value for key, value in obj["metadata"].items() if key != "annotations"}
    if rest:
        metadata["annotations"] = rest
    return {**obj, "metadata": metadata}, preserved.decode(annotations[name])


def _annotate(obj: Obj, name: str, text: str) -> None:
    metadata = obj["metadata"]
    obj["metadata"] = {**metadata, "annotations": {**(metadata.get("annotations") or {}), name: text}}


def _accepted(obj: Obj, cls: Kind) -> Obj | None:
    """None for an object that the class refuses: the annotation is the user's to write, and no server checks it."""
    try:
        _typed(obj, cls)
    except ConversionError:
        return None
    return obj


def _content(obj: Obj) -> Obj:
    return {name: value for name, value in obj.items() if name not in _IDENTITY}


def _identity(obj: Obj) -> Obj:
    return {name: obj[name] for name in _IDENTITY if name in obj}


@cache
def schema_for(cls: Kind) -> Schema:
    """The schema of a class without its metadata, computed once. A status is there when it is written: no default."""
    properties = {name: part for name, part in schema_of(cls)["properties"].items() if name not in _IDENTITY}
    if "status" in properties:
        properties["status"] = {name: part for name, part in properties["status"].items() if name != "default"}
    return {"properties": properties}
