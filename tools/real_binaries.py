"""Where the real Kubernetes binaries come from.

Looked for in this order: the folder that KUBEBUILDER_ASSETS names; a packed set beside the repository (xz files,
unpacked once into a cache); a set built from Go modules into the same cache by `python -m tools.real_binaries build`,
which needs Go and about twenty minutes. A caller that finds none says so and skips. `python -m tools.real_binaries
agnhost` builds the program of the conformance tests' pods beside them.
"""

from __future__ import annotations

import lzma
import os
import shutil
import subprocess
import sys
from pathlib import Path

from konverge.apiserver.kubernetes_version import KUBERNETES_VERSION, MAJOR, MINOR

KUBERNETES = f"v{KUBERNETES_VERSION}"
ETCD = "v3.6.16"
HELM = "v4.3.1"
KWOK = "v0.8.0"

ESSENTIAL = ("etcd", "kube-apiserver")
PACKED = Path(__file__).resolve().parents[2] / "shared" / "oracle" / "packed"

_K8S_PROGRAMS = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl")
_TESTING = {"e2e.test": "test/e2e", "agnhost": "test/images/agnhost"}
_KUBERNETES = (*_K8S_PROGRAMS, "kubectl-convert", *_TESTING)
_TAGS = "selinux,notest,grpcnotrace"


def cache() -> Path:
    """The folder outside the repository where binaries are kept, one per Kubernetes version."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "konverge" / f"kubernetes-{KUBERNETES}"


def find(*, build: bool = False) -> tuple[Path | None, str]:
    """(folder, where it came from), or (None, what to do about it)."""
    named = os.environ.get("KUBEBUILDER_ASSETS")
    if named and _complete(Path(named)):
        return Path(named), "KUBEBUILDER_ASSETS"
    if _complete(cache()):
        return cache(), "the cache"
    if PACKED.is_dir():
        unpack(PACKED, cache())
        return cache(), "the packed set"
    if build and shutil.which("go"):
        build_all(cache())
        return cache(), "built from Go modules"
    return None, (
        "no kube-apiserver and etcd: set KUBEBUILDER_ASSETS to a folder that has them, "
        "or install Go and run `python -m tools.real_binaries build` (about 20 minutes)"
    )


def _complete(folder: Path) -> bool:
    return all(os.access(folder / name, os.X_OK) for name in ESSENTIAL)


def unpack(packed: Path, target: Path) -> None:
    """Unpack every xz file; renamed into place, so that two runs at once do no harm."""
    target.mkdir(parents=True, exist_ok=True)
    for source in sorted(packed.iterdir()):
        name = source.name.removesuffix(".xz")
        partial = target / f".{name}.{os.getpid()}"
        opened = lzma.open(source) if source.suffix == ".xz" else source.open("rb")  # noqa: SIM115 - closed by `with`
        with opened as raw, partial.open("wb") as out:
            shutil.copyfileobj(raw, out)
        partial.chmod(0o755)
        partial.rename(target / name)


def build_all(target: Path) -> None:
    target.mkdir(parents=True, exist_ok=True)
    for name in ("etcd", *_K8S_PROGRAMS, "helm"):
        if not (target / name).exists():
            print(f"building {name} …", file=sys.stderr, flush=True)
            _build(name, target)


def program(name: str) -> Path:
    """A program among the binaries, built from Go modules into the cache if it is missing (a minute or more)."""
    folder, note = find()
    if folder is not None and (folder / name).exists():
        return folder / name
    if not (cache() / name).exists():
        if shutil.which("go") is None:
            raise FileNotFoundError(f"no {name}, and no Go to build it: {note}")
        cache().mkdir(parents=True, exist_ok=True)
        _build(name, cache())
    return cache() / name


def _build(name: str, target: Path) -> None:
    module, version, package = _origin(name)
    work = target / "build" / module.replace("/", "-")
    work.mkdir(parents=True, exist_ok=True)
    if not (work / "go.mod").exists():
        (work / "go.mod").write_text(_go_mod(work, module, version))
    command = ["go", "test", "-c", "-vet=off"] if name.endswith(".test") else ["go", "build"]
    flags = ["-mod=mod", "-trimpath", "-ldflags", "-s -w " + _version_flags(name), "-o", str(target / name)]
    tags = ["-tags", _TAGS] if name in _KUBERNETES else []
    subprocess.run([*command, *flags, *tags, package], cwd=work, check=True, env={**os.environ, "CGO_ENABLED": "0"})


def _origin(name: str) -> tuple[str, str, str]:
    if name in _KUBERNETES:
        return "k8s.io/kubernetes", KUBERNETES, f"k8s.io/kubernetes/{_TESTING.get(name, f'cmd/{name}')}"
    if name == "etcd":
        return "go.etcd.io/etcd/server/v3", ETCD, "go.etcd.io/etcd/server/v3"
    return "helm.sh/helm/v4", HELM, "helm.sh/helm/v4/cmd/helm"


def _go_mod(work: Path, module: str, version: str) -> str:
    text = f"module konverge.invalid/build\n\ngo 1.26.0\n\nrequire {module} {version}\n"
    if module != "k8s.io/kubernetes":
        return text
    # Kubernetes replaces its staging modules by folders that the module zip does not hold;
    # the same code is published under v0.x.y.
    (work / "go.mod").write_text(text)
    subprocess.run(["go", "mod", "download", f"{module}@{version}"], cwd=work, check=True)
    listed = subprocess.run(
        ["go", "list", "-m", "-f", "{{.GoMod}}", f"{module}@{version}"],
        cwd=work,
        check=True,
        capture_output=True,
        text=True,
    )
    staged = [
        line.split(" => ")[0].strip()
        for line in Path(listed.stdout.strip()).read_text().splitlines()
        if " => ./staging/src/" in line
    ]
    replaces = "".join(f"\t{name} => {name} v0{version[2:]}\n" for name in staged)
    return text + f"\nreplace (\n{replaces})\n"


def _version_flags(name: str) -> str:
    if name not in _KUBERNETES:
        return ""
    flags = []
    for package in ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version"):
        for key, value in (("gitVersion", KUBERNETES), ("gitMajor", MAJOR), ("gitMinor", MINOR)):
            flags.append(f"-X {package}.{key}={value}")
    return " ".join(flags)


def main() -> int:
    if "agnhost" in sys.argv[1:]:
        print(program("agnhost"))
        return 0
    folder, note = find(build="build" in sys.argv[1:])
    print(f"{folder} ({note})" if folder else note)
    return 0 if folder else 1


if __name__ == "__main__":
    sys.exit(main())
