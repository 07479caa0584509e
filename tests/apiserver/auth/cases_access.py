"""Who may do what: RBAC, escalation, impersonation, reviews, tokens."""

from __future__ import annotations

from typing import Any

from tests.apiserver.exchanges import MERGE, Step

RBAC = "/apis/rbac.authorization.k8s.io/v1"
REVIEWS, IDENTITY = "/apis/authorization.k8s.io/v1", "/apis/authentication.k8s.io/v1"
BASE = "/api/v1/namespaces/access"
MAPS = f"{BASE}/configmaps"


def user(name: str) -> Any:
    return {"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": name}


def account(name: str, namespace: str = "access") -> Any:
    return {"kind": "ServiceAccount", "name": name, "namespace": namespace}


def rule(groups: list[str], resources: list[str], verbs: list[str], names: list[str] | None = None) -> Any:
    parts = {"apiGroups": groups, "resources": resources, "verbs": verbs}
    return {**parts, **({"resourceNames": names} if names else {})}


def _ref(kind: str, name: str) -> Any:
    return {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name}


def cluster_grant(name: str, rules: list[Any], subject: Any) -> list[Step]:
    binding = {"metadata": {"name": name}, "roleRef": _ref("ClusterRole", name), "subjects": [subject]}
    return [
        Step("POST", f"{RBAC}/clusterroles", {"metadata": {"name": name}, "rules": rules}),
        Step("POST", f"{RBAC}/clusterrolebindings", binding),
    ]


_RBAC_GROUP = ["rbac.authorization.k8s.io"]
_RBAC_KINDS = ["roles", "rolebindings", "clusterroles", "clusterrolebindings"]
_IDENTITY_GROUP = ["authentication.k8s.io"]


def _grants() -> list[Step]:
    names = [
        rule([""], ["configmaps"], ["get", "update"], ["one"]),
        rule([""], ["pods/*", "pods"], ["get"]),
        rule(["apps"], ["*/scale"], ["*"]),
    ]
    subjects = [
        user("ann"),
        {"kind": "Group", "apiGroup": "rbac.authorization.k8s.io", "name": "team"},
        account("robot"),
        account("far", "access-2"),
    ]
    urls = [{"nonResourceURLs": ["/metrics", "/logs/*"], "verbs": ["get"]}, rule(["*"], ["secrets"], ["list"])]
    some = rule([""], ["pods", "services"], ["get", "list"])
    foo = {"nonResourceURLs": ["/foo/*"], "verbs": ["get"]}
    writes = ["create", "update", "patch", "get", "delete"]
    legacy = [
        rule([""], ["users"], ["impersonate"], ["alice"]),
        rule(_IDENTITY_GROUP, ["userextras/scopes"], ["impersonate"]),
        rule(_IDENTITY_GROUP, ["uids"], ["impersonate"], ["u1"]),
    ]
    constrained = [
        rule(_IDENTITY_GROUP, ["users"], ["impersonate:user-info"]),
        rule([""], ["configmaps"], ["impersonate-on:user-info:list", "impersonate-on:serviceaccount:list"]),
        rule(_IDENTITY_GROUP, ["serviceaccounts"], ["impersonate:serviceaccount"]),
        rule(_IDENTITY_GROUP, ["groups"], ["impersonate:user-info"], ["g1"]),
    ]
    return [
        Step("POST", f"{RBAC}/namespaces/access/roles", {"metadata": {"name": "names"}, "rules": names}),
        Step(
            "POST",
            f"{RBAC}/namespaces/access/rolebindings",
            {"metadata": {"name": "names"}, "roleRef": _ref("Role", "names"), "subjects": subjects},
        ),
        *cluster_grant("t-urls", urls, user("ann")),
        *cluster_grant("t-writer", [rule(_RBAC_GROUP, _RBAC_KINDS, writes), some, foo], user("rob")),
        *cluster_grant("t-all", [rule(_RBAC_GROUP, _RBAC_KINDS, ["*"])], user("rex")),
        *cluster_grant("t-escalate", [rule(_RBAC_GROUP, ["clusterroles"], ["create", "escalate"])], user("eva")),
        *cluster_grant("t-legacy", legacy, account("legacy")),
        *cluster_grant("t-constrained", constrained, account("constrained")),
        *cluster_grant("t-dangling", [], user("zoe")),
        Step("DELETE", f"{RBAC}/clusterroles/t-dangling"),
    ]


def _as(name: str, method: str, path: str, body: Any = None, settle: float = 0, **more: Any) -> Step:
    headers = {"impersonate-user": name, **(MERGE if method == "PATCH" else {}), **more}
    return Step(method, path, body, headers, settle=settle)


