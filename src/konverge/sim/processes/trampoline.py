"""The first moments of a process, before its program: run as a script, on the standard library alone.

    trampoline.py PARENT TTY PROGRAM ARGUMENT0 …

It asks the system to be killed when its parent dies (which the program inherits), gives the signals their usual
meaning back, takes the terminal, and becomes the program. A fresh interpreter can do that safely; a fork of a server
with threads cannot.
"""

from __future__ import annotations

import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


def main() -> None:
    parent, terminal, program = int(sys.argv[1]), sys.argv[2] == "tty", sys.argv[3]
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(137)  # it died before we asked
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)  # Python ignores them, and a program would inherit that
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    if terminal:
        import fcntl
        import termios

        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    os.umask(0o077)
    try:
        os.execve(program, sys.argv[4:], os.environ)  # noqa: S606 - the whole point
    except OSError as error:
        sys.stderr.write(f"exec {program}: {error.strerror}\n")
        os._exit(126)


if __name__ == "__main__":
    main()
