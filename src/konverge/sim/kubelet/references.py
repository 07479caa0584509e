"""The ConfigMaps, Secrets and trust bundles that a pod refers to, and what a kubelet says when one is missing. Pure.

Upstream: makeEnvironmentVariables (pkg/kubelet/kubelet_pods.go), MakePayload (pkg/volume/{secret,configmap}) and
collectData (pkg/volume/projected).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Literal

import msgspec

from konverge.objects.kinds.certificates_v1 import ClusterTrustBundle
from konverge.objects.kinds.core_v1 import (
    ClusterTrustBundleProjection,
    ConfigMapKeySelector,
    ConfigMapProjection,
    ConfigMapVolumeSource,
    Container,
    EnvFromSource,
    EnvVarSource,
    Pod,
    SecretKeySelector,
    SecretProjection,
    SecretVolumeSource,
    Volume,
)
from konverge.objects.labels import from_selector
from konverge.sim.kubelet.creation import creation_error

Kind = Literal["ConfigMap", "Secret"]
Keys = Callable[[Kind, str, bool], Collection[str] | None]
"""The keys of an object by kind and name, those with binary values only if the flag is set; None: it does not exist."""


_Keyed = ConfigMapKeySelector | SecretKeySelector
_Filed = ConfigMapVolumeSource | SecretVolumeSource | ConfigMapProjection | SecretProjection


class Missing(msgspec.Struct, frozen=True):
    """What keeps a pod's containers from being created."""

    config: Mapping[str, str] = msgspec.field(default_factory=dict)
    """By container: the message of its `CreateContainerConfigError`."""
    mounts: tuple[str, ...] = ()
    """The messages of volumes that cannot be mounted. No container begins before all volumes are there."""
    pull_secrets: tuple[str, ...] = ()
    """They matter only when a pull fails."""


# ------------------------------------------------------------------ messages


def not_found(kind: Kind, name: str) -> str:
    return f'{kind.lower()} "{name}" not found'


def no_variable(kind: Kind, namespace: str, name: str, key: str) -> str:
    return f"couldn't find key {key} in {kind} {namespace}/{name}"


def no_file(kind: Kind, key: str) -> str:
    if kind == "Secret":
        return f"references non-existent secret key: {key}"
    return f"configmap references non-existent config key: {key}"


def not_mounted(volume: str, cause: str) -> str:
    return f'MountVolume.SetUp failed for volume "{volume}" : {cause}'


# ------------------------------------------------------------------ references


def of_containers(pod: Pod) -> set[tuple[Kind, str]]:
    """The objects that the pod's containers take variables from, and its pull secrets."""
    pulls: set[tuple[Kind, str]] = {("Secret", secret.name) for secret in pod.spec.image_pull_secrets if secret.name}
    return pulls.union(*(set(_of_container(spec)) for spec in (*pod.spec.init_containers, *pod.spec.containers)))


def _of_container(spec: Container) -> Iterator[tuple[Kind, str]]:
    for source in spec.env_from:
        if source.config_map_ref is not None:
            yield "ConfigMap", source.config_map_ref.name or ""
        elif source.secret_ref is not None:
            yield "Secret", source.secret_ref.name or ""
    for value in (variable.value_from for variable in spec.env if variable.value_from is not None):
        keyed = _keyed(value)
        if keyed is not None:
            yield keyed[0], keyed[1].name or ""


def of_volumes(pod: Pod) -> set[tuple[Kind, str]]:
    """The objects that the pod's volumes are made of."""
    return {(kind, name) for volume in pod.spec.volumes for kind, name, _ in _filed(volume)}


def _keyed(source: EnvVarSource) -> tuple[Kind, _Keyed] | None:
    if source.config_map_key_ref is not None:
        return "ConfigMap", source.config_map_key_ref
    if source.secret_key_ref is not None:
        return "Secret", source.secret_key_ref
    return None


def _filed(volume: Volume) -> Iterator[tuple[Kind, str, _Filed]]:
    if volume.config_map is not None:
        yield "ConfigMap", volume.config_map.name or "", volume.config_map
    if volume.secret is not None:
        yield "Secret", volume.secret.secret_name or "", volume.secret
    for part in volume.projected.sources if volume.projected is not None else ():
        if part.config_map is not None:
            yield "ConfigMap", part.config_map.name or "", part.config_map
        if part.secret is not None:
            yield "Secret", part.secret.name or "", part.secret


# ------------------------------------------------------------------ what is missing


