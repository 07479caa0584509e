"""The object model: what Kubernetes objects are in Python.

Public names are loaded when first used. Built-in kinds are in `konverge.objects.kinds`, one module per group-version;
selectors are modules with a small API of their own: `konverge.objects.labels` and `konverge.objects.fields`.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from konverge.objects.codec import decoder, from_dict, from_json, to_dict, to_json, validate
    from konverge.objects.custom.definition import crd, crd_dict
    from konverge.objects.custom.markers import (
        Default,
        Description,
        EmbeddedResource,
        ExclusiveMaximum,
        ExclusiveMinimum,
        Format,
        ListType,
        MapType,
        Maximum,
        MaxItems,
        MaxLength,
        MaxProperties,
        Minimum,
        MinItems,
        MinLength,
        MinProperties,
        MultipleOf,
        Nullable,
        Pattern,
        PreserveUnknown,
        Rule,
        SchemaExtra,
        Time,
    )
    from konverge.objects.custom.resource import Column, CustomResource, NoStatus, Scale
    from konverge.objects.custom.schema import SchemaError
    from konverge.objects.durations import DurationError, duration_seconds, format_duration, parse_duration
    from konverge.objects.fields import FieldSelector
    from konverge.objects.int_or_string import IntOrString, PercentageError
    from konverge.objects.labels import Selector, SelectorError
    from konverge.objects.meta import (
        Condition,
        DeleteOptions,
        LabelSelector,
        LabelSelectorRequirement,
        ListMeta,
        ManagedFieldsEntry,
        Object,
        ObjectList,
        ObjectMeta,
        OwnerReference,
        PartialObjectMetadata,
        Preconditions,
        Status,
        StatusCause,
        StatusDetails,
    )
    from konverge.objects.model import Model, field, required
    from konverge.objects.quantity import Quantity, QuantityError
    from konverge.objects.resource import Resource

_HOME = {
    "codec": "decoder from_dict from_json to_dict to_json validate",
    "custom.definition": "crd crd_dict",
    "custom.markers": "Default Description EmbeddedResource ExclusiveMaximum ExclusiveMinimum Format ListType MapType "
    "MaxItems MaxLength MaxProperties Maximum MinItems MinLength MinProperties Minimum MultipleOf Nullable Pattern "
    "PreserveUnknown Rule SchemaExtra Time",
    "custom.resource": "Column CustomResource NoStatus Scale",
    "custom.schema": "SchemaError",
    "durations": "DurationError duration_seconds format_duration parse_duration",
    "fields": "FieldSelector",
    "int_or_string": "IntOrString PercentageError",
    "labels": "Selector SelectorError",
    "meta": "Condition DeleteOptions LabelSelector LabelSelectorRequirement ListMeta ManagedFieldsEntry Object "
    "ObjectList ObjectMeta OwnerReference PartialObjectMetadata Preconditions Status StatusCause StatusDetails",
    "model": "Model field required",
    "quantity": "Quantity QuantityError",
    "resource": "Resource",
}
_MODULE_OF = {name: module for module, names in _HOME.items() for name in names.split()}

__all__ = [
    "Column",
    "Condition",
    "CustomResource",
    "Default",
    "DeleteOptions",
    "Description",
    "DurationError",
    "EmbeddedResource",
    "ExclusiveMaximum",
    "ExclusiveMinimum",
    "FieldSelector",
    "Format",
    "IntOrString",
    "LabelSelector",
    "LabelSelectorRequirement",
    "ListMeta",
    "ListType",
    "ManagedFieldsEntry",
    "MapType",
    "MaxItems",
    "MaxLength",
    "MaxProperties",
    "Maximum",
    "MinItems",
    "MinLength",
    "MinProperties",
    "Minimum",
    "Model",
    "MultipleOf",
    "NoStatus",
    "Nullable",
    "Object",
    "ObjectList",
    "ObjectMeta",
    "OwnerReference",
    "PartialObjectMetadata",
    "Pattern",
    "PercentageError",
    "Preconditions",
    "PreserveUnknown",
    "Quantity",
    "QuantityError",
    "Resource",
    "Rule",
    "Scale",
    "SchemaError",
    "SchemaExtra",
    "Selector",
    "SelectorError",
    "Status",
    "StatusCause",
    "StatusDetails",
    "Time",
    "crd",
    "crd_dict",
    "decoder",
    "duration_seconds",
    "field",
    "format_duration",
    "from_dict",
    "from_json",
    "parse_duration",
    "required",
    "to_dict",
    "to_json",
    "validate",
]


def __getattr__(name: str) -> Any:
    module = _MODULE_OF.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{module}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
