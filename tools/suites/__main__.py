"""Runs other projects' suites on our API server, counts what passes and prints a table: `make suites`.

python -m tools.suites                                            all of them, on our server
python -m tools.suites test-cmd --only run_job_tests run_rs_tests
python -m tools.suites controller-runtime --real                  on the real programs, to compare
python -m tools.suites operators --only rabbitmq
python -m tools.suites conformance --all-specs                    also the specs that are known to fail
"""

from __future__ import annotations

import argparse
import shutil
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from tools import real_binaries
from tools.suites import conformance_specs, envtest, kubectl_commands, modules, servers
from tools.suites.envtest_suites import CONTROLLER_RUNTIME, OPERATORS
from tools.suites.report import Count, table

WORK = Path("build/suites")


def main(arguments: list[str] | None = None) -> int:
    options = _options(arguments)
    real = _real_programs() if options.real else None
    counts: list[Count] = []
    for suite in options.suites or SUITES:
        folder = (WORK / suite).resolve()
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        try:
            counts += SUITES[suite](folder, options, real)
        except modules.Unavailable as error:
            print(f"{suite} is left out: {error}", flush=True)
    print(table(counts))
    return 1 if any(count.failed for count in counts) else 0


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tools.suites", description=__doc__.partition(":")[0])
    parser.add_argument("suites", nargs="*", metavar="SUITE", help=f"{' or '.join(SUITES)} (all by default)")
    parser.add_argument(
        "--only",
        nargs="+",
        default=[],
        metavar="NAME",
        help="functions, packages, operators, or texts in the names of specs",
    )
    parser.add_argument("--real", action="store_true", help="run them on the real programs instead of ours")
    parser.add_argument("--jobs", type=int, default=2, help="servers that share the functions of test-cmd (2)")
    parser.add_argument("--all-specs", action="store_true", help="of conformance: also those that are not listed")
    options = parser.parse_args(arguments)
    unknown = [suite for suite in options.suites if suite not in SUITES]
    if unknown:
        parser.error(f"no suite {', '.join(unknown)}; there are {', '.join(SUITES)}")
    return options


def _real_programs() -> Path:
    folder, note = real_binaries.find()
    if folder is None:
        raise SystemExit(note)
    return folder


def _test_cmd(folder: Path, options: argparse.Namespace, real: Path | None) -> list[Count]:
    results = kubectl_commands.run(folder, only=options.only, real=real, jobs=options.jobs)
    failed = []
    for result in results:
        print(f"{'ok  ' if result.passed else 'FAIL'} {result.name} ({result.seconds} s)", flush=True)
        if not result.passed:
            failed.append(result.name)
            print(result.tail(), flush=True)
    name = f"kubectl's `test/cmd` {real_binaries.KUBERNETES}"
    return [Count(name, "functions", len(results) - len(failed), tuple(failed))]


def _controller_runtime(folder: Path, options: argparse.Namespace, real: Path | None) -> list[Count]:
    return [_envtest(folder, CONTROLLER_RUNTIME, options.only or CONTROLLER_RUNTIME.packages, real)]


def _operators(folder: Path, options: argparse.Namespace, real: Path | None) -> list[Count]:
    """Each operator that can be had here: one that cannot is no reason to leave out the others."""
    names = [suite.name for suite in OPERATORS]
    unknown = [name for name in options.only if name not in names]
    if unknown:
        raise ValueError(f"no operator {', '.join(unknown)}; there are {', '.join(names)}")
    counts = []
    for suite in OPERATORS:
        if options.only and suite.name not in options.only:
            continue
        try:
            counts.append(_envtest(folder / suite.name, suite, suite.packages, real))
        except modules.Unavailable as error:
            print(f"{suite.name} is left out: {error}", flush=True)
    return counts


def _envtest(folder: Path, suite: envtest.Suite, packages: Sequence[str], real: Path | None) -> Count:
    assets = real or servers.drop_in(folder / "assets")
    passed, failed, known = 0, [], []
    for package in packages:
        result = envtest.run(suite, package, assets, folder)
        print(f"{'FAIL' if result.failed else 'ok  '} {suite.name} {package}: {result.passed} specs", flush=True)
        for name in result.failed:
            print(f"     {name}", flush=True)
        for name in result.known:
            print(f"     known: {name}: {suite.reason(name)}", flush=True)
        passed += result.passed
        failed += [f"{package}: {name}" for name in result.failed]
        known += [f"{package}: {name}" for name in result.known]
    return Count(f"{suite.name} {suite.version}", "specs", passed, tuple(failed), tuple(known))


def _conformance(folder: Path, options: argparse.Namespace, real: Path | None) -> list[Count]:
    if real is not None:
        raise modules.Unavailable("its specs need nodes, and there are no real ones")
    results = conformance_specs.run(folder, only=options.only, all_specs=options.all_specs)
    failed, listed = [], frozenset(conformance_specs.passing())
    for result in results:
        if not result.passed:
            failed.append(result.name)
            print(f"FAIL {result.name}\n     {result.reason}", flush=True)
        elif result.name not in listed:
            print(f"ok   {result.name}: add it to {conformance_specs.PASSING.name}", flush=True)
    name = f"Kubernetes' conformance specs {real_binaries.KUBERNETES}"
    return [Count(name, "specs", len(results) - len(failed), tuple(failed))]


SUITES: dict[str, Callable[[Path, argparse.Namespace, Path | None], list[Count]]] = {
    "test-cmd": _test_cmd,
    "controller-runtime": _controller_runtime,
    "operators": _operators,
    "conformance": _conformance,
}


def end_in_order() -> None:
    """On SIGTERM, leave as by an error: what the suites have started ends too."""
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))


if __name__ == "__main__":
    end_in_order()
    sys.exit(main())
