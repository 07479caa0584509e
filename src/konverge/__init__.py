"""Konverge: a controller runtime for Python and an embedded Kubernetes to run it on.

    from konverge import Context, Controller, Manager, Reconciler, Result

These are the names that most operators need; each is loaded when it is first used, so that `import konverge` costs
next to nothing. Everything else is in the package it belongs to: `konverge.client`, `konverge.objects`,
`konverge.objects.kinds` (built-in kinds, one module per group-version), `konverge.cache`, `konverge.workqueue`,
`konverge.observe`, `konverge.apiserver`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from konverge.lazy_imports import lazy_names

if TYPE_CHECKING:
    from konverge.apiserver import ApiServer as ApiServer
    from konverge.cache import CacheSpec as CacheSpec
    from konverge.cache import Informer as Informer
    from konverge.cache import Lister as Lister
    from konverge.cli.program import operator_main as operator_main
    from konverge.client import Client as Client
    from konverge.objects import Condition as Condition
    from konverge.objects import CustomResource as CustomResource
    from konverge.objects import Model as Model
    from konverge.objects import ObjectMeta as ObjectMeta
    from konverge.objects import Quantity as Quantity
    from konverge.objects import Resource as Resource
    from konverge.observe.events import EventRecorder as EventRecorder
    from konverge.runtime import BlockedError as BlockedError
    from konverge.runtime import ChangePredicate as ChangePredicate
    from konverge.runtime import Context as Context
    from konverge.runtime import Controller as Controller
    from konverge.runtime import Fenced as Fenced
    from konverge.runtime import Index as Index
    from konverge.runtime import LeaderElector as LeaderElector
    from konverge.runtime import LeadershipLost as LeadershipLost
    from konverge.runtime import Manager as Manager
    from konverge.runtime import NotOwned as NotOwned
    from konverge.runtime import OwnershipError as OwnershipError
    from konverge.runtime import Owns as Owns
    from konverge.runtime import Reason as Reason
    from konverge.runtime import Reconciler as Reconciler
    from konverge.runtime import Request as Request
    from konverge.runtime import Result as Result
    from konverge.runtime import Settings as Settings
    from konverge.runtime import Source as Source
    from konverge.runtime import TerminalError as TerminalError
    from konverge.runtime import Timing as Timing
    from konverge.runtime import TransientError as TransientError
    from konverge.runtime import Use as Use
    from konverge.runtime import Watch as Watch
    from konverge.runtime import Watches as Watches
    from konverge.runtime import all_of as all_of
    from konverge.runtime import annotations_changed as annotations_changed
    from konverge.runtime import any_of as any_of
    from konverge.runtime import controller_of as controller_of
    from konverge.runtime import created as created
    from konverge.runtime import deleted as deleted
    from konverge.runtime import generation_changed as generation_changed
    from konverge.runtime import is_true as is_true
    from konverge.runtime import labels_changed as labels_changed
    from konverge.runtime import not_ as not_
    from konverge.runtime import resource_version_changed as resource_version_changed
    from konverge.runtime import set_condition as set_condition
    from konverge.runtime import set_controller_reference as set_controller_reference
    from konverge.runtime.apply_set import Child as Child
    from konverge.runtime.config import Configuration as Configuration
    from konverge.runtime.config import ConfigurationError as ConfigurationError
    from konverge.runtime.config import load_configuration as load_configuration
    from konverge.runtime.endpoints import MetricsServer as MetricsServer
    from konverge.runtime.key_context import KeyContext as KeyContext
    from konverge.runtime.manager import LeaderElection as LeaderElection
    from konverge.runtime.sharding import NotOurs as NotOurs
    from konverge.runtime.sharding import Sharding as Sharding
    from konverge.runtime.story.ring import StoryLimits as StoryLimits
    from konverge.runtime.tasks.daemon_context import DaemonContext as DaemonContext
    from konverge.runtime.tasks.declared import Daemon as Daemon
    from konverge.runtime.tasks.declared import Every as Every
    from konverge.runtime.tasks.gone import Gone as Gone
    from konverge.runtime.tasks.hooks import HookContext as HookContext
    from konverge.runtime.tasks.manager_tasks import TaskContext as TaskContext
    from konverge.runtime.webhooks import Denied as Denied
    from konverge.runtime.webhooks import FieldError as FieldError
    from konverge.runtime.webhooks import Review as Review
    from konverge.runtime.webhooks import Webhooks as Webhooks
    from konverge.runtime.webhooks import mutating as mutating
    from konverge.runtime.webhooks import validating as validating
    from konverge.workqueue import WorkQueue as WorkQueue

__all__, __getattr__, __dir__ = lazy_names(
    __name__,
    {
        "konverge.apiserver": "ApiServer",
        "konverge.cache": "CacheSpec Informer Lister",
        "konverge.cli.program": "operator_main",
        "konverge.client": "Client",
        "konverge.objects": "Condition CustomResource Model ObjectMeta Quantity Resource",
        "konverge.observe.events": "EventRecorder",
        "konverge.runtime": (
            "BlockedError ChangePredicate Context Controller Fenced Index LeaderElector LeadershipLost Manager "
            "NotOwned OwnershipError Owns Reason Reconciler Request Result Settings Source TerminalError Timing "
            "TransientError Use Watch Watches all_of annotations_changed any_of controller_of created deleted "
            "generation_changed is_true labels_changed not_ resource_version_changed set_condition "
            "set_controller_reference"
        ),
        "konverge.runtime.apply_set": "Child",
        "konverge.runtime.config": "Configuration ConfigurationError load_configuration",
        "konverge.runtime.endpoints": "MetricsServer",
        "konverge.runtime.key_context": "KeyContext",
        "konverge.runtime.manager": "LeaderElection",
        "konverge.runtime.story.ring": "StoryLimits",
        "konverge.runtime.tasks.daemon_context": "DaemonContext",
        "konverge.runtime.tasks.declared": "Daemon Every",
        "konverge.runtime.tasks.gone": "Gone",
        "konverge.runtime.tasks.hooks": "HookContext",
        "konverge.runtime.tasks.manager_tasks": "TaskContext",
        "konverge.runtime.webhooks": "Denied FieldError Review Webhooks mutating validating",
        "konverge.runtime.sharding": "NotOurs Sharding",
        "konverge.workqueue": "WorkQueue",
    },
)
