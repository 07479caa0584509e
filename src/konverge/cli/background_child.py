"""The child of `konverge up --detach`. Its arguments come by standard input: a password among them (`--database`) would
stand in the machine's list of processes for as long as the cluster lives.

python -m konverge.cli.background_child NAME < arguments.json
"""

from __future__ import annotations

import json
import os
import sys


def run() -> int:
    from konverge.cli.main import main

    arguments = json.load(sys.stdin)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    return main(arguments)


if __name__ == "__main__":
    sys.exit(run())
