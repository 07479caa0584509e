"""Arguments that several commands share, and the form of every command's help: what it does, and an example."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from konverge.cli.exit import CommandFailed, UsageError

MAX_PORT = 65535
MAX_NODES = 5000
OPERATOR = "OPERATOR"
"""How the help calls an operator; completion goes by it."""
_OURS = "webapp"
"""The operator in the examples of the help."""

if TYPE_CHECKING:
    from konverge.client import Config
    from konverge.operators.catalog import Operator


class OwnCommands:
    """In place of argparse's commands: those of a program that is an operator itself (`konverge.cli.program`)."""

    def __init__(self, commands: Any, program: str, own: list[Operator]) -> None:
        self.program = program
        self.own = own
        self.add_parser = commands.add_parser


def command(commands: Any, name: str, about: str, *examples: str) -> argparse.ArgumentParser:
    """The parser of a command, with examples at the end of its help."""
    if isinstance(commands, OwnCommands):
        examples = tuple(_own_example(example, commands.program) for example in examples if _OURS in example)
        about = about.replace("operators with their", "the operator with its").replace("operators", "the operator")
    parser: argparse.ArgumentParser = commands.add_parser(
        name,
        help=about,
        description=about[0].upper() + about[1:] + ".",
        epilog="\n".join([f"example{'s' if len(examples) > 1 else ''}:", *(f"  {example}" for example in examples)]),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    if isinstance(commands, OwnCommands):
        parser.set_defaults(own=commands.own)
    return parser


def _own_example(example: str, program: str) -> str:
    """
    >>> _own_example("konverge crd webapp | kubectl apply -f -", "backup")
    'backup crd | kubectl apply -f -'
    """
    return example.replace("konverge ", f"{program} ", 1).replace(" --operator webapp", "").replace(f" {_OURS}", "")


def is_own(parser: argparse.ArgumentParser) -> bool:
    """Whether a command belongs to a program that is an operator itself."""
    return parser.get_default("own") is not None


def konverge_version() -> str:
    from importlib.metadata import version

    return version("konverge")


def add_operators(parser: argparse.ArgumentParser, *, at_least: int = 1) -> None:
    from konverge.operators.catalog import SUMMARIES

    if is_own(parser):
        return
    known = "; ".join(f"{name}: {summary}" for name, summary in SUMMARIES.items())
    forms = "an installed one by its name, your own as module:attribute or as a file (my_operator.py)"
    several = "+" if at_least else "*"
    parser.add_argument("operators", nargs=several, metavar=OPERATOR, help=f"operators: {forms}. Ours: {known}")


def add_cluster(parser: argparse.ArgumentParser) -> None:
    where = "the cluster: a kubeconfig (as kubectl finds it, or the pod's service account, by default)"
    parser.add_argument("--kubeconfig", type=Path, help=where)
    parser.add_argument("--context", help="the context of the kubeconfig (the current one by default)")


def add_listening(parser: argparse.ArgumentParser) -> None:
    """Where an API server listens, how, and where it keeps its state."""
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (loopback by default)")
    parser.add_argument("--port", type=port, default=0, help="port to listen on (any free one by default)")
    parser.add_argument("--data-dir", type=Path, help="keep the state in this folder; without it, in memory")
    # On by default: kubectl and client-go send no credential at all to a server without TLS.
    parser.add_argument("--tls", action=argparse.BooleanOptionalAction, default=True, help="serve https")


def check_listening(arguments: argparse.Namespace) -> None:
    """Whether what `add_listening` was given can be used. Raises CommandFailed."""
    refuse_unless_free("--port" if arguments.port else "--host", (arguments.host, arguments.port))


def add_watched(parser: argparse.ArgumentParser, *aliases: str) -> None:
    parser.add_argument(
        "--watch-namespace",
        *aliases,
        action="append",
        type=namespace,
        default=[],
        metavar="NS",
        help="look at this namespace only; may be given several times (all by default)",
    )


def add_logs(parser: argparse.ArgumentParser) -> None:
    """`--log-level` and `--log-format`: None where they are not given, and the configuration counts."""
    levels, forms = ("debug", "info", "warning", "error"), ("text", "json")
    parser.add_argument("--log-level", choices=levels, help="least level to log ($KONVERGE_LOG_LEVEL, info)")
    parser.add_argument(
        "--log-format", choices=forms, help="form of the log ($KONVERGE_LOG_FORMAT; text on a terminal, else json)"
    )


def add_output(parser: argparse.ArgumentParser, *forms: str) -> None:
    """`--output`, with the first form as the default."""
    parser.add_argument("-o", "--output", choices=forms, default=forms[0], help=f"form of the output ({forms[0]})")


def cluster_config(arguments: argparse.Namespace) -> Config:
    """Where the chosen cluster is. Raises ConfigError, whose text says what to do."""
    from konverge.client import load_config

    return load_config(kubeconfig=arguments.kubeconfig, context=arguments.context)


def operators_of(arguments: argparse.Namespace) -> list[Operator]:
    """The operators of a command that has `add_operators`. Raises UsageError."""
    own: list[Operator] | None = getattr(arguments, "own", None)
    return own if own is not None else chosen_operators(arguments.operators)


def chosen_operators(references: list[str]) -> list[Operator]:
    """The operators that these references name, each once. Raises UsageError."""
    from konverge.operators.loading import LoadError, load

    operators: dict[str, Operator] = {}
    for reference in dict.fromkeys(references):
        try:
            operator = load(reference)
        except LoadError as error:
            raise UsageError(str(error), details=error.trace) from error
        if operator.name in operators:
            raise UsageError(
                f"{reference} is a second operator of the name {operator.name!r}: give its manager another name=…"
            )
        operators[operator.name] = operator
    return [*operators.values()]


def port(text: str) -> int:
    """A port to listen on.

    >>> port("6443")
    6443
    """
    number = _whole(text)
    if number == 0:
        raise argparse.ArgumentTypeError("0 is not a port: leave --port out for any free one")
    if number is None or not 0 < number <= MAX_PORT:
        raise argparse.ArgumentTypeError(f"{text!r} is not a port: use a number from 1 to {MAX_PORT}")
    return number


def count(least: int, most: int) -> Callable[[str], int]:
    """A whole number in these bounds.

    >>> count(0, 5000)("3")
    3
    """

    def parse(text: str) -> int:
        number = _whole(text)
        if number is None or not least <= number <= most:
            raise argparse.ArgumentTypeError(f"{text!r} must be a whole number between {least} and {most}")
        return number

    return parse


def _whole(text: str) -> int | None:
    digits = text.removeprefix("-")
    return int(text) if digits.isascii() and digits.isdecimal() else None


def namespace(text: str) -> str:
    """The name of a namespace."""
    from konverge.objects.names import dns_label_errors

    if dns_label_errors(text):
        raise argparse.ArgumentTypeError(
            f"{text!r} is not the name of a namespace: use up to 63 of a-z, 0-9 and dashes, such as shop"
        )
    return text


def ip_address(text: str) -> str:
    """An IPv4 address."""
    from ipaddress import AddressValueError, IPv4Address

    try:
        return str(IPv4Address(text))
    except AddressValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not an IPv4 address, such as 127.0.0.1") from None


def refuse_unless_free(option: str, where: tuple[str, int] | None) -> None:
    """Raises CommandFailed if a server could not listen there: before anything is started."""
    import socket

    if where is None:
        return
    host, number = where
    try:
        family, kind, protocol, _, place = socket.getaddrinfo(
            host, number, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        with socket.socket(family, kind, protocol) as trial:
            trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            trial.bind(place)
    except OSError as error:
        raise CommandFailed(f"{option}: {_not_bound(host, number, error)}") from error


def _not_bound(host: str, number: int, error: OSError) -> str:
    import errno
    import socket

    if error.errno == errno.EADDRINUSE:
        return f"{host}:{number} is in use: end the program that listens there, or give another port"
    if isinstance(error, socket.gaierror) or error.errno == errno.EADDRNOTAVAIL:
        return f"{host!r} is not an address of this machine: give one of its own, such as 127.0.0.1"
    if error.errno == errno.EACCES:
        return f"you may not listen on port {number} of {host}: give a port from 1024 on"
    return f"cannot listen on {host}:{number}: {error.strerror or error}"


def refuse_unless_writable(option: str, path: Path | None) -> None:
    """Raises UsageError if no kubeconfig could be written there, or would take the place of another file."""
    import os

    if path is None:
        return
    if path.is_dir():
        raise UsageError(f"{option}: {path} is a folder; give the path of a file")
    if path.is_file() and not _is_our_kubeconfig(path):
        raise UsageError(f"{option}: {path} exists and was not written by konverge; give another path, or remove it")
    parent = next(parent for parent in path.absolute().parents if parent.exists())
    if not parent.is_dir() or not os.access(parent, os.W_OK | os.X_OK):
        raise UsageError(f"{option}: {path} cannot be written; give a path in a folder where you may write")


def _is_our_kubeconfig(path: Path) -> bool:
    """One of an earlier run, or an empty file that waits for one."""
    import json

    try:
        text = path.read_text(encoding="utf-8")
        clusters = json.loads(text)["clusters"] if text.strip() else [{"name": "konverge"}]
        return [cluster["name"] for cluster in clusters] == ["konverge"]
    except (OSError, ValueError, KeyError, TypeError):
        return False


def address(text: str) -> tuple[str, int] | None:
    """`host:port` or `:port` (all addresses); `0` is none.

    >>> address(":8080"), address("127.0.0.1:0"), address("0")
    (('0.0.0.0', 8080), ('127.0.0.1', 0), None)
    """
    if text == "0":
        return None
    host, colon, number = text.rpartition(":")
    if not colon or not (number.isascii() and number.isdecimal()) or int(number) > MAX_PORT:
        raise argparse.ArgumentTypeError(f"{text!r} is not an address: use host:port, :port, or 0 for none")
    return host.strip("[]") or "0.0.0.0", int(number)  # noqa: S104 - :port means all addresses
