"""The controller runtime: declare a Controller, give it a Reconciler, let a Manager run it."""

from konverge.runtime.conditions import find_condition, is_true, set_condition
from konverge.runtime.context import Caches, Context
from konverge.runtime.declare import Controller, Reconciler, Settings, Source
from konverge.runtime.deprecated import Watch
from konverge.runtime.election import Timing
from konverge.runtime.elector import Fenced, LeaderElector, LeadershipLost
from konverge.runtime.indexing import Index
from konverge.runtime.manager import Manager
from konverge.runtime.owners import NotOwned, OwnershipError, controller_of, set_controller_reference
from konverge.runtime.predicates import (
    ChangePredicate,
    all_of,
    annotations_changed,
    any_of,
    created,
    deleted,
    generation_changed,
    labels_changed,
    not_,
    resource_version_changed,
)
from konverge.runtime.reasons import Changed, External, Reason, Resync, Retry, Timer
from konverge.runtime.relations import Owns, Use, Watches
from konverge.runtime.result import BlockedError, Request, Result, TerminalError, TransientError

__all__ = [
    "BlockedError",
    "Caches",
    "ChangePredicate",
    "Changed",
    "Context",
    "Controller",
    "External",
    "Fenced",
    "Index",
    "LeaderElector",
    "LeadershipLost",
    "Manager",
    "NotOwned",
    "OwnershipError",
    "Owns",
    "Reason",
    "Reconciler",
    "Request",
    "Result",
    "Resync",
    "Retry",
    "Settings",
    "Source",
    "TerminalError",
    "Timer",
    "Timing",
    "TransientError",
    "Use",
    "Watch",
    "Watches",
    "all_of",
    "annotations_changed",
    "any_of",
    "controller_of",
    "created",
    "deleted",
    "find_condition",
    "generation_changed",
    "is_true",
    "labels_changed",
    "not_",
    "resource_version_changed",
    "set_condition",
    "set_controller_reference",
]
