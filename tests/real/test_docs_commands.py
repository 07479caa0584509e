"""Every command in the README and in docs/ is run, page by page, as a reader would run it: blocks marked `sh`.

(Blocks marked `console` show what needs an image or a cluster of the reader's own.) A server that a page starts "in one
terminal" runs beside the rest of the page.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.real.clients import programs

ROOT = Path(__file__).resolve().parents[2]
PAGES = [
    page
    for page in (*ROOT.glob("README*.md"), *sorted((ROOT / "docs").rglob("*.md")))
    if "```sh\n" in page.read_text(encoding="utf-8")
]
SERVERS = ("konverge up", "konverge run", "konverge apiserver", "konverge service")
PRELUDE = r"""
set -euo pipefail
trap 'kill $(jobs -p) 2>/dev/null || true; wait' EXIT
serve() {  # in the background, until the page ends; goes on when it says that it works
  local log=$(mktemp -p "$PWD" serve.XXXX)
  "$@" >"$log" 2>&1 &
  local pid=$!
  until grep -qE '^ready |: leads ' "$log"; do
    kill -0 $pid 2>/dev/null || { cat "$log"; echo "ended: $*"; exit 1; }
    read -t 0.1 <> <(:) || true
  done
}
"""


def script(page: Path) -> str:
    text = "\n".join(re.findall(r"```sh\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL))
    lines = []
    for line in text.splitlines():
        command = line.split("  #")[0].strip()
        if command.startswith("make "):
            line = made(command)
        if line.startswith(SERVERS) and "--detach" not in line:
            again = "konverge down --all && " if line.startswith("konverge up") else ""  # Ctrl-C in that terminal
            line = f"{again}serve {line}"
        lines.append(line)
    return PRELUDE + "set -x\n" + "\n".join(lines)


def made(command: str) -> str:
    """What make would run, once everything is installed; the suites themselves are not run from here."""
    dry = [*shlex.split(command), "-n", "--no-print-directory"]  # this may itself be run by make
    done = subprocess.run(dry, cwd=ROOT, capture_output=True, text=True, check=True)
    recipe = done.stdout.strip().splitlines()[-1]
    return recipe.replace(".venv/bin/", "") if "konverge up" in recipe else f": {shlex.quote(recipe)}"


@pytest.mark.limit(600)
@pytest.mark.blocking("waits for the shell that does the work")
@pytest.mark.parametrize("page", [pytest.param(page, id=page.name) for page in PAGES])
def test_the_commands_of_a_page_work(page: Path, binaries: Path, tmp_path: Path) -> None:
    for tool in ("kubectl", "helm"):
        (tmp_path / "bin").mkdir(exist_ok=True)
        (tmp_path / "bin" / tool).symlink_to(programs.require(binaries, tool))
    path = os.pathsep.join([str(tmp_path / "bin"), str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("KUBE", "PYTEST"))}
    work = tmp_path / "work"
    work.mkdir()
    done = subprocess.run(
        ["bash", "-c", script(page)],
        cwd=work,
        env={**environment, "PATH": path, "HOME": str(tmp_path)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=580,
    )
    assert done.returncode == 0, done.stdout[-6000:]
