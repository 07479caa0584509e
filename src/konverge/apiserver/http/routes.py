"""Which handler serves what: one table for verbs, subresources, special resources and paths.

A handler is written as `module:function`, with the module below `konverge.apiserver`, and is imported when the first
request needs it: a server that starts pays only for what is used. `routing.py` decides which entry a request gets.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from konverge.apiserver.request.protocols import Handler

VERBS = {
    "get": "http.reads:get",
    "list": "http.reads:list_",
    "watch": "http.watch:watch",
    "create": "http.whole_objects:create",
    "update": "http.whole_objects:update",
    "patch": "http.patch:patch",
    "delete": "http.delete:delete",
    "deletecollection": "http.delete:delete_collection",
}

PARTS = {"get": "http.reads:get", "update": "http.whole_objects:update", "patch": "http.patch:patch"}
"""Subresources that show the object itself and change a part of it: status, and those that a kind declares."""

SCALE = {"get": "http.scale:get", "update": "http.scale:update", "patch": "http.scale:patch_scale"}

_AUTHENTICATION, _AUTHORIZATION = "authentication.k8s.io", "authorization.k8s.io"

SPECIALS = {
    ("", "bindings", ""): "http.pod_actions:bind",
    ("", "componentstatuses", ""): "http.health:component_statuses",
    ("", "nodes", "proxy"): "http.connect:node_proxy",
    ("", "pods", "attach"): "http.connect:exec_or_attach",
    ("", "pods", "binding"): "http.pod_actions:bind",
    ("", "pods", "eviction"): "http.pod_actions:evict",
    ("", "pods", "exec"): "http.connect:exec_or_attach",
    ("", "pods", "log"): "http.connect:log",
    ("", "pods", "portforward"): "http.connect:exec_or_attach",
    ("", "pods", "proxy"): "http.connect:pod_proxy",
    ("", "serviceaccounts", "token"): "auth.token_handlers:create_token",
    ("", "services", "proxy"): "http.connect:service_proxy",
    (_AUTHENTICATION, "selfsubjectreviews", ""): "auth.reviews:self_subject",
    (_AUTHENTICATION, "tokenreviews", ""): "auth.reviews:token",
    (_AUTHORIZATION, "localsubjectaccessreviews", ""): "auth.reviews:local_access",
    (_AUTHORIZATION, "selfsubjectaccessreviews", ""): "auth.reviews:self_access",
    (_AUTHORIZATION, "selfsubjectrulesreviews", ""): "auth.reviews:self_rules",
    (_AUTHORIZATION, "subjectaccessreviews", ""): "auth.reviews:access",
}
"""By group, plural and subresource: resources of built-in kinds that are not plain storage."""

CONNECTS = {
    ("", "pods", "exec"): "PodExecOptions",
    ("", "pods", "attach"): "PodAttachOptions",
    ("", "pods", "portforward"): "PodPortForwardOptions",
    ("", "pods", "proxy"): "PodProxyOptions",
    ("", "services", "proxy"): "ServiceProxyOptions",
    ("", "nodes", "proxy"): "NodeProxyOptions",
}
"""Of those, the ones that go through to a pod or a node, and the kind of their options."""

_HOOKS = (
    "start-apiserver-admission-initializer",
    "generic-apiserver-start-informers",
    "priority-and-fairness-config-consumer",
    "priority-and-fairness-filter",
    "storage-object-count-tracker-hook",
    "start-apiextensions-informers",
    "start-apiextensions-controllers",
    "crd-informer-synced",
    "start-system-namespaces-controller",
    "peer-endpoint-reconciler-controller",
    "start-cluster-authentication-info-controller",
    "start-kube-apiserver-identity-lease-controller",
    "start-kube-apiserver-identity-lease-garbage-collector",
    "storage-readiness",
    "start-legacy-token-tracking-controller",
    "start-service-ip-repair-controllers",
    "rbac/bootstrap-roles",
    "scheduling/bootstrap-system-priority-classes",
    "priority-and-fairness-config-producer",
    "bootstrap-controller",
    "start-kubernetes-service-cidr-controller",
    "start-kube-aggregator-informers",
    "apiservice-status-local-available-controller",
    "apiservice-status-remote-available-controller",
    "apiservice-registration-controller",
    "apiservice-discovery-controller",
    "kube-apiserver-autoregistration",
)
_STARTED = (
    *(f"poststarthook/{hook}" for hook in _HOOKS),
    "autoregister-completion",
    "poststarthook/apiservice-openapi-controller",
    "poststarthook/apiservice-openapiv3-controller",
)
"""Steps of the real server's start. Here everything has started before the first request is answered."""
_LIVE = ("ping", "log", "loopback-serving-certificate", "etcd", *_STARTED)
CHECKS = {
    "healthz": _LIVE,
    "livez": _LIVE,
    "readyz": ("ping", "log", "etcd", "etcd-readiness", "informer-sync", *_STARTED, "shutdown"),
}
"""The names of the health checks, in the order of the real server: scripts wait for one of them, or exclude it."""

BACKUP = "/konverge/v1/backup"
"""Not a path of Kubernetes; `konverge store backup` asks for it."""

PATHS = {
    "/version": "http.health:version",
    "/metrics": "http.health:metrics",
    BACKUP: "http.backup:backup",
    **{
        path: handler
        for root, checks in CHECKS.items()
        for path, handler in (
            (f"/{root}", "http.health:all_checks"),
            *((f"/{root}/{check}", "http.health:single_check") for check in checks),
        )
    },
    "/": "discovery.handlers:root",
    "/index.html": "discovery.handlers:root",
    "/api": "discovery.handlers:api",
    "/api/": "discovery.handlers:core_version",
    "/apis": "discovery.handlers:apis",
    "/apis/": "discovery.handlers:group_or_version",
    "/openapi/v2": "openapi.handlers:v2",
    "/openapi/v3": "openapi.handlers:v3_index",
    "/openapi/v3/": "openapi.handlers:v3_document",
    "/.well-known/openid-configuration": "auth.token_handlers:openid_configuration",
    "/openid/v1/jwks": "auth.token_handlers:public_keys",
}
"""What is not about a resource. A path that ends in a slash stands for everything below it."""

_SLASHED = ("/", "/version", "/api", "/apis", "/.well-known/openid-configuration", "/openid/v1/jwks")
SLASHED = {path: PATHS[path] for path in _SLASHED}
"""Of these, what is found with a slash at its end, too."""


@cache
def load(target: str) -> Handler:
    """The function behind `module:function`."""
    module, _, name = target.partition(":")
    handler: Handler = getattr(import_module(f"konverge.apiserver.{module}"), name)
    return handler
