"""`konverge crd`, `rbac`, `manifests` and `chart`: what a cluster needs for operators to run in it, from their code."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from konverge.cli.arguments import (
    add_operators,
    add_output,
    add_watched,
    command,
    count,
    is_own,
    konverge_version,
    namespace,
    operators_of,
)
from konverge.cli.exit import UsageError

if TYPE_CHECKING:
    from konverge.cli.installation import Installation
    from konverge.operators.catalog import Operator

NAMESPACE = "konverge-system"
MAX_REPLICAS = 10


def add(commands: Any) -> None:
    _add_definitions(commands)
    _add_roles(commands)
    _add_manifests(commands)
    _add_chart(commands)


def _add_definitions(commands: Any) -> None:
    about = "print the CustomResourceDefinitions of operators"
    parser = command(commands, "crd", about, "konverge crd webapp | kubectl apply -f -")
    add_operators(parser)
    add_output(parser, "yaml", "json")
    parser.add_argument("--console-pages", action="store_true", help=argparse.SUPPRESS)  # for `konverge up --watch`
    parser.set_defaults(run=print_definitions)


def _add_roles(commands: Any) -> None:
    about = "print the service account and the roles of operators"
    parser = command(commands, "rbac", about, "konverge rbac webapp --namespace tools | kubectl apply -f -")
    add_operators(parser)
    _add_placement(parser)
    _add_cert_manager(parser)
    about = "the roles in each of the other clusters (Manager(clusters=…)), not those at home"
    parser.add_argument("--other-clusters", action="store_true", help=about)
    add_output(parser, "yaml", "json")
    parser.set_defaults(run=print_roles)


def _add_manifests(commands: Any) -> None:
    about = "print everything to install: definitions, namespace, roles, Deployment, Service, disruption budget"
    parser = command(
        commands,
        "manifests",
        about,
        "konverge manifests webapp --image example.com/konverge:1.0 | kubectl apply -f -",
        "konverge manifests webapp --namespace tools --watch-namespace shop --replicas 1 --output json",
        "konverge manifests nacos --management --tls-secret nacos-management-tls",
    )
    add_operators(parser)
    _add_placement(parser)
    parser.add_argument("--image", default="", help="the container image (that of the operator, in its version)")
    parser.add_argument(
        "--replicas",
        type=count(0, MAX_REPLICAS),
        default=None,
        help="number of replicas (2, or as its sharding says); without sharding one works, the others stand by",
    )
    parser.add_argument(
        "--policies", action="store_true", help="also the CEL rules of its kinds as ValidatingAdmissionPolicies"
    )
    parser.add_argument(
        "--service-monitor", action="store_true", help="also a ServiceMonitor for the Prometheus operator"
    )
    parser.add_argument(
        "--monitoring",
        action="store_true",
        help="also a ServiceMonitor, alerting rules (PrometheusRule) and a Grafana dashboard (ConfigMap)",
    )
    parser.add_argument(
        "--metrics-secure",
        action="store_true",
        help="metrics over TLS, to those whom the API server allows (a ClusterRole for readers is in it)",
    )
    _add_cert_manager(parser)
    if is_own(parser):
        parser.set_defaults(management=False)
    else:
        _add_management(parser)
    add_output(parser, "yaml", "json")
    parser.set_defaults(run=print_manifests)


def _add_cert_manager(parser: argparse.ArgumentParser) -> None:
    about = "cert-manager issues the certificate of the webhooks (by default the operator does)"
    parser.add_argument("--cert-manager", action="store_true", help=about)


def _add_management(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--management", action="store_true", help="also the management service of Nacos")
    parser.add_argument("--tls-secret", default="", metavar="NAME", help="the Secret with its certificate")
    parser.add_argument("--behind-proxy", action="store_true", help="a proxy in front of it speaks TLS")


def _add_chart(commands: Any) -> None:
    about = "make a Helm chart of an operator: definitions, roles from its code, Deployment, Service, budget, monitor"
    parser = command(commands, "chart", about, "konverge chart webapp --dir charts")
    add_operators(parser)
    parser.add_argument("--dir", type=Path, default=Path("charts"), help="where the chart's folder is made (charts)")
    parser.set_defaults(run=make_charts)


def _add_placement(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-n",
        "--namespace",
        type=namespace,
        help=f"namespace of the operators ({NAMESPACE}; NAME-system for one of your own)",
    )
    add_watched(parser)


def print_definitions(arguments: argparse.Namespace) -> int:
    from konverge.cli.documents import write

    operators = operators_of(arguments)
    definitions = [definition for operator in operators for definition in operator.definitions()]
    if arguments.console_pages:
        from konverge.cli.console_pages import declared_pages
        from konverge.objects.codec import to_json

        print(to_json({"items": definitions, "consolePages": declared_pages(operators)}).decode())
    else:
        print(write(definitions, arguments.output))
    return 0


def print_roles(arguments: argparse.Namespace) -> int:
    from konverge.cli.documents import write

    plan = _installation(arguments, cert_manager=arguments.cert_manager)
    print(write(plan.access_elsewhere() if arguments.other_clusters else plan.access(), arguments.output))
    return 0


def print_manifests(arguments: argparse.Namespace) -> int:
    from konverge.cli.documents import write

    plan = _installation(
        arguments,
        replicas=_replicas(arguments),
        service_monitor=arguments.service_monitor,
        rule_policies=arguments.policies,
        monitoring=arguments.monitoring,
        secure_metrics=arguments.metrics_secure,
        cert_manager=arguments.cert_manager,
    )
    print(write([*plan.everything(), *_management(arguments, plan)], arguments.output))
    return 0


def _replicas(arguments: argparse.Namespace) -> int:
    from konverge.cli.installation import replicas_of

    return replicas_of(operators_of(arguments)) if arguments.replicas is None else int(arguments.replicas)


def _installation(arguments: argparse.Namespace, **options: Any) -> Installation:
    from konverge.cli.installation import Installation

    operators = operators_of(arguments)
    products = {operator.product for operator in operators}
    return Installation(
        operators=operators,
        namespace=arguments.namespace or (f"{products.pop()}-system" if len(products) == 1 else NAMESPACE),
        watched=tuple(arguments.watch_namespace),
        image=_image(arguments, operators),
        **options,
    )


def _image(arguments: argparse.Namespace, operators: list[Operator]) -> str:
    images = {operator.image or f"konverge:{konverge_version()}" for operator in operators}
    if image := getattr(arguments, "image", ""):
        return str(image)
    if len(images) > 1 and "image" in arguments:
        names = " and ".join(operator.name for operator in operators)
        raise UsageError(f"give --image: one that has the programs of {names}")
    return images.pop()


def _management(arguments: argparse.Namespace, plan: Installation) -> list[dict[str, Any]]:
    from konverge.cli.management import Management

    if not arguments.management:
        return []
    if "nacos" not in [operator.name for operator in plan.operators]:
        raise UsageError("--management installs the service of the Nacos operator: name nacos too")
    if bool(arguments.tls_secret) == arguments.behind_proxy:
        raise UsageError(
            "callers send tokens to the management service: give --tls-secret or --behind-proxy, one of them"
        )
    management = Management(
        operator=plan.name, namespace=plan.namespace, image=plan.image, tls_secret=arguments.tls_secret
    )
    return management.everything()


def make_charts(arguments: argparse.Namespace) -> int:
    from konverge.cli.chart_leftovers import leftovers
    from konverge.cli.charts import chart
    from konverge.cli.documents import write_folder

    for operator in operators_of(arguments):
        folder: Path = arguments.dir / operator.identity
        if folder.exists() and not (folder / "Chart.yaml").exists() and any(folder.iterdir()):
            raise UsageError(f"the folder {folder} exists and is not a chart: give another --dir, or remove it")
        version = operator.version or ("" if operator.image else konverge_version())
        made = chart(operator, version)
        write_folder(folder, made)
        for file in list(leftovers(folder, operator, made)):
            file.unlink()
            print(f"removed {file}: the chart does not have it any more", file=sys.stderr)
        print(folder)
    return 0
