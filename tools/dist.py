"""Build a release into a folder and try it: `python -m tools.dist FOLDER` (`make dist` gives it its environment).

A wheel and an sdist, made from committed files only; the list of their parts beside them. What is tried is the wheel
that was made from the sdist, in an environment that has nothing else: the command starts a cluster, the pytest plugin
runs a test, and every file of the package is there.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import venv
import zipfile
from collections.abc import Collection
from pathlib import Path

from tools import sbom

ROOT = Path(__file__).parents[1]
LOCKED = ROOT / "deploy" / "constraints.txt"
DEVELOPMENT = ROOT / "constraints.txt"
PYTEST = ("iniconfig", "packaging", "pluggy", "pygments", "pytest")
"""pytest and what it needs."""
STARTED_WITHIN = 60


def main(folder: str) -> None:
    out = Path(folder).resolve()
    out.mkdir(parents=True, exist_ok=True)
    for old in out.iterdir():
        old.unlink()
    with tempfile.TemporaryDirectory(prefix="konverge-dist-") as place:
        _say("building from the files that are committed")
        sources = _committed(Path(place) / "sources")
        _call(sys.executable, "-m", "build", "--no-isolation", "--outdir", str(out), str(sources))
        wheel, archive = next(out.glob("*.whl")), next(out.glob("*.tar.gz"))
        _say("checking what a package index would say of them")
        _call(sys.executable, "-m", "twine", "check", "--strict", str(wheel), str(archive))
        _same_files(sources, wheel, archive)
        sbom.main(str(LOCKED), str(out / f"{wheel.name.removesuffix('.whl')}.cdx.json"))
        _say("trying the wheel in an environment of its own")
        _try(wheel, Path(place) / "clean")
    _say(f"{', '.join(sorted(path.name for path in out.iterdir()))} in {out}")


def _committed(folder: Path) -> Path:
    """The files of the last commit: what is only on this machine is in no release."""
    folder.mkdir()
    archive = subprocess.run(["git", "archive", "HEAD"], cwd=ROOT, check=True, capture_output=True).stdout
    subprocess.run(["tar", "-x", "-C", str(folder)], input=archive, check=True)
    return folder


def _same_files(sources: Path, wheel: Path, archive: Path) -> None:
    """Every file of the package is in both, whether it is Python or not."""
    package = {
        path.relative_to(sources / "src").as_posix()
        for path in (sources / "src" / "konverge").rglob("*")
        if path.is_file()
    }
    with zipfile.ZipFile(wheel) as opened:
        built = {name for name in opened.namelist() if ".dist-info/" not in name}
    with tarfile.open(archive) as packed:
        shipped = {name.split("/src/", 1)[1] for name in packed.getnames() if "/src/" in name}
    for name, files in (("wheel", built), ("sdist", shipped)):
        if missing := sorted(package - files):
            raise SystemExit(f"the {name} lacks {', '.join(missing)}; add them to pyproject.toml's package-data")
    if foreign := sorted(built - package):
        raise SystemExit(f"the wheel has files that are in no commit: {', '.join(foreign)}")


def _try(wheel: Path, folder: Path) -> None:
    venv.create(folder, with_pip=True)
    python = folder / "bin" / "python"
    pip = (str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
    _call(*pip, "--require-hashes", "-r", str(LOCKED))
    _call(*pip, "--no-deps", str(wheel))
    _call(str(python), "-m", "pip", "check")
    konverge = str(folder / "bin" / "konverge")
    version = subprocess.run([konverge, "--version"], check=True, capture_output=True, text=True).stdout.strip()
    if version != f"konverge {wheel.name.split('-')[1]}":
        raise SystemExit(f"{wheel.name} says that it is {version}")
    # Not among the clusters of whoever builds this: one of them may have the same name.
    own = {**os.environ, "XDG_STATE_HOME": str(folder / "state")}
    up = [konverge, "up", "--output", "json", "--kubeconfig", str(folder / "kubeconfig")]
    with subprocess.Popen(up, cwd=folder, env=own, stdout=subprocess.PIPE, text=True) as cluster:
        try:
            assert cluster.stdout is not None
            facts = json.loads(cluster.stdout.readline() or "{}")
            if not facts.get("ready"):
                raise SystemExit("`konverge up` of the wheel did not become ready")
            _say(f"`konverge up` is ready with {', '.join(facts['operators'])}")
        finally:
            cluster.terminate()
            cluster.wait(STARTED_WITHIN)
    (folder / "pytest.txt").write_text(pinned(DEVELOPMENT.read_text(), PYTEST))
    _call(*pip, "--require-hashes", "-r", str(folder / "pytest.txt"))
    _call(konverge, "new", "trial", "--dir", str(folder / "trial"))
    _call(str(python), "-m", "pytest", "-q", cwd=folder / "trial")
    _say("the pytest plugin of the wheel runs the tests of a new project")


def pinned(locked: str, names: Collection[str]) -> str:
    """The lines of these packages in a lock file, with their hashes."""
    entries = re.findall(r"^\S.*(?:\n[ \t].*)*\n?", locked, re.MULTILINE)
    chosen = [entry for entry in entries if re.split(r"[=\[ ;]", entry, maxsplit=1)[0] in names]
    if len(chosen) < len(names):
        raise SystemExit(f"{DEVELOPMENT.name} does not have all of {', '.join(names)}: run `make lock`")
    return "".join(chosen)


def _call(*command: str, cwd: Path = ROOT) -> None:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} failed:\n{done.stdout}{done.stderr}")


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
