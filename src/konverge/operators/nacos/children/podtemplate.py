"""The pod of a server."""

from __future__ import annotations

from konverge.objects import LabelSelector, ObjectMeta
from konverge.objects.kinds.core_v1 import (
    Affinity,
    ConfigMapVolumeSource,
    Container,
    ContainerPort,
    PodAffinityTerm,
    PodAntiAffinity,
    PodSpec,
    PodTemplateSpec,
    SeccompProfile,
    SecretVolumeSource,
    SecurityContext,
    Volume,
    VolumeMount,
    WeightedPodAffinityTerm,
)
from konverge.operators.nacos import names
from konverge.operators.nacos.children.configmaps import CUSTOM_KEY, FINAL_KEY
from konverge.operators.nacos.children.environment import environment
from konverge.operators.nacos.children.metadata import labels
from konverge.operators.nacos.children.mysqljob import check_container
from konverge.operators.nacos.children.overlay import overlaid
from konverge.operators.nacos.children.probes import add_probes
from konverge.operators.nacos.children.properties import POSTGRES_CA
from konverge.operators.nacos.wish import Wish

_DATA = "/home/nacos/data"
_CUSTOM = f"/home/nacos/init.d/{CUSTOM_KEY}"
_FINAL = f"/home/nacos/conf/{FINAL_KEY}"


def pod_template(wish: Wish, config_digest: str, secrets_digest: str) -> PodTemplateSpec:
    """The template; digests of configuration and Secrets are in it, so that new ones are a new revision."""
    spec = wish.spec
    pod = PodSpec(
        containers=[_container(wish)],
        init_containers=[check_container(wish)] if wish.mysql_init else [],
        volumes=_volumes(wish),
        image_pull_secrets=spec.image_pull_secrets,
        affinity=spec.affinity or (_apart(wish) if wish.cluster else None),
        tolerations=spec.tolerations,
        node_selector=spec.node_selector,
        security_context=spec.pod_security_context,
        # Servers never ask Kubernetes anything, and a Service called nacos would fill their environment with NACOS_….
        automount_service_account_token=False,
        enable_service_links=False,
    )
    digests = {names.CONFIG_DIGEST: config_digest, names.SECRETS_DIGEST: secrets_digest}
    annotations = {name: value for name, value in digests.items() if value}
    return PodTemplateSpec(
        metadata=ObjectMeta(labels=labels(wish), annotations=annotations),
        spec=overlaid(pod, spec.k8s_wrapper.pod_spec),
    )


def _container(wish: Wish) -> Container:
    """Named like the resource, as overlays expect it. The image's own entry point: no shell glue, no waiting loops."""
    container = Container(
        name=wish.name,
        image=wish.spec.image,
        env=environment(wish),
        ports=[ContainerPort(name=name, container_port=port, protocol="TCP") for name, port in _ports(wish).items()],
        resources=wish.spec.resources,
        volume_mounts=_mounts(wish),
        security_context=wish.spec.security_context or _restricted(),
    )
    add_probes(container, wish)
    return container


def _ports(wish: Wish) -> dict[str, int]:
    left_out = () if wish.third or not wish.version.known else (names.CONSOLE,)
    return {name: port for name, port in names.PORTS.items() if name not in left_out}


def _restricted() -> SecurityContext:
    """As little as images that run as root can live with."""
    return SecurityContext(allow_privilege_escalation=False, seccomp_profile=SeccompProfile(type="RuntimeDefault"))


def _mounts(wish: Wish) -> list[VolumeMount]:
    mounts = []
    if has_data_volume(wish):
        mounts.append(VolumeMount(name=names.DATA_VOLUME, mount_path=_DATA))
    if wish.renders:
        mounts.append(VolumeMount(name="final-config", mount_path=_FINAL, sub_path=FINAL_KEY))
    elif wish.spec.config:
        mounts.append(VolumeMount(name="config", mount_path=_CUSTOM, sub_path=CUSTOM_KEY))
    if wish.engine == "postgresql" and wish.spec.postgres.tls.ca_secret_ref is not None:
        mounts.append(VolumeMount(name="postgres-ca", mount_path=POSTGRES_CA, read_only=True))
    return mounts


def _volumes(wish: Wish) -> list[Volume]:
    volumes, wanted = [], wish.spec.volume
    if wanted.host_path is not None:
        volumes.append(Volume(name=names.DATA_VOLUME, host_path=wanted.host_path))
    elif wanted.empty_dir is not None:
        volumes.append(Volume(name=names.DATA_VOLUME, empty_dir=wanted.empty_dir))
    if wish.renders:
        volumes.append(Volume(name="final-config", config_map=ConfigMapVolumeSource(name=wish.final_config)))
    elif wish.spec.config:
        volumes.append(Volume(name="config", config_map=ConfigMapVolumeSource(name=wish.name)))
    ca = wish.spec.postgres.tls.ca_secret_ref
    if wish.engine == "postgresql" and ca is not None:
        volumes.append(Volume(name="postgres-ca", secret=SecretVolumeSource(secret_name=ca.name)))
    return volumes


def has_claim(wish: Wish) -> bool:
    """Whether each server has a volume claim of its own."""
    wanted = wish.spec.volume
    claimed = wanted.enabled or wanted.volume_claim_template is not None or wanted.persistent_volume_size is not None
    return claimed and wanted.host_path is None and wanted.empty_dir is None


def has_data_volume(wish: Wish) -> bool:
    wanted = wish.spec.volume
    return wanted.host_path is not None or wanted.empty_dir is not None or has_claim(wish)


def _apart(wish: Wish) -> Affinity:
    """Servers of one cluster on different nodes, where there are enough."""
    term = PodAffinityTerm(
        label_selector=LabelSelector(match_labels=names.selector(wish.name)), topology_key="kubernetes.io/hostname"
    )
    preferred = WeightedPodAffinityTerm(weight=100, pod_affinity_term=term)
    return Affinity(pod_anti_affinity=PodAntiAffinity(preferred_during_scheduling_ignored_during_execution=[preferred]))
