"""What a cluster must have for operators to run in it, as plain objects. Pure: the code says what is needed.

The roles come from the controllers' declarations. Permissions for all namespaces become a ClusterRole, those for one
become a Role there; the Lease is in the namespace of the operator. The pod is one that the strictest admission
(Pod Security "restricted") lets in.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from konverge.cli import monitoring
from konverge.cli.webhook_objects import WebhookObjects
from konverge.operators.catalog import Operator, joint_name
from konverge.runtime import Controller
from konverge.runtime.rbac import Permission, permissions, rules_for
from konverge.runtime.sharding import Sharding

Obj = dict[str, Any]

METRICS = 8080
PROBES = 8081
USER = 65532
"""The user id of `nonroot` in minimal images."""
GRACE = 40
"""Seconds for the end: the manager's 30 for what is queued, and some to spare."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Program(ABC):
    """One program in a cluster: its Deployment and what belongs to it. The subclasses say what is in the container."""

    namespace: str
    image: str = "konverge:latest"
    replicas: int = 2

    @property
    @abstractmethod
    def name(self) -> str: ...

    @property
    def _labels(self) -> dict[str, str]:
        return {"app.kubernetes.io/name": self.name, "app.kubernetes.io/part-of": self._product}

    @property
    def _product(self) -> str:
        return "konverge"

    @property
    def _program(self) -> str:
        """The command of the container."""
        return "konverge"

    def _object(self, api_version: str, kind: str, namespace: str | None = None, name: str = "") -> Obj:
        where = self.namespace if namespace is None else namespace
        metadata: Obj = {"name": name or self.name, **({"namespace": where} if where else {}), "labels": self._labels}
        return {"apiVersion": api_version, "kind": kind, "metadata": metadata}

    def _deployment(self, pod: Obj) -> Obj:
        spec = {
            "replicas": self.replicas,
            "selector": {"matchLabels": self._labels},
            "template": {"metadata": {"labels": self._labels}, "spec": pod},
        }
        return {**self._object("apps/v1", "Deployment"), "spec": spec}

    def _pod(self, container: Obj, *, grace: int) -> Obj:
        """One container, without privileges, on nodes of their own where there are several."""
        return {
            "serviceAccountName": self.name,
            "terminationGracePeriodSeconds": grace,
            "securityContext": {
                "runAsNonRoot": True,
                "runAsUser": USER,
                "fsGroup": USER,  # or the user could not read a mounted key
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "topologySpreadConstraints": [
                {
                    "maxSkew": 1,
                    "topologyKey": "kubernetes.io/hostname",
                    "whenUnsatisfiable": "ScheduleAnyway",
                    "labelSelector": {"matchLabels": self._labels},
                }
            ],
            "containers": [container],
        }

    def _container(self, name: str, arguments: list[str], **parts: Any) -> Obj:
        security = {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        program: Obj = {"name": name, "image": self.image, "command": [self._program], "args": arguments}
        return {**program, **parts, "securityContext": security}

    def _service(self, port: Obj, **parts: Any) -> Obj:
        return {**self._object("v1", "Service"), "spec": {**parts, "selector": self._labels, "ports": [port]}}

    def _budget(self) -> Obj:
        spec = {"maxUnavailable": 1, "selector": {"matchLabels": self._labels}}
        return {**self._object("policy/v1", "PodDisruptionBudget"), "spec": spec}


@dataclass(frozen=True, slots=True, kw_only=True)
class Installation(Program):
    """Operators in one process, in one namespace."""

    operators: Sequence[Operator]
    watched: tuple[str, ...] = ()
    service_monitor: bool = False
    monitoring: bool = False
    """Also a ServiceMonitor, alerting rules and a dashboard."""
    secure_metrics: bool = False
    """Metrics over TLS, to those who may read them."""
    rule_policies: bool = False
    """Also the rules of its kinds as admission policies."""
    cert_manager: bool = False
    """Whether cert-manager keeps the certificate of the webhooks; else the operator does."""

    @property
    def name(self) -> str:
        return joint_name(self.operators)

    @property
    def _product(self) -> str:
        return "-".join(sorted({operator.product for operator in self.operators}))

    @property
    def _program(self) -> str:
        return self.operators[0].start[0]

    @property
    def webhooks(self) -> WebhookObjects:
        hooks = [webhook for operator in self.operators for webhook in operator.webhooks()]
        return WebhookObjects(webhooks=hooks, name=self.name, namespace=self.namespace, cert_manager=self.cert_manager)

    def everything(self) -> list[Obj]:
        """In the order in which it has to be made."""
        definitions = [definition for operator in self.operators for definition in operator.definitions()]
        objs = [self.webhooks.in_definition(definition) for definition in definitions]
        objs += self._policies()
        pod = self._pod(self._operator(), grace=GRACE) | self.webhooks.volumes()
        objs += [self._namespace(), *self.access(), self._deployment(pod)]
        objs += [self._service({"name": "metrics", "port": METRICS, "targetPort": "metrics"}), self._budget()]
        return [*objs, *self.webhooks.everything(self._labels), *self._monitoring()]

    def _policies(self) -> list[Obj]:
        """What the API server is to refuse."""
        from konverge.objects.custom.policies import rule_policy

        objs = [policy for operator in self.operators for policy in operator.policies(self.name)]
        if self.rule_policies:
            kinds = [kind for operator in self.operators for kind in operator.stored_kinds]
            objs += [policy for kind in kinds for policy in rule_policy(kind)]  # also for requests in other versions
        return [{**policy, "metadata": {**policy["metadata"], "labels": self._labels}} for policy in objs]

    # -------------------------------------------------------------- access

    def access(self) -> list[Obj]:
        """The service account and what it may do."""
        needed = permissions(
            in_namespaces(home_controllers(self.operators), self.watched),
            lease_namespace=self.namespace,
            reviews=self._reviews,
            sharded=sharding_of(self.operators) is not None,
        )
        return self._granted([*needed, *provider_permissions(self.operators), *self.webhooks.permissions()])

    def access_elsewhere(self) -> list[Obj]:
        """The same in each of the other clusters: the kubeconfig of a cluster has a token of this account."""
        from konverge.runtime.clusters.roles import permissions_elsewhere

        controllers = [controller for operator in self.operators for controller in operator.controllers()]
        return self._granted(permissions_elsewhere(in_namespaces(controllers, self.watched)))

    def _granted(self, needed: Sequence[Permission]) -> list[Obj]:
        objs: list[Obj] = [self._object("v1", "ServiceAccount")]
        for namespace in sorted({permission.namespace for permission in needed}):
            objs += self._role(namespace, [permission for permission in needed if permission.namespace == namespace])
        if self.secure_metrics:
            reader = self._object("rbac.authorization.k8s.io/v1", "ClusterRole", "", f"{self.name}-metrics-reader")
            objs.append({**reader, "rules": monitoring.READER_RULES})
        return objs

    @property
    def _reviews(self) -> bool:
        """Whether the program asks who may read its metrics or its debug pages."""
        return self.secure_metrics or any(
            operator.manager is not None and operator.manager.declares_debug for operator in self.operators
        )

    def _role(self, namespace: str, granted: list[Permission]) -> list[Obj]:
        kind = "Role" if namespace else "ClusterRole"
        api = "rbac.authorization.k8s.io/v1"
        role = self._object(api, kind, namespace)
        binding = self._object(api, f"{kind}Binding", namespace)
        role["rules"] = rules_for(granted)
        binding["roleRef"] = {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": self.name}
        binding["subjects"] = [{"kind": "ServiceAccount", "name": self.name, "namespace": self.namespace}]
        return [role, binding]

    # -------------------------------------------------------------- the program

    def _namespace(self) -> Obj:
        labels = {"pod-security.kubernetes.io/enforce": "restricted"}
        return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.namespace, "labels": labels}}

    def _operator(self) -> Obj:
        ports = {"metrics": METRICS, "probes": PROBES, **self.webhooks.ports()}
        return self._container(
            "operator",
            self.arguments(),
            **self._environment(),
            **self.webhooks.mounts(),
            ports=[{"name": name, "containerPort": port} for name, port in ports.items()],
            livenessProbe={"httpGet": {"path": "/healthz", "port": "probes"}, "periodSeconds": 20},
            readinessProbe={"httpGet": {"path": "/readyz", "port": "probes"}, "periodSeconds": 5},
            resources={"requests": {"cpu": "50m", "memory": "96Mi"}, "limits": {"memory": "256Mi"}},
        )

    def _environment(self) -> Obj:
        variables = {name: value for operator in self.operators for name, value in operator.environment().items()}
        return {"env": [{"name": name, "value": value} for name, value in variables.items()]} if variables else {}

    def arguments(self) -> list[str]:
        """Of the program in the pod."""
        return [
            "run",
            *(part for operator in self.operators for part in operator.reference),
            "--leader-elect",
            f"--leader-election-namespace={self.namespace}",
            f"--metrics-bind-address=:{METRICS}",
            f"--health-probe-bind-address=:{PROBES}",
            "--log-level=info",
            "--log-format=json",
            *(["--metrics-secure"] if self.secure_metrics else []),
            *(f"--watch-namespace={namespace}" for namespace in self.watched),
            *self.webhooks.arguments(),
        ]

    def _monitoring(self) -> list[Obj]:
        objs: list[Obj] = []
        api = "monitoring.coreos.com/v1"
        if self.service_monitor or self.monitoring:
            spec = monitoring.monitor(self._labels, secure=self.secure_metrics)
            objs.append({**self._object(api, "ServiceMonitor"), "spec": spec})
        if self.monitoring:
            objs.append({**self._object(api, "PrometheusRule"), "spec": monitoring.rules(self.name, self.namespace)})
            config = self._object("v1", "ConfigMap", name=f"{self.name}-dashboard")
            config["metadata"]["labels"] = {**self._labels, "grafana_dashboard": "1"}
            data = {f"{self.name}.json": monitoring.dashboard_text(self.name, self.namespace)}
            objs.append({**config, "data": data})
        return objs


def sharding_of(operators: Sequence[Operator]) -> Sharding | None:
    """How the work of these operators is shared, if it is: operators in company elect a leader."""
    manager = operators[0].manager if len(operators) == 1 else None
    return None if manager is None else manager.sharding


def replicas_of(operators: Sequence[Operator]) -> int:
    """How many pods, where the user does not say."""
    sharding = sharding_of(operators)
    return 2 if sharding is None else sharding.replicas


def home_controllers(operators: Sequence[Operator]) -> list[Controller[Any]]:
    """Those that run in the home cluster, with what they watch there."""
    controllers = [controller for operator in operators for controller in operator.controllers()]
    if all(each.clusters == "home" and all(w.clusters == "same" for w in each.watched) for each in controllers):
        return controllers
    from konverge.runtime.clusters.roles import at_home

    return at_home(controllers)


def provider_permissions(operators: Sequence[Operator]) -> list[Permission]:
    """What the source of other clusters needs at home: operators in company have none."""
    manager = operators[0].manager if len(operators) == 1 else None
    provider = None if manager is None else manager.cluster_provider
    needed: list[Permission] = getattr(provider, "permissions", list)()
    return needed


def in_namespaces(controllers: Sequence[Controller[Any]], namespaces: tuple[str, ...]) -> list[Controller[Any]]:
    """The same controllers, looking at these namespaces only; at all of them when there is none."""
    return [replace(controller, namespaces=namespaces) if namespaces else controller for controller in controllers]
