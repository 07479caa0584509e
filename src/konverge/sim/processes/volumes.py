"""The volumes of a pod as folders. Those made of objects follow them; a PersistentVolume's folder outlives its pods.

`files` says what the files of a volume are that is made of objects: ConfigMap, Secret, downward API, projected.
Upstream: pkg/volume/{configmap,secret,downwardapi,projected}.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Protocol, TypeVar

from konverge import clock
from konverge.client import Client, NotFound
from konverge.objects.kinds.certificates_v1 import ClusterTrustBundle
from konverge.objects.kinds.core_v1 import (
    ClusterTrustBundleProjection,
    ConfigMap,
    ConfigMapProjection,
    ConfigMapVolumeSource,
    DownwardAPIVolumeFile,
    KeyToPath,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    PodCertificateProjection,
    Secret,
    SecretProjection,
    SecretVolumeSource,
    ServiceAccount,
    ServiceAccountTokenProjection,
    Volume,
    VolumeProjection,
)
from konverge.objects.times import parse_time
from konverge.sim.kubelet.references import (
    Kind,
    no_file,
    not_found,
    not_mounted,
    of_volumes,
    trust_error,
    trusted_by,
)
from konverge.sim.processes import disk, host_paths
from konverge.sim.processes.certificates import Certificates, Credentials, Place, bodies, pem
from konverge.sim.processes.disk import MODE, File, Files, MountError
from konverge.sim.processes.environment import Objects, Self
from konverge.sim.processes.permitted import is_host_path_allowed

K = TypeVar("K", ConfigMap, Secret)


class Source(Objects, Protocol):
    """Also reads binary keys, and issues tokens."""

    async def config_map_data(self, name: str) -> Mapping[str, bytes] | None: ...

    async def token(self, audience: str, seconds: int) -> bytes:
        """For the pod's service account, bound to the pod."""

    async def trust_bundles(self) -> Sequence[ClusterTrustBundle]: ...

    async def credentials(self, place: Place, part: PodCertificateProjection) -> Credentials:
        """Issued for the pod by a signer."""


def is_made_of_objects(volume: Volume) -> bool:
    return any((volume.config_map, volume.secret, volume.downward_api, volume.projected))


async def files(volume: Volume, itself: Self, source: Source) -> Files:
    """The files of such a volume. Raises MountError."""
    if volume.config_map is not None:
        return await _of_config_map(volume.config_map, source, volume.config_map.default_mode)
    if volume.secret is not None:
        secret = volume.secret
        return await _of_secret(secret.secret_name or "", secret, source, secret.default_mode)
    if volume.downward_api is not None:
        return _downward(volume.downward_api.items, itself, volume.downward_api.default_mode)
    contents: Files = {}
    if volume.projected is not None:
        for number, part in enumerate(volume.projected.sources):
            if part.pod_certificate is not None:
                credentials = await source.credentials((volume.name, number), part.pod_certificate)
                contents |= _credentials(part.pod_certificate, credentials, volume.projected.default_mode)
            else:
                contents |= await _projected(part, itself, source, volume.projected.default_mode)
    return contents


async def _projected(part: VolumeProjection, itself: Self, source: Source, mode: int | None) -> Files:
    if part.config_map is not None:
        return await _of_config_map(part.config_map, source, mode)
    if part.secret is not None:
        return await _of_secret(part.secret.name or "", part.secret, source, mode)
    if part.downward_api is not None:
        return _downward(part.downward_api.items, itself, mode)
    if part.service_account_token is not None:
        return await _token(part.service_account_token, source)
    if part.cluster_trust_bundle is not None:
        return _trusted(part.cluster_trust_bundle, await source.trust_bundles(), mode)
    raise MountError(
        "process pods offer configMap, secret, downwardAPI, serviceAccountToken, clusterTrustBundle and podCertificate "
        "in projected volumes"
    )


def _credentials(part: PodCertificateProjection, found: Credentials, mode: int | None) -> Files:
    wanted = (
        (part.credential_bundle_path, found.key + found.chain),
        (part.key_path, found.key),
        (part.certificate_chain_path, found.chain),
    )
    return {path: File(data, MODE if mode is None else mode) for path, data in wanted if path}


def _trusted(part: ClusterTrustBundleProjection, bundles: Sequence[ClusterTrustBundle], mode: int | None) -> Files:
    """Each certificate once, without what stands around it; in an order that means nothing."""
    if error := trust_error(part, bundles):
        raise MountError(error)
    texts = [bundle.spec.trust_bundle for bundle in trusted_by(part, bundles)]
    certificates = sorted({body for text in texts for body in bodies(text)})
    return {part.path: File(pem(certificates), MODE if mode is None else mode)}


async def _of_config_map(part: ConfigMapVolumeSource | ConfigMapProjection, source: Source, mode: int | None) -> Files:
    name = part.name or ""
    return _picked(await source.config_map_data(name), "ConfigMap", name, part.items, part.optional, mode)


