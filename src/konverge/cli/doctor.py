"""`konverge doctor`: does everything that an operator needs work here? Each check is a line: what, how, what to fix."""

from __future__ import annotations

import argparse
import json
from typing import Any

from konverge.cli.arguments import (
    OPERATOR,
    add_cluster,
    add_output,
    cluster_config,
    command,
    is_own,
    namespace,
    operators_of,
)
from konverge.cli.exit import FAILED
from konverge.cli.terminal import Paint


def add(commands: Any) -> None:
    about = "check access, permissions, definitions, versions, clock and leases, and say what to fix"
    parser = command(
        commands,
        "doctor",
        about,
        "konverge doctor --operator webapp --namespace konverge-system",
        "konverge doctor --operator my_operator.py",
    )
    add_cluster(parser)
    if not is_own(parser):
        _add_operator(parser)
    parser.add_argument("-n", "--namespace", type=namespace, help="namespace of the Lease (the context's by default)")
    parser.add_argument(
        "--cert-manager", action="store_true", help="cert-manager issues the certificate of the webhooks"
    )
    add_output(parser, "text", "json")
    parser.set_defaults(run=run)


def _add_operator(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--operator",
        action="append",
        default=[],
        dest="operators",
        metavar=OPERATOR,
        help="also check what this operator needs: a name, module:attribute, or a file",
    )


def run(arguments: argparse.Namespace) -> int:
    import asyncio

    from konverge.cli.checks import Finding, examine, machine
    from konverge.client import ClientError

    operators = operators_of(arguments)
    findings: list[Finding] = machine()
    try:
        config = cluster_config(arguments)
    except ClientError as error:
        findings.append(Finding("configuration", "fail", str(error)))
    else:
        findings.append(Finding("configuration", "ok", f"{config.server} ({config.source})"))
        home = arguments.namespace or config.namespace
        findings += asyncio.run(examine(config, operators, home, cert_manager=arguments.cert_manager))
    print(_text(findings, arguments.output))
    return FAILED if any(finding.verdict == "fail" for finding in findings) else 0


def _text(findings: list[Any], form: str) -> str:
    if form == "json":
        return json.dumps([finding._asdict() for finding in findings])
    paint = Paint.on()
    width = max(len(finding.check) for finding in findings)
    return "\n".join(
        f"{paint(finding.verdict.ljust(4), finding.verdict)}  {finding.check:<{width}}  {finding.text}"
        for finding in findings
    )
