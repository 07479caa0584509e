"""A container with a `/` of its own: what is mounted where, as whom it runs, and what its image adds to its spec.

`trampoline` carries it out. In the container there is one user, the one that it runs as; whatever number that has, the
files of the image and of the volumes are its own. Outside it is the cluster's user, or as root an unprivileged one.
Upstream: pkg/kubelet/kuberuntime/security_context.go.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from konverge.objects.kinds.core_v1 import Container, Pod
from konverge.sim.kubelet.admission import SAFE_SYSCTLS
from konverge.sim.processes.disk import Mounts
from konverge.sim.processes.environment import ConfigError
from konverge.sim.processes.images import Image
from konverge.sim.processes.layers import ImageError

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
NAMES = "/run/konverge/names"
"""A folder, since its file is replaced: a mount of the file itself would stay what it was."""
RESOLVER = Path("/etc/resolv.conf")


@dataclass(frozen=True, slots=True)
class Root:
    """All that the trampoline needs for one run."""

    lower: Path
    scratch: Path
    """A folder to mount on, outside; nothing is written to it."""
    mounts: Sequence[tuple[str, str, bool]]
    """What is mounted where, and whether it is writable. Outer ones come first."""
    links: Sequence[tuple[str, str]]
    hostname: str
    cwd: str
    ids: tuple[int, int]
    read_only: bool = False
    size: int = 0
    """Bytes that may be written outside of volumes; 0 is as many as this machine lets a file system in memory have."""
    variables: Mapping[str, str] = field(default_factory=dict)
    """Of the kernel, in the container's namespaces: its sysctls."""

    def options(self) -> dict[str, Any]:
        return {
            "lower": str(self.lower),
            "scratch": str(self.scratch),
            "mounts": self.mounts,
            "links": self.links,
            "hostname": self.hostname,
            "cwd": self.cwd,
            "read_only": self.read_only,
            "size": self.size,
            "variables": self.variables,
        }


@dataclass(frozen=True, slots=True)
class Account:
    """As whom a container runs, as it sees it."""

    uid: int
    gid: int
    home: str


def account(pod: Pod, spec: Container, image: Image) -> Account:
    """Of the container's securityContext, the pod's, the image. Raises ConfigError."""
    contexts = [context for context in (spec.security_context, pod.spec.security_context) if context is not None]
    user = next((context.run_as_user for context in contexts if context.run_as_user is not None), None)
    group = next((context.run_as_group for context in contexts if context.run_as_group is not None), None)
    non_root = next((context.run_as_non_root for context in contexts if context.run_as_non_root is not None), False)
    try:
        uid, gid, home = image.account(str(user) if user is not None else image.settings.user or "0")
    except ImageError as error:
        raise ConfigError(str(error)) from error
    if non_root and uid == 0:
        raise ConfigError("container has runAsNonRoot and image will run as root")
    return Account(uid, gid if group is None else group, home)


def base_env(image: Image, who: Account) -> dict[str, str]:
    """What a container has before its rule and its spec say anything: nothing of ours."""
    return {"PATH": PATH, "HOME": who.home, **image.settings.env}


def command(image: Image, args: Sequence[str]) -> list[str]:
    """The image's entrypoint, and the container's args or the image's. Raises ConfigError."""
    chosen = [*image.settings.entrypoint, *(args or image.settings.command)]
    if not chosen:
        raise ConfigError("no command specified: the image has none, so the rule or the container has to")
    return chosen


def workdir(spec: Container, image: Image) -> str:
    return spec.working_dir or image.settings.workdir or "/"


def variables(pod: Pod, *, networked: bool) -> dict[str, str]:
    """The sysctls of a pod. Those of the network only where it is the pod's own: else they are this machine's."""
    context = pod.spec.security_context
    named = {sysctl.name.replace("/", "."): sysctl.value for sysctl in (context.sysctls if context is not None else ())}
    return {
        name: value
        for name, value in named.items()
        if name in SAFE_SYSCTLS and (networked or not name.startswith("net."))
    }


def make(
    spec: Container,
    image: Image,
    who: Account,
    mounts: Mounts,
    *,
    names: Path,
    hostname: str,
    cwd: str,
    resolver: Path = RESOLVER,
) -> Root:
    """The mount plan. A mount of the pod's own at one of our paths wins. `resolver` is its resolv.conf."""
    own = {target for _, target, _ in mounts.listed()}
    system = [("/sys", "/sys", False), (str(names), NAMES, False)]
    if resolver.exists():
        system.append((str(resolver.resolve()), "/etc/resolv.conf", False))
    whole = [*(entry for entry in system if entry[1] not in own), *mounts.listed()]
    whole.sort(key=lambda entry: entry[1].count("/") if entry[1] != "/" else 0)
    links = [("/etc/hosts", f"{NAMES}/hosts")] if not own & {"/etc/hosts", "/etc"} else []
    context, limits = spec.security_context, spec.resources.limits if spec.resources is not None else {}
    return Root(
        lower=image.folder,
        scratch=mounts.root,
        mounts=tuple(whole),
        links=tuple(links),
        hostname=hostname,
        cwd=cwd,
        ids=(who.uid, who.gid),
        read_only=bool(context is not None and context.read_only_root_filesystem),
        size=int(limits.get("ephemeral-storage", 0)),
    )


def trial(folder: Path) -> Root:
    """An empty one, to see whether it is possible."""
    (folder / "image").mkdir()
    (folder / "scratch").mkdir()
    return Root(folder / "image", folder / "scratch", (), (), "trial", "/", (0, 0))
