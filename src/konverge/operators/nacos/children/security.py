"""What the pods may do on their nodes: Pod Security's standards "restricted" and "baseline".

The images of Nacos run as root and write beside their programs. A restricted server runs as another user, and has
volumes of its own where the image writes. The list of members is mounted, since the image's entry point cannot write
it: `conf` belongs to root.
"""

from __future__ import annotations

from konverge.objects import from_dict, to_dict
from konverge.objects.kinds.core_v1 import (
    Capabilities,
    ConfigMapVolumeSource,
    EmptyDirVolumeSource,
    KeyToPath,
    PodSecurityContext,
    SeccompProfile,
    SecurityContext,
    Volume,
    VolumeMount,
)
from konverge.operators.nacos.children.config import MEMBERS_KEY
from konverge.operators.nacos.desired import Desired

_USER = 1000
"""Any number but 0: no image of Nacos knows a user of its own."""
_HOME = "/home/nacos"
_MEMBERS = "members"


def pod_context(desired: Desired) -> PodSecurityContext | None:
    """The user's fields over ours. The volumes belong to the group, whoever wrote the data in them before."""
    given = desired.spec.pod_security_context
    if not desired.restricted:
        return given
    ours = PodSecurityContext(
        run_as_non_root=True,
        run_as_user=_USER,
        run_as_group=_USER,
        fs_group=_USER,
        fs_group_change_policy="OnRootMismatch",
        seccomp_profile=SeccompProfile(type="RuntimeDefault"),
    )
    return from_dict(PodSecurityContext, {**to_dict(ours), **(to_dict(given) if given is not None else {})})


def server_context(desired: Desired) -> SecurityContext:
    given = desired.spec.security_context
    if not desired.restricted:  # as strict as images that run as root allow
        return given or SecurityContext(
            allow_privilege_escalation=False, seccomp_profile=SeccompProfile(type="RuntimeDefault")
        )
    return from_dict(SecurityContext, {**to_dict(_restricted()), **(to_dict(given) if given is not None else {})})


def helper_context(desired: Desired) -> SecurityContext | None:
    """Of the containers beside the servers, which only need a client of MySQL."""
    return _restricted() if desired.restricted else None


def _restricted() -> SecurityContext:
    return SecurityContext(
        allow_privilege_escalation=False,
        capabilities=Capabilities(drop=["ALL"]),
        run_as_non_root=True,
        seccomp_profile=SeccompProfile(type="RuntimeDefault"),
    )


def writable_volumes(desired: Desired, *, data: bool) -> tuple[list[Volume], list[VolumeMount]]:
    """Where a restricted server writes; `data` is for a server without a volume for its data.

    Tomcat keeps parts of requests in `work`.
    """
    if not desired.restricted:
        return [], []
    folders = ["logs", "work", *(["data"] if data else [])]
    volumes = [Volume(name=f"nacos-{folder}", empty_dir=EmptyDirVolumeSource()) for folder in folders]
    mounts = [VolumeMount(name=f"nacos-{folder}", mount_path=f"{_HOME}/{folder}") for folder in folders]
    if desired.cluster:
        items = [KeyToPath(key=MEMBERS_KEY, path=MEMBERS_KEY)]
        volumes.append(Volume(name=_MEMBERS, config_map=ConfigMapVolumeSource(name=desired.name, items=items)))
        path = f"{_HOME}/conf/{MEMBERS_KEY}"
        mounts.append(VolumeMount(name=_MEMBERS, mount_path=path, sub_path=MEMBERS_KEY, read_only=True))
    return volumes, mounts
