"""Where databases, browser, busybox and Ruby's client of the real lane come from: the distribution's packages.

`make real` calls this first. Where it may (root, or sudo without a password, on a system with apt-get) it installs
what is missing, and says so; elsewhere it says what to install, and the tests that need it skip with the same message.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

_POSTGRES_FOLDERS = ("/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/usr/local/pgsql/bin", "/opt/homebrew/bin")
_SYSTEM = ("/usr/sbin", "/usr/bin", "/usr/local/sbin", "/usr/local/bin", "/opt/homebrew/bin")
_BROWSERS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "chrome")
_QUIET = {"DEBIAN_FRONTEND": "noninteractive"}


@dataclass(frozen=True)
class Mariadb:
    server: Path
    install: Path


def postgres_programs() -> Path | None:
    """The folder with postgres, initdb and pg_basebackup, of the newest version that is installed."""
    installed = [folder for pattern in _POSTGRES_FOLDERS for folder in Path("/").glob(pattern.removeprefix("/"))]
    on_path = shutil.which("initdb")
    folders = sorted(installed, key=_version) + ([Path(on_path).resolve().parent] if on_path else [])
    complete = [folder for folder in folders if all((folder / name).exists() for name in ("postgres", "initdb"))]
    return complete[-1] if complete and shutil.which("psql") else None


def mariadb_programs() -> Mariadb | None:
    server, install = _find("mariadbd"), _find("mariadb-install-db")
    return Mariadb(server, install) if server and install and shutil.which("mariadb") else None


def browser() -> Path | None:
    """A Chromium of any name; KONVERGE_BROWSER goes first."""
    named = os.environ.get("KONVERGE_BROWSER")
    return Path(named) if named else next(filter(None, map(_find, _BROWSERS)), None)


def busybox() -> Path | None:
    """A busybox that needs no file besides itself."""
    program = _find("busybox")
    return program if program is not None and b"/ld-" not in program.read_bytes()[:4096] else None


def ruby_with_kubeclient() -> Path | None:
    """A Ruby that has the library."""
    ruby = _find("ruby")
    if (
        ruby is None
        or subprocess.run([ruby, "-e", "require 'kubeclient'"], capture_output=True, check=False).returncode
    ):
        return None
    return ruby


def _version(folder: Path) -> int:
    digits = "".join(letter for letter in str(folder) if letter.isdigit())
    return int(digits or 0)


def _find(name: str) -> Path | None:
    path = shutil.which(name, path=os.pathsep.join([os.environ.get("PATH", ""), *_SYSTEM]))
    return Path(path) if path else None


def missing() -> list[str]:
    """The packages to install, by the names that Debian and Ubuntu give them."""
    wanted = {
        "postgresql": postgres_programs(),
        "mariadb-server": mariadb_programs(),
        "chromium-headless-shell": browser(),
        "busybox-static": busybox(),
        "ruby-kubeclient": ruby_with_kubeclient(),
    }
    return [name for name, programs in wanted.items() if programs is None]


def advice(packages: list[str]) -> str:
    return f"no {' and no '.join(packages)} here: apt-get install {' '.join(packages)}, or your system's like"


def _installer() -> list[str] | None:
    """The beginning of a command that may install, or None where this user may not."""
    if shutil.which("apt-get") is None:
        return None
    if os.geteuid() == 0:
        return ["apt-get"]
    if (
        shutil.which("sudo")
        and subprocess.run(["sudo", "-n", "true"], capture_output=True, check=False).returncode == 0
    ):
        return ["sudo", "-n", "env", *(f"{name}={value}" for name, value in _QUIET.items()), "apt-get"]
    return None


def install(packages: list[str]) -> bool:
    """Whether they are there now. A failed installation is no failure of the run: the tests skip, with a line.

    One by one: a name that a distribution does not know fails its own installation and no other.
    """
    command = _installer()
    if command is None:
        return False
    print(f"real lane: installing {' '.join(packages)} ({command[0]} install)", flush=True)
    installs = [["install", "-y", "-q", "--no-install-recommends", package] for package in packages]
    for step in (["update", "-q"], *installs):
        done = subprocess.run(
            [*command, *step], env={**os.environ, **_QUIET}, capture_output=True, text=True, check=False
        )
        if done.returncode:
            print(f"real lane: {' '.join([*command, *step])} failed: {done.stderr.strip()[-500:]}", flush=True)
    return not missing()


def main() -> int:
    packages = missing()
    if packages and not install(packages):
        print(f"real lane: {advice(missing())}; the tests that need them skip", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
