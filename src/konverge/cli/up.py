"""`konverge up`: a whole Kubernetes on this machine, with the operators at work: API server, controllers, scheduler,
simulated nodes, definitions and samples. `embedded.py` is what it runs; this is how it is called.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from konverge.cli.arguments import (
    MAX_NODES,
    add_listening,
    address,
    check_listening,
    chosen_operators,
    command,
    count,
    ip_address,
    refuse_unless_free,
    refuse_unless_writable,
)
from konverge.cli.cluster_names import DEFAULT, cluster_name
from konverge.cli.databases import FORM, database
from konverge.cli.exit import UsageError

if TYPE_CHECKING:
    from konverge.operators.catalog import Operator
    from konverge.sim.applications import Simulation
    from konverge.sim.kubelet.behaviour import Rule
    from konverge.sim.processes import ProcessRule

NODES = 3
MAX_SEED = 2**31 - 1
METRICS = "127.0.0.1:0"
READY_WITHIN = 60


def add(commands: Any) -> None:
    about = "run a simulated Kubernetes with the operators: API server, controllers, scheduler, nodes"
    parser = command(
        commands,
        "up",
        about,
        "konverge up --kubeconfig konverge.kubeconfig",
        "konverge up --name dev --detach --merge-kubeconfig",
        "konverge up --operators my_operator.py -f app.yaml --watch",
        "konverge up --data-dir state --operators webapp --no-samples --output json",
        "konverge up --operators nacos --database mysql://nacos:secret@db.example.com:3306/nacos",
    )
    add_listening(parser)
    _add_lifetime(parser)
    parser.add_argument(
        "--nodes", type=count(0, MAX_NODES), default=NODES, help=f"how many simulated nodes ({NODES} by default)"
    )
    parser.add_argument(
        "--seed",
        type=count(0, MAX_SEED),
        default=0,
        metavar="N",
        help="decides what is chance in simulated servers: who wins an election, how long a start takes (0)",
    )
    parser.add_argument("--kubeconfig", type=Path, help="write the administrator's kubeconfig here")
    parser.add_argument("--rules", type=Path, help="a YAML file that scripts pods by image, name or labels")
    parser.add_argument(
        "--simulate",
        type=Path,
        metavar="FILE",
        help="stand-ins for the programs in pods, by a YAML file (stand-ins.md)",
    )
    parser.add_argument(
        "--pod-address",
        type=ip_address,
        help="give all pods this address (127.0.0.1 where there is no other)",
    )
    parser.add_argument(
        "--processes", type=Path, metavar="RULES", help="run images as local commands, by a YAML file (process-pods.md)"
    )
    parser.add_argument(
        "--processes-as-root",
        action="store_true",
        help="as root, run those commands as root and without isolation: whoever may create pods has this machine",
    )
    parser.add_argument(
        "--operators", default="all", metavar="NAMES", help="all, none, or some: webapp,my_operator.py,… (all)"
    )
    parser.add_argument(
        "-f",
        "--filename",
        action="append",
        default=[],
        metavar="PATH",
        help="apply these manifests: a file, a folder, a kustomization, a Helm chart, or - for standard input; may be "
        "given several times",
    )
    parser.add_argument(
        "--watch",
        action="store_true",
        help="apply manifests again when they are saved, and restart operators of your own when their code is",
    )
    parser.add_argument(
        "--samples", action=argparse.BooleanOptionalAction, default=True, help="create the operators' sample objects"
    )
    parser.add_argument(
        "--database",
        type=database,
        action="append",
        default=[],
        metavar="URL",
        help=f"simulate the database of Nacos here, and name it in the samples: {FORM}; may be given several times "
        "(mysql.default.svc and postgres.default.svc)",
    )
    parser.add_argument(
        "--console",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="serve the console on loopback, and the management API if the operators include Nacos",
    )
    parser.add_argument(
        "--metrics-bind-address",
        type=address,
        default=METRICS,
        help="address of the operators' metrics (any free port)",
    )
    parser.add_argument("-o", "--output", choices=("text", "json"), default="text", help="json: one line, when ready")
    parser.set_defaults(run=run)


def _add_lifetime(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--name", type=cluster_name, metavar="NAME", help=f"name of the cluster ({DEFAULT})")
    parser.add_argument("--detach", action="store_true", help="run in the background, and return when it is ready")
    parser.add_argument(
        "--wait",
        type=count(1, 3600),
        default=READY_WITHIN,
        metavar="SECONDS",
        help=f"with --detach: how long it may take until it is ready ({READY_WITHIN})",
    )
    parser.add_argument(
        "--merge-kubeconfig",
        action="store_true",
        help="put the context konverge-NAME into KUBECONFIG or ~/.kube/config, and take it out at the end",
    )
    parser.add_argument("--switch-context", action="store_true", help="make it the current context there")
    parser.add_argument("--in-background", action="store_true", help=argparse.SUPPRESS)


def run(arguments: argparse.Namespace) -> int:
    from konverge.bulk_load import bulk_load

    with ExitStack() as starting:
        starting.enter_context(bulk_load(lambda: True))  # nothing that a start makes is garbage: a tenth of its time
        return _run(arguments, starting.close)


def _run(arguments: argparse.Namespace, ready: Callable[[], None]) -> int:
    import sys
    import tempfile

    from konverge.apiserver.signals import run_until_signal
    from konverge.cli.background import facts_apart
    from konverge.cli.embedded import Parts, serve
    from konverge.cli.lifetime import lifetime
    from konverge.sim.kubelet.behaviour import BehaviourError
    from konverge.sim.network import claimed_block
    from konverge.sim.processes.rules import RunningAsRoot

    arguments.facts = facts_apart() if arguments.in_background else sys.stdout
    own = own_references(arguments.operators) if arguments.watch else []
    operators = wanted_operators(arguments.operators, without=own)
    _check_manifests(arguments, own)
    check_listening(arguments)
    refuse_unless_free("--metrics-bind-address", arguments.metrics_bind_address)
    refuse_unless_writable("--kubeconfig", arguments.kubeconfig)
    arguments.merge_kubeconfig |= arguments.switch_context
    try:
        rules = _rules(arguments.rules)
    except (BehaviourError, OSError) as error:
        raise UsageError(f"{arguments.rules}: {error}") from error
    processes = _process_rules(arguments.processes)
    simulation = _simulation(arguments.simulate)
    if arguments.detach and not arguments.in_background:
        return _run_in_background(arguments)
    with ExitStack() as stack:
        life = stack.enter_context(lifetime(arguments))
        folder = arguments.data_dir or (life.folder.path if life.folder is not None else None)
        if folder is None:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="konverge-")))
        pods_from = stack.enter_context(claimed_block())
        parts = Parts(
            operators=operators,
            own=own,
            rules=rules,
            processes=processes,
            simulation=simulation,
            folder=folder,
            pods_from=pods_from,
            ready=ready,
        )
        try:
            run_until_signal(lambda stopping: serve(arguments, parts, life, stopping), cleanup=stack.close)
        except RunningAsRoot as error:
            raise UsageError(str(error)) from error
    return 0


def _run_in_background(arguments: argparse.Namespace) -> int:
    from konverge.cli.background import start

    endpoints = start(arguments)
    if arguments.output == "json":
        print(json.dumps(endpoints.facts()))
    else:
        print(endpoints.welcome(f"`konverge down {endpoints.name}` ends it."))
    return 0


def wanted_operators(text: str, without: list[str] | None = None) -> list[Operator]:
    """The operators of `--operators`, but for some that run elsewhere."""
    from konverge.operators.catalog import SUMMARIES

    if text == "none":
        return []
    names = [*SUMMARIES] if text == "all" else [name for name in text.split(",") if name]
    return chosen_operators([name for name in names if name not in (without or ())])


def own_references(text: str) -> list[str]:
    """Those of `--operators` that are code of the user: with --watch each runs in a process of its own."""
    from konverge.cli.operator_process import files_of_code, is_own_code

    own = [name for name in text.split(",") if name and is_own_code(name)]
    for name in own:
        if not any(files_of_code(name)):
            raise UsageError(f"--operators {name}: there is no file to watch")
    return own


def _check_manifests(arguments: argparse.Namespace, own: list[str]) -> None:
    import sys

    from konverge.cli.manifest_files import STDIN, check_sources

    if arguments.watch and not arguments.filename and not own:
        raise UsageError("--watch needs something to watch: -f with manifests, or --operators with a file of yours")
    check_sources(arguments.filename)
    if STDIN in arguments.filename and arguments.detach:
        raise UsageError("--detach cannot hand on standard input: put the manifests into a file")
    arguments.stdin = sys.stdin.read() if STDIN in arguments.filename else ""


def _rules(path: Path | None) -> list[Rule]:
    from konverge.sim.kubelet.behaviour import BehaviourError, read_rules

    if path is None:
        return []
    import yaml

    try:
        return read_rules(yaml.safe_load(path.read_text(encoding="utf-8")) or [])
    except yaml.YAMLError as error:
        raise BehaviourError(f"is not YAML: {error}") from error


def _simulation(path: Path | None) -> Simulation | None:
    if path is None:
        return None
    from konverge.sim.applications import SimulationError, load_simulation

    try:
        return load_simulation(path)
    except SimulationError as error:
        raise UsageError(str(error)) from error
    except OSError as error:
        raise UsageError(f"{path}: {error}") from error


def _process_rules(path: Path | None) -> list[ProcessRule]:
    if path is None:
        return []
    from konverge.sim.processes.rules import RuleError, load

    try:
        return load(path)
    except (RuleError, OSError) as error:
        raise UsageError(f"{path}: {error}") from error
