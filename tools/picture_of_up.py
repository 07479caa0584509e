"""A picture of `konverge up` for the README: it runs on a pseudo-terminal, and what is on its screen becomes an SVG.

    python -m tools.picture_of_up docs/up.svg

Only the escape sequences that `konverge up` uses are understood: colours, and drawing from the top of its own screen.
"""

from __future__ import annotations

import os
import pty
import re
import signal
import subprocess
import sys
import tempfile
import time
from html import escape
from pathlib import Path

COLUMNS, LINES = 96, 34
SECONDS = 45
CELL_WIDTH, CELL_HEIGHT, MARGIN = 8.4, 19, 16
COLOURS = {"1": "#ffffff", "32": "#7ee787", "33": "#e3b341", "31": "#ff7b72", "2": "#8b949e"}
_PIECE = re.compile(r"\x1b\[(\??\d*)([A-Za-z])|(\r?\n)|([^\x1b\r\n]+)")


def main() -> None:
    target = Path(sys.argv[1])
    target.write_text(picture(screen(record())), encoding="utf-8")


def record() -> str:
    """What `konverge up` writes to a terminal until everything has converged."""
    with tempfile.TemporaryDirectory() as folder:
        ours, theirs = pty.openpty()
        os.set_blocking(ours, False)
        command = [sys.executable, "-m", "konverge.cli.main", "up", "--kubeconfig", "konverge.kubeconfig"]
        size = {"COLUMNS": str(COLUMNS), "LINES": str(LINES), "TERM": "xterm", "XDG_STATE_HOME": folder}
        process = subprocess.Popen(command, stdin=theirs, stdout=theirs, cwd=folder, env={**os.environ, **size})
        seen = ""
        deadline = time.monotonic() + SECONDS
        while time.monotonic() < deadline:
            time.sleep(0.2)
            try:
                seen += os.read(ours, 1 << 20).decode()
            except BlockingIOError:
                continue
        process.send_signal(signal.SIGINT)
        process.wait()
        return seen.replace(f"{Path(folder).resolve()}/", "~/konverge/")


def screen(text: str) -> list[list[tuple[str, str]]]:
    """The lines that were on its screen at last, each as pieces of text with their colours."""
    text = next(frame for frame in reversed(text.split("\x1b[H")) if "\x1b[J" in frame).partition("\x1b[J")[0]
    lines: list[list[tuple[str, str]]] = [[]]
    colour = ""
    for number, command, newline, plain in _PIECE.findall(text):
        if command == "m":
            colour = COLOURS.get(number, "")
        elif newline:
            lines.append([])
        elif plain:
            lines[-1].append((plain, colour))
    while not lines[-1]:
        lines.pop()
    return lines


def picture(lines: list[list[tuple[str, str]]]) -> str:
    width, height = COLUMNS * CELL_WIDTH + 2 * MARGIN, len(lines) * CELL_HEIGHT + 2 * MARGIN
    rows = []
    for number, line in enumerate(lines):
        spans = "".join(
            f'<tspan fill="{colour or "#c9d1d9"}" xml:space="preserve">{escape(piece)}</tspan>'
            for piece, colour in line
        )
        rows.append(f'<text x="{MARGIN}" y="{MARGIN + (number + 0.8) * CELL_HEIGHT:.0f}">{spans}</text>')
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height}" font-size="14" '
        'font-family="ui-monospace, Menlo, Consolas, monospace">\n'
        f'<rect width="100%" height="100%" rx="8" fill="#0d1117"/>\n' + "\n".join(rows) + "\n</svg>\n"
    )


if __name__ == "__main__":
    main()
