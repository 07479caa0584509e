"""A worker: reads Tasks as lines of JSON, carries out one after the other, writes Runs.

    python -m konverge.check.worker [--isolated]

It is warm: imports are paid once, and each run has a cluster of its own. It ends when its standard input does, and so
with whoever started it. `konverge.check.workers` keeps several of them busy.
"""

from __future__ import annotations

import itertools
import os
import queue
import sys
import threading

READY = b"ready\n"


def main() -> None:
    """Enters its namespaces before anything else: there must be no thread, and no module has looked at the network."""
    if "--isolated" in sys.argv:
        from konverge.check.isolation import enter

        enter()
    from konverge.check.collector import freeze_what_stays
    from konverge.check.performing import perform_line

    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what an operator prints must not come between
    lines: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_read, args=(lines,), daemon=True).start()
    answers.write(READY)
    answers.flush()
    for number in itertools.count():
        answers.write(perform_line(lines.get()) + b"\n")
        answers.flush()
        if number == 0:
            freeze_what_stays()


def _read(lines: queue.SimpleQueue[bytes]) -> None:
    """In a thread, so that the end of our parent is seen in the middle of a run."""
    for line in sys.stdin.buffer:
        lines.put(line)
    os._exit(0)  # and with us what we started: it is in our namespace, or its warden sees our end


if __name__ == "__main__":
    main()
