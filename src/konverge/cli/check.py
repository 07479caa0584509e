"""`konverge check`: find the bugs of an operator by letting things go wrong, one at a time.

0: nothing was found, 1: findings, 2: it could not be tested, and why. So what nobody foresaw ends with 2 as well.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from konverge.cli import check_files
from konverge.cli.arguments import command, count
from konverge.cli.exit import USAGE, CommandFailed, UsageError, explain, innermost

if TYPE_CHECKING:
    from konverge.check.campaign import Outcome
    from konverge.check.differences import Masks
    from konverge.check.subjects import Checked
    from konverge.cli.check_listener import Shown

MAX_JOBS = 256


class NotTested(CommandFailed):
    """The operator could not be tested; the text says why, and `details` has the end of its log."""

    code = USAGE


class NotWritten(CommandFailed):
    """Files could not be written, after what is in them was shown. With findings the code still says so."""

    def __init__(self, problems: Sequence[str], code: int) -> None:
        super().__init__(f"not written: {'; '.join(problems)}")
        self.code = code or USAGE


def add(commands: Any) -> None:
    about = "find the bugs of an operator of any language: crashes, old caches, odd input, and what comes of them"
    parser = command(
        commands,
        "check",
        about,
        "konverge check webapp",
        "konverge check my_operator:manager --sample cr.yaml --budget 2m",
        "konverge check --crds crds/ --rbac rbac/ --sample cr.yaml -- ./manager --metrics-bind-address 0",
        "konverge check --replay konverge-check/finding-3.json",
    )
    forms = "module:attribute, a file, or a name (Python); or a program of any language after --"
    parser.add_argument("target", nargs="*", metavar="OPERATOR", help=f"the operator: {forms}")
    parser.add_argument("--operator", type=Path, metavar="FILE", help="what to check, from a file (check.toml)")
    parser.add_argument(
        "--sample", action="append", default=[], metavar="FILE", help="the custom resource that users create"
    )
    for option, what in (
        ("--crds", "its definitions"),
        ("--rbac", "its account, roles and bindings: requests are sent as this account"),
        ("--objects", "what else has to be there before it starts"),
    ):
        parser.add_argument(option, action="append", default=[], metavar="PATH", help=f"{what} (a file or folder)")
    parser.add_argument("--simulate", default="", metavar="FILE", help="stand-ins for what its pods run")
    parser.add_argument("--replay", type=Path, metavar="FILE", help="show one finding again, with its timeline")
    _add_search(parser)
    _add_reports(parser)
    parser.set_defaults(run=run)


def _add_search(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--budget", type=_budget, default=0.0, metavar="TIME", help="wall time to spend, such as 5m")
    parser.add_argument("--jobs", type=count(1, MAX_JOBS), default=0, help="runs at once (as the machine allows)")
    parser.add_argument("--only", type=_patterns, default=(), metavar="LIST", help="only these, such as crash,stale")
    parser.add_argument("--mask", type=Path, metavar="FILE", help="fields not to compare: a resource:path per line")
    parser.add_argument("--seed", type=count(0, 2**31), default=0, help="the seed of the runs (0)")
    severities = ("high", "medium", "low")
    parser.add_argument("--fail-on", choices=severities, default="low", help="exit 1 from this severity on (low)")
    parser.add_argument("--fail-fast", action="store_true", help="end the search with the first of them")


def _add_reports(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--report", type=Path, metavar="DIR", help="write the report and the findings to this folder")
    for form, what in (("json", "as JSON"), ("junit", "for test runners"), ("sarif", "for code scanners")):
        parser.add_argument(f"--{form}", type=Path, metavar="FILE", help=f"write the findings {what}")


def run(arguments: argparse.Namespace) -> int:
    try:
        return _run(arguments)
    except Exception as error:
        if isinstance(innermost(error), CommandFailed | BrokenPipeError):
            raise
        raise NotTested(explain(error)[0]) from error  # 1 would say that there are findings


def _run(arguments: argparse.Namespace) -> int:
    from konverge.cli.check_listener import Shown

    with Shown() as shown:
        if arguments.replay is not None:
            from konverge.cli.check_replay import replay

            return replay(arguments.replay, shown)
        check_files.try_places(arguments)
        return _check(arguments, shown)


def _check(arguments: argparse.Namespace, shown: Shown) -> int:
    from konverge.check.campaign import Campaign, CouldNotTest, Options
    from konverge.check.planning import planner_for
    from konverge.check.workload import default

    try:
        checked = checked_of(arguments)
        options = Options(
            only=arguments.only,
            seed=arguments.seed,
            budget=arguments.budget or checked.budget,
            masks=_masks(arguments.mask),
            repeats=checked.repeats,
            until=arguments.fail_on if arguments.fail_fast else None,
            unused_rules=checked.roles_given,
        )
        with checked.runner(arguments.jobs) as runner:
            campaign = Campaign(
                checked.subject,
                checked.setup,
                default(checked.samples, checked.definitions, namespace=checked.setup.namespace),
                runner,
                options,
                listener=shown,
                planner=planner_for(checked.samples, checked.definitions, checked.setup.namespace),
            )
            outcome = campaign.check()
    except CouldNotTest as error:
        details = "\n".join(["the end of the operator's log:", *error.log]) if error.log else ""
        raise NotTested(f"could not test: {error}", details=details) from error
    outcome.notes += checked.notes
    written = _report(outcome, arguments, shown)
    status = _status(outcome, arguments.fail_on)
    if written.problems:
        raise NotWritten(written.problems, status)
    return status


def checked_of(arguments: argparse.Namespace) -> Checked:
    """What the arguments name. Raises UsageError, CannotCheck."""
    from konverge.check.profile import Given
    from konverge.check.subjects import from_file, from_given, from_target

    argv = arguments.argv
    program = tuple(argv[argv.index("--") + 1 :]) if "--" in argv else ()
    targets = arguments.target[: len(arguments.target) - len(program)]
    named = len(targets) + bool(program) + (arguments.operator is not None)
    if named != 1:
        several = "name one operator" if named else "name an operator"
        raise UsageError(f"{several}: module:attribute, a file, a program after --, or --operator FILE")
    if arguments.operator is not None:
        return from_file(arguments.operator)
    given = Given(
        command=program,
        crds=tuple(arguments.crds),
        rbac=tuple(arguments.rbac),
        objects=tuple(arguments.objects),
        sample=tuple(arguments.sample),
        simulate=arguments.simulate,
    )
    if targets:
        return from_target(targets[0], arguments.sample, given)
    return from_given(given, Path())


def _report(outcome: Outcome, arguments: argparse.Namespace, shown: Shown) -> check_files.Written:
    """The terminal comes first: whatever becomes of the files, the findings were shown."""
    from konverge.check.report import files

    try:
        shown.report(outcome, files.paths_of(outcome, check_files.folder_of(arguments)))
    finally:  # also where its reader has gone (`| head`)
        written = check_files.write(outcome, arguments)
    if written.page is not None:
        shown.lines([f"report: {written.page}"])
    return written


def _status(outcome: Outcome, fail_on: str) -> int:
    from konverge.check.model import SEVERITIES

    worst = SEVERITIES[: list(SEVERITIES).index(fail_on) + 1]  # type: ignore[arg-type]
    return 1 if any(finding.alarm.severity in worst for finding in outcome.findings) else 0


def _budget(text: str) -> float:
    from konverge.check.budget import seconds_of

    try:
        return seconds_of(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _patterns(text: str) -> tuple[str, ...]:
    from konverge.check.model import Pattern
    from konverge.suggestions import did_you_mean

    known = [pattern for pattern in get_args(Pattern) if pattern != "reference"]
    chosen = tuple(part.strip() for part in text.split(",") if part.strip())
    if not chosen:
        raise argparse.ArgumentTypeError(f"{text!r} names no kind of fault; use some of {', '.join(known)}")
    for part in chosen:
        if part not in known:
            near = did_you_mean(part, known) or f"; use some of {', '.join(known)}"
            raise argparse.ArgumentTypeError(f"{part!r} is not a kind of fault{near}")
    return chosen


def _masks(path: Path | None) -> Masks:
    import re

    from konverge.check.differences import Masks

    if path is None:
        return Masks()
    lines = [line.strip() for line in path.read_text(encoding="utf-8").splitlines()]
    patterns = tuple(line for line in lines if line and not line.startswith("#"))
    for pattern in patterns:
        try:
            re.compile(pattern)
        except re.error as error:
            raise UsageError(f"--mask: {pattern!r} is no regular expression: {error}") from error
        if ":" not in pattern:
            raise UsageError(f"--mask: {pattern!r} names no resource: write resource:path, such as secrets:data.*")
    return Masks(patterns)