async def _of_secret(name: str, part: SecretVolumeSource | SecretProjection, source: Source, mode: int | None) -> Files:
    return _picked(await source.secret(name), "Secret", name, part.items, part.optional, mode)


async def _token(part: ServiceAccountTokenProjection, source: Source) -> Files:
    token = await source.token(part.audience or "", part.expiration_seconds or 3600)
    return {part.path: File(token, 0o600)}


def _picked(
    data: Mapping[str, bytes] | None,
    kind: Kind,
    name: str,
    items: Sequence[KeyToPath],
    optional: bool | None,
    mode: int | None,
) -> Files:
    if data is None:
        if optional:
            return {}
        raise MountError(not_found(kind, name))
    usual = MODE if mode is None else mode
    if not items:
        return {key: File(value, usual) for key, value in data.items()}
    contents: Files = {}
    for item in items:
        if item.key in data:
            contents[item.path] = File(data[item.key], usual if item.mode is None else item.mode)
        elif not optional:
            raise MountError(no_file(kind, item.key))
    return contents


def _downward(items: Sequence[DownwardAPIVolumeFile], itself: Self, mode: int | None) -> Files:
    contents: Files = {}
    for item in items:
        text = ""
        if item.field_ref is not None:
            text = itself.field(item.field_ref.field_path)
        elif item.resource_field_ref is not None:
            text = itself.amount(item.resource_field_ref, item.resource_field_ref.container_name or "")
        usual = MODE if mode is None else mode
        contents[item.path] = File(text.encode(), usual if item.mode is None else item.mode)
    return contents


_FRESH = 0.8
"""A token is renewed when so much of its life is over."""


class Lookup:
    """The objects that one pod may refer to. Tokens are kept until they grow old."""

    def __init__(self, client: Client, pod: Pod) -> None:
        self._client = client
        self._pod = pod
        self._tokens: dict[tuple[str, int], tuple[bytes, float]] = {}
        self._certificates = Certificates(client, pod)

    @property
    def again(self) -> float:
        """When the first of the tokens and certificates should be renewed."""
        return min([self._certificates.again, *(again for _, again in self._tokens.values())])

    async def _get(self, kind: type[K], name: str) -> K | None:
        try:
            return await self._client.get(kind, name, self._pod.metadata.namespace)
        except NotFound:
            return None

    async def config_map(self, name: str) -> dict[str, str] | None:
        config_map = await self._get(ConfigMap, name)
        return None if config_map is None else dict(config_map.data)

    async def config_map_data(self, name: str) -> dict[str, bytes] | None:
        config_map = await self._get(ConfigMap, name)
        if config_map is None:
            return None
        plain = {key: value.encode() for key, value in config_map.data.items()}
        return plain | {key: b64decode(value) for key, value in config_map.binary_data.items()}

    async def secret(self, name: str) -> dict[str, bytes] | None:
        secret = await self._get(Secret, name)
        return None if secret is None else {key: b64decode(value) for key, value in secret.data.items()}

    async def trust_bundles(self) -> Sequence[ClusterTrustBundle]:
        return list(await self._client.list(ClusterTrustBundle))

    async def credentials(self, place: Place, part: PodCertificateProjection) -> Credentials:
        return await self._certificates.get(place, part)

    async def token(self, audience: str, seconds: int) -> bytes:
        key = (audience, seconds)
        known = self._tokens.get(key)
        if known is None or clock.now() >= known[1]:
            known = self._tokens[key] = await self._issue(audience, seconds)
        return known[0]

    async def _issue(self, audience: str, seconds: int) -> tuple[bytes, float]:
        meta, spec = self._pod.metadata, self._pod.spec
        bound = {"kind": "Pod", "apiVersion": "v1", "name": meta.name, "uid": meta.uid}
        token_spec: dict[str, Any] = {"expirationSeconds": max(seconds, 600), "boundObjectRef": bound}
        if audience:
            token_spec["audiences"] = [audience]
        body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": token_spec}
        account = spec.service_account_name or "default"
        made = await self._client.create_sub(ServiceAccount, account, "token", body, meta.namespace)
        now = clock.now()
        life = parse_time(made["status"]["expirationTimestamp"]).timestamp() - now
        return str(made["status"]["token"]).encode(), now + life * _FRESH


@contextmanager
def memory_folder() -> Iterator[Path | None]:
    """A folder in memory, for as long as the cluster lives; None where this machine has none for everybody.

    To mount a file system needs rights that we may not have; one that is there already does not.
    """
    try:
        mounts = [line.split() for line in Path("/proc/self/mounts").read_text().splitlines()]
        if not any(mount[1:3] == [str(_SHARED_MEMORY), "tmpfs"] for mount in mounts):
            raise FileNotFoundError(_SHARED_MEMORY)
        made = TemporaryDirectory(prefix="konverge-memory-", dir=_SHARED_MEMORY)
    except OSError:
        yield None
        return
    with made as folder:
        yield Path(folder)


