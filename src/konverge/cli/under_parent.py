"""`konverge …` as a child that does not outlive its parent, however that ends: its standard input is a pipe from there.

python -m konverge.cli.under_parent run my_operator.py
"""

from __future__ import annotations

import os
import signal
import sys
import threading


def _end_with_parent() -> None:
    os.read(0, 1)  # nothing is ever written there: this returns when the other end is closed
    os.kill(os.getpid(), signal.SIGTERM)


def run() -> int:
    from konverge.cli.main import main

    threading.Thread(target=_end_with_parent, daemon=True).start()
    return main(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(run())
