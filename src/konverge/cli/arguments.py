"""Arguments that several commands share, and the form of every command's help: what it does, and an example."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from konverge.cli.exit import UsageError

if TYPE_CHECKING:
    from konverge.client import Config
    from konverge.operators.catalog import Operator


def command(commands: Any, name: str, about: str, *examples: str) -> argparse.ArgumentParser:
    """The parser of a command, with examples at the end of its help."""
    parser: argparse.ArgumentParser = commands.add_parser(
        name,
        help=about,
        description=about[0].upper() + about[1:] + ".",
        epilog="\n".join([f"example{'s' if len(examples) > 1 else ''}:", *(f"  {example}" for example in examples)]),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    return parser


def konverge_version() -> str:
    from importlib.metadata import version

    return version("konverge")


def add_operators(parser: argparse.ArgumentParser) -> None:
    from konverge.operators.catalog import SUMMARIES

    known = "; ".join(f"{name}: {summary}" for name, summary in SUMMARIES.items())
    parser.add_argument("operators", nargs="+", metavar="NAME", choices=[*SUMMARIES], help=f"operators ({known})")


def add_cluster(parser: argparse.ArgumentParser) -> None:
    where = "the cluster: a kubeconfig (as kubectl finds it, or the pod's service account, by default)"
    parser.add_argument("--kubeconfig", type=Path, help=where)
    parser.add_argument("--context", help="the context of the kubeconfig (the current one by default)")


def add_listening(parser: argparse.ArgumentParser) -> None:
    """Where an API server listens, how, and where it keeps its state."""
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (loopback by default)")
    parser.add_argument("--port", type=int, default=0, help="port to listen on (any free one by default)")
    parser.add_argument("--data-dir", type=Path, help="keep the state in this folder; without it, in memory")
    # On by default: kubectl and client-go send no credential at all to a server without TLS.
    parser.add_argument("--tls", action=argparse.BooleanOptionalAction, default=True, help="serve https")


def add_watched(parser: argparse.ArgumentParser, *aliases: str) -> None:
    parser.add_argument(
        "--watch-namespace",
        *aliases,
        action="append",
        default=[],
        metavar="NS",
        help="look at this namespace only; may be given several times (all by default)",
    )


def add_logs(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--log-level", choices=("debug", "info", "warning", "error"), default="info", help="least level to log (info)"
    )
    parser.add_argument("--log-format", choices=("text", "json"), default="text", help="form of the log (text)")


def add_output(parser: argparse.ArgumentParser, *forms: str) -> None:
    """`--output`, with the first form as the default."""
    parser.add_argument("-o", "--output", choices=forms, default=forms[0], help=f"form of the output ({forms[0]})")


def cluster_config(arguments: argparse.Namespace) -> Config:
    """Where the chosen cluster is. Raises ConfigError, whose text says what to do."""
    from konverge.client import load_config

    return load_config(kubeconfig=arguments.kubeconfig, context=arguments.context)


def chosen_operators(names: list[str]) -> list[Operator]:
    """The operators of these names, each once. Raises UsageError."""
    from konverge.operators.catalog import UnknownOperator, find

    try:
        return [find(name) for name in dict.fromkeys(names)]
    except UnknownOperator as error:
        raise UsageError(str(error)) from error


def joint_name(operators: list[Operator]) -> str:
    """One name for several operators in one process: that of their Lease, Deployment and service account."""
    return "-".join(sorted(operator.name for operator in operators)) + "-operator"


def address(text: str) -> tuple[str, int] | None:
    """`host:port` or `:port` (all addresses); `0` is none.

    >>> address(":8080"), address("127.0.0.1:0"), address("0")
    (('0.0.0.0', 8080), ('127.0.0.1', 0), None)
    """
    if text == "0":
        return None
    host, colon, port = text.rpartition(":")
    if not colon or not port.isdecimal() or int(port) > 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is not an address: use host:port, :port, or 0 for none")
    return host.strip("[]") or "0.0.0.0", int(port)  # noqa: S104 - :port means all addresses
