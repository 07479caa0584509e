"""Konverge: a controller runtime for Python and an embedded Kubernetes to run it on.

    from konverge import Context, Controller, Manager, Reconciler, Result

These are the names that most operators need; each is loaded when it is first used, so that `import konverge` costs
next to nothing. Everything else is in the package it belongs to: `konverge.client`, `konverge.objects`,
`konverge.objects.kinds` (built-in kinds, one module per group-version), `konverge.cache`, `konverge.workqueue`,
`konverge.observe`, `konverge.apiserver`.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from konverge.apiserver import (
        ApiServer,
    )
    from konverge.cache import (
        CacheSpec,
        Informer,
        Lister,
    )
    from konverge.client import (
        Client,
    )
    from konverge.objects import (
        Condition,
        CustomResource,
        Model,
        ObjectMeta,
        Quantity,
        Resource,
    )
    from konverge.observe.events import (
        EventRecorder,
    )
    from konverge.runtime import (
        Context,
        Controller,
        Fenced,
        LeaderElector,
        LeadershipLost,
        Manager,
        OwnershipError,
        Reason,
        Reconciler,
        Request,
        Result,
        Settings,
        Source,
        TerminalError,
        Timing,
        TransientError,
        Watch,
        all_of,
        annotations_changed,
        any_of,
        controller_of,
        generation_changed,
        is_true,
        labels_changed,
        not_,
        resource_version_changed,
        set_condition,
        set_controller_reference,
    )
    from konverge.runtime.config import (
        Configuration,
        ConfigurationError,
        load_configuration,
    )
    from konverge.runtime.manager import (
        LeaderElection,
    )
    from konverge.workqueue import (
        WorkQueue,
    )

_HOME = {
    "konverge.apiserver": ("ApiServer"),
    "konverge.cache": ("CacheSpec Informer Lister"),
    "konverge.client": ("Client"),
    "konverge.objects": ("Condition CustomResource Model ObjectMeta Quantity Resource"),
    "konverge.observe.events": ("EventRecorder"),
    "konverge.runtime": (
        "Context Controller Fenced LeaderElector LeadershipLost Manager OwnershipError Reason "
        "Reconciler Request Result Settings Source TerminalError Timing TransientError Watch all_of "
        "annotations_changed any_of controller_of generation_changed is_true labels_changed not_ "
        "resource_version_changed set_condition set_controller_reference"
    ),
    "konverge.runtime.config": ("Configuration ConfigurationError load_configuration"),
    "konverge.runtime.manager": ("LeaderElection"),
    "konverge.workqueue": ("WorkQueue"),
}
_MODULE_OF = {name: module for module, names in _HOME.items() for name in names.split()}

__all__ = [
    "ApiServer",
    "CacheSpec",
    "Client",
    "Condition",
    "Configuration",
    "ConfigurationError",
    "Context",
    "Controller",
    "CustomResource",
    "EventRecorder",
    "Fenced",
    "Informer",
    "LeaderElection",
    "LeaderElector",
    "LeadershipLost",
    "Lister",
    "Manager",
    "Model",
    "ObjectMeta",
    "OwnershipError",
    "Quantity",
    "Reason",
    "Reconciler",
    "Request",
    "Resource",
    "Result",
    "Settings",
    "Source",
    "TerminalError",
    "Timing",
    "TransientError",
    "Watch",
    "WorkQueue",
    "all_of",
    "annotations_changed",
    "any_of",
    "controller_of",
    "generation_changed",
    "is_true",
    "labels_changed",
    "load_configuration",
    "not_",
    "resource_version_changed",
    "set_condition",
    "set_controller_reference",
]


def __getattr__(name: str) -> Any:
    module = _MODULE_OF.get(name)
    if module is None:
        raise AttributeError(f"module 'konverge' has no attribute {name!r}")
    return getattr(importlib.import_module(module), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