def _reads() -> list[Step]:
    steps = [_as("ann", "GET", f"{MAPS}/one", settle=2)]
    paths = [
        MAPS, f"{MAPS}/one", f"{MAPS}/two", f"{MAPS}?fieldSelector=metadata.name=two", f"{BASE}/pods/x/log",
        "/apis/apps/v1/namespaces/access/deployments/x/scale", "/logs/a", "/foo", "/apis/apps",
        BASE, "/api/v1/namespaces", "/healthz/ping", "/apis/nosuch/v1/foos", "/api/v1/nosuch",
    ]  # fmt: skip
    for name in ("ann", "other", "zoe"):
        refused = [path for path in paths if name != "ann" or path not in (f"{MAPS}/one", "/logs/a")]
        steps += [
            _as(name, "GET", path) for path in refused if not path.startswith(("/healthz", "/apis/apps", "/logs"))
        ]
        steps.append(_as(name, "PUT", f"{MAPS}/one", {"metadata": {"name": "one"}}))
        steps += [_as(name, "DELETE", MAPS), _as(name, "PATCH", f"{MAPS}/one", {}), _as(name, "POST", "/nothing", {})]
    group = {"impersonate-group": ["team"]}
    return [
        *steps,
        Step("GET", f"{MAPS}/one", headers={"impersonate-user": "zed", **group}),
        *(
            _as(f"system:serviceaccount:{who}", "GET", f"{MAPS}/one")
            for who in ("access:robot", "access-2:far", "access:far")
        ),
    ]


