"""Webhooks that a manager serves: admission (`validating`, `mutating`) and conversion.

The parts are loaded when they are first used: a manager without webhooks imports none of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from konverge.lazy_imports import lazy_names

if TYPE_CHECKING:
    from konverge.runtime.webhooks.admission import MutatingHook as MutatingHook
    from konverge.runtime.webhooks.admission import ValidatingHook as ValidatingHook
    from konverge.runtime.webhooks.admission import mutating as mutating
    from konverge.runtime.webhooks.admission import validating as validating
    from konverge.runtime.webhooks.certificates.material import Lifetimes as Lifetimes
    from konverge.runtime.webhooks.conversion import Conversion as Conversion
    from konverge.runtime.webhooks.denial import Denied as Denied
    from konverge.runtime.webhooks.denial import FieldError as FieldError
    from konverge.runtime.webhooks.in_cluster import InCluster as InCluster
    from konverge.runtime.webhooks.local import InProcess as InProcess
    from konverge.runtime.webhooks.local import Loopback as Loopback
    from konverge.runtime.webhooks.places import Mounted as Mounted
    from konverge.runtime.webhooks.registry import BadReview as BadReview
    from konverge.runtime.webhooks.registry import Webhook as Webhook
    from konverge.runtime.webhooks.registry import Webhooks as Webhooks
    from konverge.runtime.webhooks.review import Review as Review
    from konverge.runtime.webhooks.review import UserInfo as UserInfo
    from konverge.runtime.webhooks.stored_versions import migrate_stored_versions as migrate_stored_versions

__all__, __getattr__, __dir__ = lazy_names(
    __name__,
    {
        "konverge.runtime.webhooks.admission": "MutatingHook ValidatingHook mutating validating",
        "konverge.runtime.webhooks.conversion": "Conversion",
        "konverge.runtime.webhooks.denial": "Denied FieldError",
        "konverge.runtime.webhooks.certificates.material": "Lifetimes",
        "konverge.runtime.webhooks.in_cluster": "InCluster",
        "konverge.runtime.webhooks.local": "InProcess Loopback",
        "konverge.runtime.webhooks.places": "Mounted",
        "konverge.runtime.webhooks.registry": "BadReview Webhook Webhooks",
        "konverge.runtime.webhooks.review": "Review UserInfo",
        "konverge.runtime.webhooks.stored_versions": "migrate_stored_versions",
    },
)
