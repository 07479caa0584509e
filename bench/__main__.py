"""The command: `python -m bench NAME [--json FILE] [--quick] [--objects N]`. Exits 1 when a bar is not met."""

from __future__ import annotations

import argparse
import json
import signal
import sys
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

from bench._progress import say
from bench._report import Report

HERE = Path(__file__).parent


def names() -> list[str]:
    return sorted(module.name for module in iter_modules([str(HERE)]) if not module.ispkg and module.name[0] != "_")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("name", choices=[*names(), "all"])
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the figures to this file")
    parser.add_argument("--quick", action="store_true", help="fewer rounds: for a look, not for a verdict")
    parser.add_argument("--objects", type=int, default=0, metavar="N", help="how many objects (sharding)")
    options = parser.parse_args()
    # Servers and operators are children of this process: one that is terminated must stop them, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    chosen = names() if options.name == "all" else [options.name]
    reports: list[Report] = []
    for number, name in enumerate(chosen, 1):
        say(f"{name} ({number} of {len(chosen)})")
        sizes = {"objects": options.objects} if name == "sharding" else {}
        report = import_module(f"bench.{name}").run(quick=options.quick, **sizes)
        print(report.text(), flush=True)
        reports.append(report)
    if options.json:
        options.json.write_text(json.dumps([report.data() for report in reports], indent=2) + "\n")
    print("; ".join(report.headline() for report in reports))
    return 0 if all(report.met for report in reports) else 1


if __name__ == "__main__":
    sys.exit(main())