_SHARED_MEMORY = Path("/dev/shm")  # noqa: S108

Folders = dict[str, tuple[Path, bool]]
"""By the names of volumes: the folder, and whether it is made of objects."""


class PodVolumes:
    """The volumes of one pod."""

    def __init__(
        self,
        home: Path,
        persistent: Path,
        client: Client,
        host_paths: Sequence[str],
        user: int | None = None,
        mask: int = disk.PRIVATE,
        memory: Path | None = None,
    ) -> None:
        """`user` is who is to own them, if that is not us; `mask` is what is kept of the modes of files; `memory` is
        where those with medium Memory are, if this machine has a place for them."""
        self.home = disk.make_folder(home)
        disk.give(home, user)
        self._user = user
        self._mask = mask
        self._persistent = persistent
        self._client = client
        self._host_paths = tuple(host_paths)
        self._memory = memory

    @property
    def ours(self) -> list[Path]:
        """The folders beside that of the cluster where volumes are."""
        return [] if self._memory is None else [self._memory]

    async def prepare(self, itself: Self, source: Source) -> Folders:
        """All volumes, filled. Raises MountError."""
        folders: Folders = {}
        for volume in itself.pod.spec.volumes:
            try:
                if is_made_of_objects(volume):
                    await self._write(volume, itself, source)
                    folders[volume.name] = (self.home / volume.name, True)
                else:
                    folders[volume.name] = (await self._folder(volume, itself.pod), False)
            except MountError as error:
                raise MountError(not_mounted(volume.name, str(error))) from error
        return folders

    async def refresh(self, itself: Self, source: Source) -> None:
        """Files of objects as they are now. What has gone meanwhile stays as it was, as with a kubelet."""
        for volume in itself.pod.spec.volumes:
            if is_made_of_objects(volume) and (self.home / volume.name).exists():
                try:
                    await self._write(volume, itself, source)
                except MountError:
                    continue

    async def _write(self, volume: Volume, itself: Self, source: Source) -> None:
        disk.write_volume(self.home / volume.name, await files(volume, itself, source), self._user, self._mask)

    async def _folder(self, volume: Volume, pod: Pod) -> Path:
        if volume.empty_dir is not None:
            memory = self._memory if volume.empty_dir.medium == "Memory" else None
            folder = (memory or self.home) / volume.name
            if not folder.exists():
                disk.make_folder(folder).chmod(disk.FULL & self._mask)
            if memory is not None:
                disk.give(memory, self._user)
                disk.link(self.home / volume.name, folder)
            return self._owned(folder)
        if volume.host_path is not None:
            return self._of_host(volume.host_path.path, volume.host_path.type or "")
        if volume.persistent_volume_claim is not None:
            return await self._claimed(volume.persistent_volume_claim.claim_name, pod.metadata.namespace)
        if volume.ephemeral is not None:
            return await self._claimed(f"{pod.metadata.name}-{volume.name}", pod.metadata.namespace)
        raise MountError(
            "process pods offer configMap, secret, downwardAPI, projected, emptyDir, hostPath and "
            "persistentVolumeClaim volumes"
        )

    def _of_host(self, path: str, kind: str) -> Path:
        wanted = Path(path).resolve()
        if not is_host_path_allowed(wanted, self._host_paths):
            raise MountError(f"hostPath {path} is not allowed; name it in `host_paths` of the image's process rule")
        host_paths.provide(wanted, kind, self._user)
        return wanted

    async def _claimed(self, name: str, namespace: str) -> Path:
        try:
            claim = await self._client.get(PersistentVolumeClaim, name, namespace)
        except NotFound:
            raise MountError(f'persistentvolumeclaim "{name}" not found') from None
        if claim.status.phase != "Bound" or not claim.spec.volume_name:
            raise MountError(f'persistentvolumeclaim "{name}" is not bound')
        volume = await self._client.get(PersistentVolume, claim.spec.volume_name)
        if volume.spec.host_path is not None:
            return self._of_host(volume.spec.host_path.path, volume.spec.host_path.type or "")
        if volume.spec.local is not None:
            return self._of_host(volume.spec.local.path, "")
        return self._owned(self._persistent / folder_name(volume))

    def _owned(self, folder: Path) -> Path:
        disk.give(disk.make_folder(folder), self._user)
        return folder


def folder_name(volume: PersistentVolume) -> str:
    return f"{volume.metadata.name}_{volume.metadata.uid}"


def refers_to(pod: Pod, kind: str, name: str) -> bool:
    """Whether a volume of the pod is made of this ConfigMap or Secret."""
    return (kind, name) in of_volumes(pod)