def missing(pod: Pod, keys: Keys, *, volumes: bool, bundles: Iterable[ClusterTrustBundle] = ()) -> Missing:
    """What the pod refers to and is not there; `volumes` are mounted once, before the first container begins."""
    containers = (*pod.spec.init_containers, *pod.spec.containers)
    causes = {
        spec.name: _config_error(spec, pod.metadata.namespace, keys) or creation_error(pod, spec) for spec in containers
    }
    return Missing(
        {name: cause for name, cause in causes.items() if cause},
        tuple(_mount_errors(pod.spec.volumes, keys, list(bundles))) if volumes else (),
        tuple(
            secret.name
            for secret in pod.spec.image_pull_secrets
            if secret.name and keys("Secret", secret.name, True) is None
        ),
    )


def _config_error(spec: Container, namespace: str, keys: Keys) -> str:
    """The first error, in the order in which a kubelet builds the environment."""
    for source in spec.env_from:
        if error := _from_error(source, keys):
            return error
    for variable in spec.env:
        keyed = _keyed(variable.value_from) if variable.value_from is not None and not variable.value else None
        if keyed is not None and (error := _key_error(*keyed, namespace, keys)):
            return error
    return ""


def _from_error(source: EnvFromSource, keys: Keys) -> str:
    kind: Kind = "ConfigMap" if source.config_map_ref is not None else "Secret"
    ref = source.config_map_ref or source.secret_ref
    if ref is None or ref.optional or keys(kind, ref.name or "", False) is not None:
        return ""
    return not_found(kind, ref.name or "")


def _key_error(kind: Kind, ref: _Keyed, namespace: str, keys: Keys) -> str:
    present, name = keys(kind, ref.name or "", False), ref.name or ""
    if ref.optional or (present is not None and ref.key in present):
        return ""
    return not_found(kind, name) if present is None else no_variable(kind, namespace, name, ref.key)


def _mount_errors(volumes: Iterable[Volume], keys: Keys, bundles: list[ClusterTrustBundle]) -> Iterator[str]:
    for volume in volumes:
        errors = dict.fromkeys(
            error for kind, name, part in _filed(volume) if (error := _file_error(kind, name, part, keys))
        )
        errors |= dict.fromkeys(error for part in _trusted(volume) if (error := trust_error(part, bundles)))
        if errors:
            yield not_mounted(volume.name, _aggregate(list(errors)))


def _file_error(kind: Kind, name: str, part: _Filed, keys: Keys) -> str:
    if part.optional:
        return ""
    present = keys(kind, name, True)
    if present is None:
        return not_found(kind, name)
    return next((no_file(kind, item.key) for item in part.items if item.key not in present), "")


def _trusted(volume: Volume) -> Iterator[ClusterTrustBundleProjection]:
    for part in volume.projected.sources if volume.projected is not None else ():
        if part.cluster_trust_bundle is not None:
            yield part.cluster_trust_bundle


def trusted_by(part: ClusterTrustBundleProjection, bundles: Iterable[ClusterTrustBundle]) -> list[ClusterTrustBundle]:
    """The bundles that a projection asks for: one by its name, or those of a signer that are selected; all with an
    empty selector, none without one."""
    if part.name is not None:
        return [bundle for bundle in bundles if bundle.metadata.name == part.name]
    if part.label_selector is None:
        return []
    matches = from_selector(part.label_selector).matches
    of_signer = (bundle for bundle in bundles if bundle.spec.signer_name == part.signer_name)
    return [bundle for bundle in of_signer if matches(bundle.metadata.labels)]


def trust_error(part: ClusterTrustBundleProjection, bundles: Iterable[ClusterTrustBundle]) -> str:
    """Upstream: GetTrustAnchorsByName, GetTrustAnchorsBySigner (pkg/kubelet/clustertrustbundle)."""
    if part.optional or trusted_by(part, bundles):
        return ""
    if part.name is not None:
        return f'while getting ClusterTrustBundle: clustertrustbundle.certificates.k8s.io "{part.name}" not found'
    return "combination of signerName and labelSelector matched zero ClusterTrustBundles"


def needs_bundles(pod: Pod) -> bool:
    return any(True for volume in pod.spec.volumes for _ in _trusted(volume))


def _aggregate(errors: Sequence[str]) -> str:
    """Upstream: Aggregate.Error (k8s.io/apimachinery/pkg/util/errors)."""
    return errors[0] if len(errors) == 1 else f"[{', '.join(errors)}]"
