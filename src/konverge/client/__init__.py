"""The client: typed or dynamic access to any Kubernetes API server.

    from konverge.client import Client, NotFound
    from konverge.objects.kinds.apps_v1 import Deployment

    async with Client.connect() as client:
        try:
            web = await client.get(Deployment, "web", namespace="shop")
        except NotFound:
            ...

One module per noun; these are the public names. The ways in: `Client`, `load_config`, the wrappers (`DryRun`,
`FieldOwner`, `Namespaced`, `Recording`, `Strict`), the patches, and the exceptions (their tree is drawn in `errors`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from konverge.lazy_imports import lazy_names

if TYPE_CHECKING:
    from konverge.client.binding import Listing as Listing
    from konverge.client.binding import Obj as Obj
    from konverge.client.call import Call as Call
    from konverge.client.call import Caller as Caller
    from konverge.client.client import Client as Client
    from konverge.client.config import Config as Config
    from konverge.client.config import Impersonation as Impersonation
    from konverge.client.config import TlsSettings as TlsSettings
    from konverge.client.config import in_cluster_config as in_cluster_config
    from konverge.client.config import load_config as load_config
    from konverge.client.credentials import Credential as Credential
    from konverge.client.credentials import Credentials as Credentials
    from konverge.client.credentials import Static as Static
    from konverge.client.credentials import TokenFile as TokenFile
    from konverge.client.discovery import Mapper as Mapper
    from konverge.client.discovery import Served as Served
    from konverge.client.errors import AlreadyExists as AlreadyExists
    from konverge.client.errors import ApiStatusError as ApiStatusError
    from konverge.client.errors import BadRequest as BadRequest
    from konverge.client.errors import ClientError as ClientError
    from konverge.client.errors import ConfigError as ConfigError
    from konverge.client.errors import Conflict as Conflict
    from konverge.client.errors import ConnectionFailed as ConnectionFailed
    from konverge.client.errors import ConnectionLost as ConnectionLost
    from konverge.client.errors import CredentialError as CredentialError
    from konverge.client.errors import Expired as Expired
    from konverge.client.errors import Forbidden as Forbidden
    from konverge.client.errors import InternalError as InternalError
    from konverge.client.errors import Invalid as Invalid
    from konverge.client.errors import MalformedAnswer as MalformedAnswer
    from konverge.client.errors import MethodNotAllowed as MethodNotAllowed
    from konverge.client.errors import NotAcceptable as NotAcceptable
    from konverge.client.errors import NotConnected as NotConnected
    from konverge.client.errors import NotFound as NotFound
    from konverge.client.errors import ServerTimeout as ServerTimeout
    from konverge.client.errors import TimedOut as TimedOut
    from konverge.client.errors import TooLarge as TooLarge
    from konverge.client.errors import TooManyRequests as TooManyRequests
    from konverge.client.errors import Unauthorized as Unauthorized
    from konverge.client.errors import Unavailable as Unavailable
    from konverge.client.errors import UnknownKind as UnknownKind
    from konverge.client.errors import UnsupportedMediaType as UnsupportedMediaType
    from konverge.client.exec_plugin import ExecPlugin as ExecPlugin
    from konverge.client.exec_plugin import ExecSpec as ExecSpec
    from konverge.client.kubeconfig import Kubeconfig as Kubeconfig
    from konverge.client.patches import ApplyPatch as ApplyPatch
    from konverge.client.patches import JsonPatch as JsonPatch
    from konverge.client.patches import MergePatch as MergePatch
    from konverge.client.patches import Patch as Patch
    from konverge.client.patches import StrategicPatch as StrategicPatch
    from konverge.client.patches import merge_between as merge_between
    from konverge.client.retry import RetryPolicy as RetryPolicy
    from konverge.client.subresources import IssuedToken as IssuedToken
    from konverge.client.warnings import LogOnce as LogOnce
    from konverge.client.warnings import ServerWarning as ServerWarning
    from konverge.client.warnings import WarningHandler as WarningHandler
    from konverge.client.warnings import parse_warnings as parse_warnings
    from konverge.client.watch import RawEvent as RawEvent
    from konverge.client.watch import WatchEvent as WatchEvent
    from konverge.client.wrappers import DryRun as DryRun
    from konverge.client.wrappers import FieldOwner as FieldOwner
    from konverge.client.wrappers import Namespaced as Namespaced
    from konverge.client.wrappers import Recording as Recording
    from konverge.client.wrappers import Strict as Strict
    from konverge.client.wrappers import Wrapper as Wrapper
    from konverge.token_bucket import TokenBucket as TokenBucket

__all__, __getattr__, __dir__ = lazy_names(
    __name__,
    {
        "konverge.client.binding": "Listing Obj",
        "konverge.client.call": "Call Caller",
        "konverge.client.client": "Client",
        "konverge.client.config": "Config Impersonation TlsSettings in_cluster_config load_config",
        "konverge.client.credentials": "Credential Credentials Static TokenFile",
        "konverge.client.discovery": "Mapper Served",
        "konverge.client.errors": (
            "AlreadyExists ApiStatusError BadRequest ClientError ConfigError Conflict ConnectionFailed "
            "ConnectionLost CredentialError Expired Forbidden InternalError Invalid MalformedAnswer "
            "MethodNotAllowed NotAcceptable NotConnected NotFound ServerTimeout TimedOut TooLarge TooManyRequests "
            "Unauthorized Unavailable UnknownKind UnsupportedMediaType"
        ),
        "konverge.client.exec_plugin": "ExecPlugin ExecSpec",
        "konverge.client.kubeconfig": "Kubeconfig",
        "konverge.client.patches": "ApplyPatch JsonPatch MergePatch Patch StrategicPatch merge_between",
        "konverge.client.retry": "RetryPolicy",
        "konverge.client.subresources": "IssuedToken",
        "konverge.client.warnings": "LogOnce ServerWarning WarningHandler parse_warnings",
        "konverge.client.watch": "RawEvent WatchEvent",
        "konverge.client.wrappers": "DryRun FieldOwner Namespaced Recording Strict Wrapper",
        "konverge.token_bucket": "TokenBucket",
    },
)