def _escalations() -> list[Step]:
    roles, bindings = f"{RBAC}/namespaces/access/roles", f"{RBAC}/namespaces/access/rolebindings"
    wide = rule(["", "apps"], ["pods", "deployments"], ["get", "list"], ["a", "b"])
    urls = {"nonResourceURLs": ["/foo/bar", "/bar"], "verbs": ["get", "post"]}
    selector = {"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]}
    steps: list[Step] = []
    for name in ("rob", "rex", "eva"):
        tried: list[tuple[str, str, Any]] = [
            ("POST", roles, {"rules": [rule([""], ["pods", "services"], ["get", "list"])]}),
            ("POST", roles, {"rules": [wide]}),
            ("POST", f"{RBAC}/clusterroles", {"rules": [urls]}),
            ("POST", f"{RBAC}/clusterroles", {"aggregationRule": selector, "rules": []}),
            ("POST", f"{RBAC}/clusterroles", {"rules": [rule(["*"], ["*"], ["*"])]}),
        ]
        for kind, role in (("ClusterRole", "cluster-admin"), ("ClusterRole", "nosuch"), ("Foo", "nosuch")):
            tried.append(
                ("POST", f"{RBAC}/clusterrolebindings", {"roleRef": _ref(kind, role), "subjects": [user("x")]})
            )
        tried.append(("POST", bindings, {"roleRef": _ref("Role", "names"), "subjects": [user("x")]}))
        tried.append(("POST", bindings, {"roleRef": _ref("ClusterRole", "system:discovery"), "subjects": [user("x")]}))
        for index, (method, path, body) in enumerate(tried):
            steps.append(_as(name, method, f"{path}?dryRun=All", {"metadata": {"name": f"r{index}"}, **body}))
        steps.append(_as(name, "PATCH", f"{bindings}/names?dryRun=All", {"subjects": [user("x")]}))
        steps.append(_as(name, "PATCH", f"{roles}/names?dryRun=All", {"metadata": {"labels": {"a": "b"}}}))
        steps.append(_as(name, "PATCH", f"{roles}/names?dryRun=All", {"metadata": {"finalizers": ["a.b/c"]}}))
    return steps


def _impersonations() -> list[Step]:
    all_headers: list[dict[str, Any]] = [
        {"impersonate-user": "alice"},
        {"impersonate-user": "bob"},
        {"impersonate-user": "alice", "impersonate-uid": "u1"},
        {"impersonate-user": "alice", "impersonate-uid": "u2"},
        {"impersonate-user": "alice", "impersonate-extra-scopes": "a"},
        {"impersonate-user": "alice", "impersonate-extra-foo": "a"},
        {"impersonate-user": "alice", "impersonate-group": ["g1"]},
        {"impersonate-user": "alice", "impersonate-group": ["g2"]},
        {"impersonate-user": "alice", "impersonate-group": ["system:masters"]},
        {"impersonate-user": "system:serviceaccount:access:robot"},
        {"impersonate-user": "system:serviceaccount:access:robot", "impersonate-group": ["x"]},
        {"impersonate-user": "system:node:n1"},
    ]
    steps = [Step("GET", MAPS, headers={"impersonate-uid": "x", "impersonate-extra-a": "b"})]
    for token in ("robot", "legacy", "constrained"):
        steps += [Step("GET", MAPS, headers=headers, token=token) for headers in all_headers]
        steps.append(Step("GET", "/foo", headers={"impersonate-user": "bob"}, token=token))
    return steps


def _reviews() -> list[Step]:
    single = {"resourceAttributes": {"verb": "get", "resource": "configmaps", "namespace": "access", "name": "one"}}
    selector = {
        "requirements": [{"key": "a b", "operator": "Exists", "values": ["x"]}, {"key": "a", "operator": "Foo"}]
    }
    raw = {"rawSelector": "a", "requirements": [{"key": "a", "operator": "In"}]}
    secrets = {"verb": "list", "resource": "secrets"}
    specs: list[Any] = [
        single,
        {"resourceAttributes": {"verb": "get", "resource": "pods", "subresource": "log", "namespace": "access"}},
        {"nonResourceAttributes": {"path": "/metrics", "verb": "get"}},
        {"resourceAttributes": secrets},
        {"resourceAttributes": {}},
        {},
        {**single, "nonResourceAttributes": {"path": "/x"}},
        {"resourceAttributes": {**secrets, "fieldSelector": {}}},
        {"resourceAttributes": {**secrets, "labelSelector": raw}},
        {"resourceAttributes": {**secrets, "labelSelector": selector}},
    ]
    steps: list[Step] = []
    for spec in specs:
        steps.append(Step("POST", f"{REVIEWS}/subjectaccessreviews", {"spec": {"user": "ann", **spec}}))
        steps.append(_as("ann", "POST", f"{REVIEWS}/selfsubjectaccessreviews", {"spec": spec}))
        local = f"{REVIEWS}/namespaces/access/localsubjectaccessreviews"
        steps.append(Step("POST", local, {"spec": {"user": "ann", **spec}}))
    team = {"user": "x", "groups": ["team"], "uid": "1", "extra": {"a": ["b"]}, **single}
    named = {"metadata": {"name": "x"}, "spec": {"user": "x", "resourceAttributes": {"verb": "get"}}}
    return [
        *steps,
        Step("POST", f"{REVIEWS}/subjectaccessreviews", {"spec": team}),
        Step("POST", f"{REVIEWS}/subjectaccessreviews", named),
        Step("POST", f"{REVIEWS}/subjectaccessreviews", {"spec": single}),
        Step("POST", f"{REVIEWS}/namespaces/access/localsubjectaccessreviews", named),
        _as("zoe", "POST", f"{REVIEWS}/selfsubjectaccessreviews", {"spec": single}),
        Step("POST", f"{REVIEWS}/selfsubjectrulesreviews", {"spec": {}}),
        Step("POST", f"{IDENTITY}/tokenreviews", {"spec": {"token": "a.b.c"}}),
        Step("POST", f"{IDENTITY}/tokenreviews", {"spec": {}}),
        _as("kim", "POST", f"{IDENTITY}/selfsubjectreviews", {"status": {"userInfo": {"username": "q"}}}),
    ]


def _tokens() -> list[Step]:
    path = f"{BASE}/serviceaccounts/robot/token"
    specs: list[Any] = [
        {"audiences": ["a", "b"]},
        {"expirationSeconds": 599},
        {"expirationSeconds": -1},
        {"boundObjectRef": {}},
        {"attestations": {"a": ["b"]}},
        *({"boundObjectRef": {"kind": kind, "apiVersion": "v1", "name": "x"}} for kind in ("Pod", "Node", "Secret")),
        {"boundObjectRef": {"kind": "Deployment", "apiVersion": "apps/v1", "name": "x"}},
    ]
    return [
        *(Step("POST", path, {"spec": spec}) for spec in specs),
        Step("POST", path, {"metadata": {"namespace": "zz"}, "spec": {}}),
        Step("POST", path, {"metadata": {"name": "zz"}, "spec": {}}),
        Step("POST", path, {"metadata": {"uid": "zz"}, "spec": {}}),
        Step("GET", MAPS, token="robot"),
        Step("GET", MAPS, token="nonsense"),
    ]


def _accounts() -> list[Step]:
    steps = [Step("POST", "/api/v1/namespaces", {"metadata": {"name": name}}) for name in ("access", "access-2")]
    for name in ("robot", "legacy", "constrained"):
        steps.append(Step("POST", f"{BASE}/serviceaccounts", {"metadata": {"name": name}}))
        steps.append(Step("POST", f"{BASE}/serviceaccounts/{name}/token", {"spec": {}}, keep=name))
    return steps


STEPS = [*_accounts(), *_grants(), *_reads(), *_escalations(), *_impersonations(), *_reviews(), *_tokens()]
