"""What an instance waits for before it can be placed, and before it can start: volumes, networks, Secrets."""

from __future__ import annotations

import json
from typing import Any

from konverge.objects.kinds.core_v1 import PersistentVolumeClaim, Secret
from konverge.runtime import Context, controller_of
from konverge.sim.kubevirt import launcher
from konverge.sim.kubevirt.kinds import DataVolume, Instance, NetworkAttachment

GO_ON = ("Succeeded", "PendingPopulation")
"""The phases of a DataVolume with which KubeVirt makes the launcher pod."""


class Volumes:
    """What was found out about the claims of an instance."""

    def __init__(self) -> None:
        self.missing: list[str] = []
        self.failed: list[str] = []
        self.filling: list[str] = []
        self.to_bind: list[str] = []
        """Claims whose DataVolume waits for any pod that uses them."""

    @property
    def ready(self) -> bool:
        return not (self.missing or self.failed or self.filling or self.to_bind)

    @property
    def problem(self) -> tuple[str, str]:
        """Reason and message of the Synchronized condition."""
        if self.missing:
            return "FailedPvcNotFound", f"PVC {self.missing[0]} not found"
        if self.failed:
            return "DataVolumeError", f"DataVolume {self.failed[0]} failed"
        return "", ""


async def volumes_of(ctx: Context[Instance]) -> Volumes:
    volumes = Volumes()
    for name in launcher.claims_of(ctx.obj.spec).values():
        claim = await ctx.get(PersistentVolumeClaim, name)
        if claim is None or claim.metadata.deletion_timestamp is not None:
            volumes.missing.append(name)
            continue
        owner = controller_of(claim)
        if owner is None or owner.kind != "DataVolume" or not ctx.serves(DataVolume):
            continue
        volume = await ctx.get(DataVolume, owner.name)
        phase = volume.status.get("phase", "") if volume is not None else "Succeeded"
        if phase == "Failed":
            volumes.failed.append(name)
        elif phase == "WaitForFirstConsumer":
            volumes.to_bind.append(name)
        elif phase not in GO_ON:
            volumes.filling.append(name)
    return volumes


async def obstacles(ctx: Context[Instance]) -> list[tuple[str, str]]:
    """Why a placed pod does not start: events of the kubelet, as reason and message."""
    spec, meta = ctx.obj.spec, ctx.obj.metadata
    problems = []
    for place, name in launcher.attachments_of(spec, meta.namespace):
        why = _unusable(await _attachment(ctx, place, name), place, name)
        if why:
            problems.append(("FailedCreatePodSandBox", f"Failed to create pod sandbox: plugin type=multus: {why}"))
    missing = [name for name in launcher.secrets_of(spec) if await ctx.get(Secret, name) is None]
    problems += [("FailedMount", f'MountVolume.SetUp failed: secret "{name}" not found') for name in missing]
    return problems


def _unusable(attachment: NetworkAttachment | None, place: str, name: str) -> str:
    """What Multus and the CNI plugins say when a pod is to be attached."""
    if attachment is None:
        return f"cannot find a network-attachment-definition ({name}) in namespace ({place})"
    try:
        config = json.loads(attachment.spec.get("config", ""))
    except ValueError as error:
        return f"the config of {place}/{name} is not JSON: {error}"
    if not isinstance(config, dict) or not (config.get("type") or config.get("plugins")):
        return f"the config of {place}/{name} has no type"
    if config.get("type") == "bridge" and config.get("disableContainerInterface") and config.get("ipam"):
        return "cannot use IPAM when DisableContainerInterface flag is set"
    return ""


async def _attachment(ctx: Context[Any], place: str, name: str) -> NetworkAttachment | None:
    return await ctx.get(NetworkAttachment, name, place) if ctx.serves(NetworkAttachment) else None
