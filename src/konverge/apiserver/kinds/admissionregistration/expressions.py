"""CEL expressions of webhooks and policies: what they may refer to, and what is wrong with them.

    scope = Expressions(params=True)                  # of one policy
    scope.add_variable("size", "object.spec.size")    # later expressions see variables.size
    scope.error("variables.size > 1", BOOL)           # "" or the compiler's text

The environment is the one in which the expressions are evaluated at admission (`environment`): the object and its old
state without types, the request and the namespace with theirs.

Upstream: k8s.io/apiserver/pkg/admission/plugin/cel.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from konverge.apiserver.cel import cel_types as t
from konverge.apiserver.cel.checker import Environment, check
from konverge.apiserver.cel.declarations import AUTHORIZER, RESOURCE_CHECK
from konverge.apiserver.cel.parser import parse
from konverge.apiserver.cel.source import CompileError

BOOL, STRING = (t.BOOL,), (t.STRING,)
STRING_OR_NULL = (t.STRING, t.NULL)
JSON_PATCH = t.struct("JSONPatch", {"op": t.STRING, "path": t.STRING, "from": t.STRING, "value": t.DYN})
PATCHES = (t.list_of(JSON_PATCH),)

_KIND = t.struct("kubernetes.GroupVersionKind", dict.fromkeys(("group", "version", "kind"), t.STRING))
_RESOURCE = t.struct("kubernetes.GroupVersionResource", dict.fromkeys(("group", "version", "resource"), t.STRING))
_STRINGS = t.list_of(t.STRING)
_TEXTS = t.map_of(t.STRING, t.STRING)
_USER = t.struct(
    "kubernetes.UserInfo",
    {"username": t.STRING, "uid": t.STRING, "groups": _STRINGS, "extra": t.map_of(t.STRING, _STRINGS)},
)
_REQUEST = t.struct(  # upstream: BuildRequestType
    "kubernetes.AdmissionRequest",
    {
        "kind": _KIND,
        "resource": _RESOURCE,
        "subResource": t.STRING,
        "requestKind": _KIND,
        "requestResource": _RESOURCE,
        "requestSubResource": t.STRING,
        "name": t.STRING,
        "namespace": t.STRING,
        "operation": t.STRING,
        "userInfo": _USER,
        "dryRun": t.BOOL,
        "options": t.DYN,
    },
)
_METADATA = t.struct(
    "kubernetes.NamespaceMetadata",
    {
        "name": t.STRING,
        "generateName": t.STRING,
        "namespace": t.STRING,
        "labels": _TEXTS,
        "annotations": _TEXTS,
        "UID": t.STRING,
        "creationTimestamp": t.TIMESTAMP,
        "deletionGracePeriodSeconds": t.INT,
        "deletionTimestamp": t.TIMESTAMP,
        "generation": t.INT,
        "resourceVersion": t.STRING,
        "finalizers": _STRINGS,
    },
)
_NAMESPACE = t.struct(  # upstream: BuildNamespaceType
    "kubernetes.Namespace",
    {
        "metadata": _METADATA,
        "spec": t.struct("kubernetes.NamespaceSpec", {"finalizers": _STRINGS}),
        "status": t.struct("kubernetes.NamespaceStatus", {"phase": t.STRING}),
    },
)


class _AnyField(Mapping[str, t.Type]):
    """The members of `Object{…}`: there is no schema, so any will do."""

    def __getitem__(self, name: str) -> t.Type:
        return t.DYN

    def __contains__(self, name: object) -> bool:
        return True

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0

    def __bool__(self) -> bool:
        return True


@cache
def _object(name: str) -> t.Type:
    return t.struct(name, _AnyField())


class _PatchTypes(Mapping[str, t.Type]):
    """The structs that a mutation may make: JSONPatch, and Object with anything below it."""

    def __getitem__(self, name: str) -> t.Type:
        if name == "JSONPatch":
            return JSON_PATCH
        if name == "Object" or name.startswith("Object."):
            return _object(name)
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        return iter(("JSONPatch", "Object"))

    def __len__(self) -> int:
        return 2


OBJECT = (_object("Object"),)


# upstream: mustBuildEnvs
def environment(
    *, params: bool, authorizer: bool = True, patches: bool = False, variables: Mapping[str, t.Type] | None = None
) -> Environment:
    """What an expression may refer to. `variables` are the policy's own, None where it has none."""
    names: dict[str, t.Type] = {"object": t.DYN, "oldObject": t.DYN, "request": _REQUEST, "namespaceObject": _NAMESPACE}
    if params:
        names["params"] = t.DYN
    if authorizer:
        names |= {"authorizer": AUTHORIZER, "authorizer.requestResource": RESOURCE_CHECK}
    if variables is not None:
        names["variables"] = t.struct("kubernetes.variables", variables)
    return Environment(names, structs=_PatchTypes() if patches else {}, patches=patches)


class Expressions:
    """The expressions of one object, in order: variables become known to those after them."""

    def __init__(self, *, params: bool = False, variables: bool = False) -> None:
        self._params = params
        self._variables: dict[str, t.Type] | None = {} if variables else None

    def _checked(self, text: str, **what: Any) -> t.Type:
        source, tree = parse(text)
        known = None if self._variables is None else dict(self._variables)
        return check(source, tree, environment(params=self._params, variables=known, **what)).type

    def add_variable(self, name: str, text: str) -> str:  # upstream: CompileAndStoreVariable
        """Compiles a variable and makes it known, even one that cannot be compiled; returns the message."""
        kind, failure = t.DYN, ""
        try:
            kind = self._checked(text)
        except CompileError as error:
            failure = f"compilation failed: {error}"
        if self._variables is not None:
            self._variables[name] = kind
        return failure

    # upstream: CompileCELExpression
    def error(self, text: str, wanted: tuple[t.Type, ...], *, authorizer: bool = True, patches: bool = False) -> str:
        """What is wrong with an expression that must give one of these types."""
        try:
            actual = self._checked(text, authorizer=authorizer, patches=patches)
        except CompileError as error:
            return f"compilation failed: {error}"
        if str(actual) in {str(kind) for kind in wanted}:
            return ""
        names = [str(kind) for kind in wanted]
        shown = names[0] if len(names) == 1 else f"one of [{' '.join(names)}]"
        return f"must evaluate to {shown} but got {actual}".replace(" null]", " null_type]")
