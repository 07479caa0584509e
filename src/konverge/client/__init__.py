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

from konverge.client.binding import Listing, Obj
from konverge.client.call import Call, Caller
from konverge.client.client import Client
from konverge.client.config import Config, Impersonation, TlsSettings, load_config
from konverge.client.credentials import Credential, Credentials, Static, TokenFile
from konverge.client.discovery import Mapper, Served
from konverge.client.errors import (
    AlreadyExists,
    ApiStatusError,
    BadRequest,
    ClientError,
    ConfigError,
    Conflict,
    ConnectionFailed,
    ConnectionLost,
    CredentialError,
    Expired,
    Forbidden,
    InternalError,
    Invalid,
    MalformedAnswer,
    MethodNotAllowed,
    NotAcceptable,
    NotConnected,
    NotFound,
    ServerTimeout,
    TimedOut,
    TooLarge,
    TooManyRequests,
    Unauthorized,
    Unavailable,
    UnknownKind,
    UnsupportedMediaType,
)
from konverge.client.exec_plugin import ExecPlugin, ExecSpec
from konverge.client.incluster import in_cluster_config
from konverge.client.kubeconfig import Kubeconfig
from konverge.client.patches import ApplyPatch, JsonPatch, MergePatch, Patch, StrategicPatch, merge_between
from konverge.client.retry import RetryPolicy
from konverge.client.subresources import IssuedToken
from konverge.client.warnings import LogOnce, ServerWarning, WarningHandler, parse_warnings
from konverge.client.watch import RawEvent, WatchEvent
from konverge.client.wrappers import DryRun, FieldOwner, Namespaced, Recording, Strict, Wrapper
from konverge.token_bucket import TokenBucket

__all__ = [
    "AlreadyExists",
    "ApiStatusError",
    "ApplyPatch",
    "BadRequest",
    "Call",
    "Caller",
    "Client",
    "ClientError",
    "Config",
    "ConfigError",
    "Conflict",
    "ConnectionFailed",
    "ConnectionLost",
    "Credential",
    "CredentialError",
    "Credentials",
    "DryRun",
    "ExecPlugin",
    "ExecSpec",
    "Expired",
    "FieldOwner",
    "Forbidden",
    "Impersonation",
    "InternalError",
    "Invalid",
    "IssuedToken",
    "JsonPatch",
    "Kubeconfig",
    "Listing",
    "LogOnce",
    "MalformedAnswer",
    "Mapper",
    "MergePatch",
    "MethodNotAllowed",
    "Namespaced",
    "NotAcceptable",
    "NotConnected",
    "NotFound",
    "Obj",
    "Patch",
    "RawEvent",
    "Recording",
    "RetryPolicy",
    "Served",
    "ServerTimeout",
    "ServerWarning",
    "Static",
    "StrategicPatch",
    "Strict",
    "TimedOut",
    "TlsSettings",
    "TokenBucket",
    "TokenFile",
    "TooLarge",
    "TooManyRequests",
    "Unauthorized",
    "Unavailable",
    "UnknownKind",
    "UnsupportedMediaType",
    "WarningHandler",
    "WatchEvent",
    "Wrapper",
    "in_cluster_config",
    "load_config",
    "merge_between",
    "parse_warnings",
]
