"""The programs of tests/real/programs, built with the tools of their language and run against a server.

What is built or downloaded is kept in a folder outside the repository: the first run takes minutes, the next ones
seconds. A tool or a registry that is missing is a reason to skip, with the reason in the report; a program that does
not compile is a failure.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tools import real_packages

SOURCES = Path(__file__).resolve().parents[1] / "programs"
PYTHON_CLIENTS = ("kubernetes", "kopf", "kubernetes_asyncio", "lightkube")
PATIENCE = 600.0
"""Seconds for one step of a build. On two free cores the longest, Rust from nothing, takes two minutes."""


RUN_LIMIT = 300.0
"""Seconds for a program to do all that it does; on two free cores it takes a few."""


def cache() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "konverge" / "programs"


def _copy(language: str) -> Path:
    """A copy of the sources to build in: nothing is generated in the repository."""
    target = cache() / language
    shutil.copytree(SOURCES / language, target, dirs_exist_ok=True)
    return target


def _tool(name: str) -> str:
    tool = shutil.which(name)
    if tool is None:
        pytest.skip(f"no {name} on the PATH: the programs that need it are not built")
    return tool


def require(binaries: Path, name: str) -> Path:
    """A program among the real binaries; skips where it is missing."""
    if not (binaries / name).exists():
        pytest.skip(f"no {name} in {binaries}")
    return binaries / name


def step(what: str, *command: str, cwd: Path, may_skip: bool, **environment: str) -> None:
    """A step of a build, with low priority. A step that needs the network may fail without it; the tests skip then."""
    gentle = ["nice", "-n", "10"] if shutil.which("nice") else []
    try:
        done = subprocess.run(
            [*gentle, *command],
            cwd=cwd,
            env=os.environ | environment,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )
    except subprocess.TimeoutExpired:
        pytest.skip(f"{what} took longer than {PATIENCE:.0f} s; what is done is kept, so run the tests again")
    if done.returncode != 0:
        output = "\n".join((done.stdout + done.stderr).splitlines()[-15:])
        (pytest.skip if may_skip else pytest.fail)(f"{what} failed:\n{output}")


def go_programs() -> Path:
    """The folder with the built Go programs."""
    go, folder = _tool("go"), _copy("go")
    flags = {"GOFLAGS": "-mod=mod"}
    step("downloading Go modules", go, "list", "-deps", "./...", cwd=folder, may_skip=True, **flags)
    step("building the Go programs", go, "build", "-o", "bin/", "./...", cwd=folder, may_skip=False, **flags)
    return folder / "bin"


def rust_program() -> Path:
    if os.environ.get("KONVERGE_REAL_RUST") == "0":
        pytest.skip("KONVERGE_REAL_RUST=0: the Rust program is not built")
    cargo, folder = _tool("cargo"), _copy("rust")
    step("downloading crates", cargo, "fetch", cwd=folder, may_skip=True)
    target = {"CARGO_TARGET_DIR": str(folder / "target")}
    step("building the Rust program", cargo, "build", "--quiet", cwd=folder, may_skip=False, **target)
    return folder / "target" / "debug" / "konverge-real-client"


def js_program() -> Path:
    _tool("node")
    npm, folder = _tool("npm"), _copy("js")
    if not (folder / "node_modules" / ".package-lock.json").exists():
        step("npm install", npm, "install", "--no-audit", "--no-fund", cwd=folder, may_skip=True)
    return folder / "main.js"


def ruby_program() -> list[str | Path]:
    """The beginning of the command that runs it, with the distribution's library."""
    ruby = real_packages.ruby_with_kubeclient()
    if ruby is None:
        pytest.skip(real_packages.advice(["ruby-kubeclient"]))
    return [ruby, SOURCES / "ruby" / "main.rb"]


def nacos_home() -> Path:
    """The folder of a real Nacos 2.1.1: nacos.jar and lib/. See `tests.real.nacos` for how it is run."""
    return _packaged("nacos", "Nacos")


def java_program() -> list[str | Path]:
    """The beginning of the command that runs it."""
    target = _packaged("java", "the Java program")
    return [_tool("java"), "-cp", f"{target / 'client.jar'}:{target / 'lib'}/*", "dev.konverge.real.Main"]


def _packaged(language: str, what: str) -> Path:
    """The folder with what Maven makes of a program, and its libraries in lib/."""
    _tool("java")
    mvn, folder = _tool("mvn"), cache() / language
    sources = sorted(path for path in (SOURCES / language).rglob("*") if path.is_file())
    wanted = hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()
    ready = folder / "ready"
    if not ready.exists() or ready.read_text() != wanted:
        shutil.rmtree(folder / "src", ignore_errors=True)
        shutil.rmtree(folder / "target" / "classes", ignore_errors=True)
        quiet = [mvn, "-q", "-B", "-ntp", "package"]
        _copy(language)
        step(f"downloading {what}", *quiet, "-Dmaven.main.skip=true", cwd=folder, may_skip=True)
        step(f"building {what}", *quiet, "-o", cwd=folder, may_skip=False)
        ready.write_text(wanted)
    return folder / "target"


def python_clients() -> Path:
    """The bin folder of an environment with other people's clients."""
    folder = cache() / "python"
    ready = folder / "ready"
    wanted = " ".join(PYTHON_CLIENTS)
    if not ready.exists() or ready.read_text() != wanted:
        folder.mkdir(parents=True, exist_ok=True)
        step("making an environment", sys.executable, "-m", "venv", "venv", cwd=folder, may_skip=False)
        pip = [str(folder / "venv" / "bin" / "python"), "-m", "pip", "install", "--quiet"]
        step("pip install", *pip, *PYTHON_CLIENTS, cwd=folder, may_skip=True)
        ready.write_text(wanted)
    return folder / "venv" / "bin"


def run(*command: str | Path, kubeconfig: Path | None = None, **environment: str) -> list[str]:
    """Run a program to its end, which must be a success; the steps that it reports as ok."""
    known = {"KUBECONFIG": str(kubeconfig)} if kubeconfig is not None else {}
    done = subprocess.run(
        [str(part) for part in command],
        env=os.environ | known | environment,
        capture_output=True,
        text=True,
        timeout=RUN_LIMIT,
    )
    output = f"{done.stdout}\n{done.stderr}"
    assert done.returncode == 0, f"{command[0]} ended with {done.returncode}:\n{output[-4000:]}"
    return [line.removeprefix("ok ") for line in done.stdout.splitlines() if line.startswith("ok ")]
