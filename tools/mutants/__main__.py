"""Changes the product in small ways and looks whether a test notices: `make mutants`, see docs/mutants.md.

python -m tools.mutants workqueue cache --sample 200 --seed 1 --jobs 2
python -m tools.mutants --changed origin/main.. --sample 40
python -m tools.mutants --file src/konverge/cache/store.py --function Store.put
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
from pathlib import Path

from tools.mutants.accepted import Accepted
from tools.mutants.choice import Choice
from tools.mutants.coverage_map import CoverageMap, Recording
from tools.mutants.pool import START, Pool
from tools.mutants.report import Report
from tools.mutants.source import Mutant, source_file

PACKAGES = ("workqueue", "cache", "client", "runtime", "kube", "operators")
BAR = 85.0


def main(arguments: list[str] | None = None) -> int:
    options = _options(arguments)
    root = Path(options.root).resolve()
    if options.record:
        _coverage(options, root)
        return 0
    files = _files(options, root)
    everything = [mutant for file in files for mutant in source_file(root, file).mutants()]
    accepted = Accepted(root / "tools" / "mutants_accepted.toml")
    stale = accepted.stale(everything) + accepted.missing_files(root)
    for key in stale:
        print(f"tools/mutants_accepted.toml: no such mutant any more, remove it: {' | '.join(key)}")
    mutants = _chosen(options, [mutant for mutant in everything if mutant not in accepted])
    if not mutants:
        print(
            "no mutants: " + (f"no file of {', '.join(options.packages)} changed" if options.changed else "none match")
        )
        return 1 if stale else 0
    if options.near:
        options.tests = sorted({_near(options, root, mutant) for mutant in mutants})
    report = Report(len(mutants), options.source, Path(options.survivors) if options.survivors else None)
    _run(options, root, mutants, report)
    report.print_summary()
    return 1 if stale or report.below(options.bar, options.least) else 0


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tools.mutants", description=__doc__.partition(":")[0])
    parser.add_argument("packages", nargs="*", default=list(PACKAGES), help="packages below the source folder")
    parser.add_argument("--sample", type=int, default=0, metavar="N", help="N mutants of each package; 0: all")
    parser.add_argument("--total", type=int, default=0, metavar="N", help="N mutants in all")
    parser.add_argument("--seed", type=int, default=1, help="of the sample")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--changed", metavar="RANGE", help="only files that git says changed, such as origin/main..")
    parser.add_argument("--file", action="append", default=[], help="only this file (may be given several times)")
    parser.add_argument("--function", help="only functions whose qualified name contains this")
    parser.add_argument("--tests", nargs="*", default=["tests"], help="only tests below these folders")
    parser.add_argument("--near", action="store_true", help="only tests of the folders that mirror the mutated files")
    parser.add_argument("--seconds", type=float, default=20.0, help="of tests for one mutant, as recorded in the map")
    parser.add_argument("--start", type=float, default=START, help="CPU seconds that any mutant may take")
    parser.add_argument("--bar", type=float, default=BAR, help="percent of the mutants of each package to be killed")
    parser.add_argument("--least", type=int, default=1, metavar="N", help="fewer mutants of a package fail nothing")
    parser.add_argument("--survivors", metavar="FILE", help="write the survivors here")
    parser.add_argument("--map", default=os.environ.get("KONVERGE_MUTANTS_MAP"), help="a map to begin with")
    parser.add_argument("--record", action="store_true", help="only bring the map of tests and functions up to date")
    parser.add_argument("--root", default=".", help="of the repository")
    parser.add_argument("--source", default="src/konverge", help="the folder that has the packages")
    return parser.parse_args(arguments)


def _files(options: argparse.Namespace, root: Path) -> list[str]:
    below = [root / options.source / package for package in options.packages]
    files = [str(path.relative_to(root)) for folder in below for path in sorted(folder.rglob("*.py"))]
    if not files:
        raise SystemExit(f"no packages {', '.join(options.packages)} in {options.source}")
    if options.file:
        files = options.file
    if options.changed is not None:
        changed = _changed(root, options.changed)
        files = [file for file in files if file in changed]
    return files


def _changed(root: Path, commits: str) -> set[str]:
    command = ["git", "diff", "--name-only", "--diff-filter=d", commits, "--"]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    if done.returncode:
        print(f"git cannot say what changed in {commits} (a clone without history?): {done.stderr.strip()}")
    return set(done.stdout.splitlines())


def _chosen(options: argparse.Namespace, mutants: list[Mutant]) -> list[Mutant]:
    """The sample of each package, in the order of the files."""
    mutants = [mutant for mutant in mutants if not options.function or options.function in mutant.function]
    chosen: list[Mutant] = []
    for package in dict.fromkeys(_package(options, mutant) for mutant in mutants):
        inside = [mutant for mutant in mutants if _package(options, mutant) == package]
        if 0 < options.sample < len(inside):
            numbers = random.Random(f"{options.seed} {package}").sample(range(len(inside)), options.sample)
            inside = [inside[number] for number in sorted(numbers)]
        chosen += inside
    if 0 < options.total < len(chosen):
        numbers = random.Random(f"{options.seed}").sample(range(len(chosen)), options.total)
        chosen = [chosen[number] for number in sorted(numbers)]
    return chosen


def _package(options: argparse.Namespace, mutant: Mutant) -> str:
    return Path(mutant.file).relative_to(options.source).parts[0]


def _near(options: argparse.Namespace, root: Path, mutant: Mutant) -> str:
    """The deepest folder of tests that mirrors the folders of the file."""
    folder = Path("tests")
    for part in Path(mutant.file).relative_to(options.source).parts[:-1]:
        if not (root / folder / part).is_dir():
            break
        folder /= part
    return str(folder)


def _coverage(options: argparse.Namespace, root: Path) -> CoverageMap:
    """The map of the last run, or else the given one, brought up to date."""
    build = root / "build" / "mutants"
    own = build / "map.json"
    coverage = CoverageMap.load(own if own.is_file() or not options.map else Path(options.map))
    Recording(root, str(Path(options.source).parent), options.jobs, build).update(coverage, options.tests)
    return coverage


def _run(options: argparse.Namespace, root: Path, mutants: list[Mutant], report: Report) -> None:
    coverage = _coverage(options, root)
    top = str(Path(options.source).parent)
    choice = Choice(coverage, root, top, options.tests, options.seconds)
    files = sorted({name.partition("::")[0] for mutant in mutants for name in choice.tests(mutant)})
    modules = sorted({_module(mutant.file, top) for mutant in mutants})
    Pool(root, top, files, modules, choice, options.start).run(mutants, options.jobs, report)


def _module(file: str, top: str) -> str:
    return ".".join(Path(file).relative_to(top).with_suffix("").parts).removesuffix(".__init__")


if __name__ == "__main__":
    sys.exit(main())
