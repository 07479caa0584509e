"""The object model: what Kubernetes objects are in Python.

Public names are loaded when first used. Built-in kinds are in `konverge.objects.kinds`, one module per group-version;
selectors are modules with a small API of their own: `konverge.objects.labels` and `konverge.objects.fields`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from konverge.lazy_imports import lazy_names

if TYPE_CHECKING:
    from konverge.objects.codec import decoder as decoder
    from konverge.objects.codec import from_dict as from_dict
    from konverge.objects.codec import from_json as from_json
    from konverge.objects.codec import to_dict as to_dict
    from konverge.objects.codec import to_json as to_json
    from konverge.objects.codec import validate as validate
    from konverge.objects.custom.conversion import ConversionError as ConversionError
    from konverge.objects.custom.conversion import Conversions as Conversions
    from konverge.objects.custom.conversion import converts as converts
    from konverge.objects.custom.conversion import converts_plain as converts_plain
    from konverge.objects.custom.definition import crd as crd
    from konverge.objects.custom.definition import crd_dict as crd_dict
    from konverge.objects.custom.definition import webhook_conversion as webhook_conversion
    from konverge.objects.custom.markers import Default as Default
    from konverge.objects.custom.markers import Description as Description
    from konverge.objects.custom.markers import EmbeddedResource as EmbeddedResource
    from konverge.objects.custom.markers import ExclusiveMaximum as ExclusiveMaximum
    from konverge.objects.custom.markers import ExclusiveMinimum as ExclusiveMinimum
    from konverge.objects.custom.markers import Format as Format
    from konverge.objects.custom.markers import ListType as ListType
    from konverge.objects.custom.markers import MapType as MapType
    from konverge.objects.custom.markers import Maximum as Maximum
    from konverge.objects.custom.markers import MaxItems as MaxItems
    from konverge.objects.custom.markers import MaxLength as MaxLength
    from konverge.objects.custom.markers import MaxProperties as MaxProperties
    from konverge.objects.custom.markers import Minimum as Minimum
    from konverge.objects.custom.markers import MinItems as MinItems
    from konverge.objects.custom.markers import MinLength as MinLength
    from konverge.objects.custom.markers import MinProperties as MinProperties
    from konverge.objects.custom.markers import MultipleOf as MultipleOf
    from konverge.objects.custom.markers import Nullable as Nullable
    from konverge.objects.custom.markers import Pattern as Pattern
    from konverge.objects.custom.markers import PreserveUnknown as PreserveUnknown
    from konverge.objects.custom.markers import Rule as Rule
    from konverge.objects.custom.markers import SchemaExtra as SchemaExtra
    from konverge.objects.custom.markers import Time as Time
    from konverge.objects.custom.policies import admission_policy as admission_policy
    from konverge.objects.custom.policies import rule_policy as rule_policy
    from konverge.objects.custom.resource import Column as Column
    from konverge.objects.custom.resource import CustomResource as CustomResource
    from konverge.objects.custom.resource import NoStatus as NoStatus
    from konverge.objects.custom.resource import Scale as Scale
    from konverge.objects.custom.schema import SchemaError as SchemaError
    from konverge.objects.durations import DurationError as DurationError
    from konverge.objects.durations import duration_seconds as duration_seconds
    from konverge.objects.durations import format_duration as format_duration
    from konverge.objects.durations import parse_duration as parse_duration
    from konverge.objects.fields import FieldSelector as FieldSelector
    from konverge.objects.int_or_string import IntOrString as IntOrString
    from konverge.objects.int_or_string import PercentageError as PercentageError
    from konverge.objects.labels import Selector as Selector
    from konverge.objects.labels import SelectorError as SelectorError
    from konverge.objects.meta import Condition as Condition
    from konverge.objects.meta import DeleteOptions as DeleteOptions
    from konverge.objects.meta import LabelSelector as LabelSelector
    from konverge.objects.meta import LabelSelectorRequirement as LabelSelectorRequirement
    from konverge.objects.meta import ListMeta as ListMeta
    from konverge.objects.meta import ManagedFieldsEntry as ManagedFieldsEntry
    from konverge.objects.meta import Object as Object
    from konverge.objects.meta import ObjectList as ObjectList
    from konverge.objects.meta import ObjectMeta as ObjectMeta
    from konverge.objects.meta import OwnerReference as OwnerReference
    from konverge.objects.meta import PartialObjectMetadata as PartialObjectMetadata
    from konverge.objects.meta import Preconditions as Preconditions
    from konverge.objects.meta import Status as Status
    from konverge.objects.meta import StatusCause as StatusCause
    from konverge.objects.meta import StatusDetails as StatusDetails
    from konverge.objects.meta import metadata_of as metadata_of
    from konverge.objects.model import Model as Model
    from konverge.objects.model import field as field
    from konverge.objects.model import required as required
    from konverge.objects.quantity import Quantity as Quantity
    from konverge.objects.quantity import QuantityError as QuantityError
    from konverge.objects.resource import Resource as Resource

__all__, __getattr__, __dir__ = lazy_names(
    __name__,
    {
        "konverge.objects.codec": "decoder from_dict from_json to_dict to_json validate",
        "konverge.objects.custom.conversion": "ConversionError Conversions converts converts_plain",
        "konverge.objects.custom.definition": "crd crd_dict webhook_conversion",
        "konverge.objects.custom.markers": (
            "Default Description EmbeddedResource ExclusiveMaximum ExclusiveMinimum Format ListType MapType "
            "MaxItems MaxLength MaxProperties Maximum MinItems MinLength MinProperties Minimum MultipleOf "
            "Nullable Pattern PreserveUnknown Rule SchemaExtra Time"
        ),
        "konverge.objects.custom.policies": "admission_policy rule_policy",
        "konverge.objects.custom.resource": "Column CustomResource NoStatus Scale",
        "konverge.objects.custom.schema": "SchemaError",
        "konverge.objects.durations": "DurationError duration_seconds format_duration parse_duration",
        "konverge.objects.fields": "FieldSelector",
        "konverge.objects.int_or_string": "IntOrString PercentageError",
        "konverge.objects.labels": "Selector SelectorError",
        "konverge.objects.meta": (
            "Condition DeleteOptions LabelSelector LabelSelectorRequirement ListMeta ManagedFieldsEntry Object "
            "ObjectList ObjectMeta OwnerReference PartialObjectMetadata Preconditions Status StatusCause "
            "StatusDetails metadata_of"
        ),
        "konverge.objects.model": "Model field required",
        "konverge.objects.quantity": "Quantity QuantityError",
        "konverge.objects.resource": "Resource",
    },
)
