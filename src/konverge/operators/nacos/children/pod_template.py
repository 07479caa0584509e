"""The pod template of a server, with its probes."""

from __future__ import annotations

from msgspec.structs import replace

from konverge.objects import LabelSelector, ObjectMeta
from konverge.objects.kinds.core_v1 import (
    Affinity,
    ConfigMapVolumeSource,
    Container,
    ContainerPort,
    HTTPGetAction,
    PodAffinityTerm,
    PodAntiAffinity,
    PodSpec,
    PodTemplateSpec,
    Probe,
    SecretVolumeSource,
    TopologySpreadConstraint,
    Volume,
    VolumeMount,
    WeightedPodAffinityTerm,
)
from konverge.operators.nacos import names
from konverge.operators.nacos.children.config import CUSTOM_KEY, FINAL_KEY, POSTGRES_CA
from konverge.operators.nacos.children.environment import environment
from konverge.operators.nacos.children.member_list import follow_list, list_volumes
from konverge.operators.nacos.children.mysql_job import check_container
from konverge.operators.nacos.children.mysql_tls import trust_mounts, trust_volumes
from konverge.operators.nacos.children.overlay import overlaid
from konverge.operators.nacos.children.security import pod_context, server_context, writable_volumes
from konverge.operators.nacos.children.server_tls import tls_mounts, tls_volumes
from konverge.operators.nacos.desired import Desired
from konverge.operators.nacos.spec import RESTRICTED

_DATA = "/home/nacos/data"
_CUSTOM = f"/home/nacos/init.d/{CUSTOM_KEY}"
_FINAL = f"/home/nacos/conf/{FINAL_KEY}"


def pod_template(desired: Desired, config_digest: str, secrets_digest: str) -> PodTemplateSpec:
    """The template includes digests of configuration and Secrets, so that a change of them is a new revision."""
    spec = desired.spec
    pod = PodSpec(
        containers=[_container(desired)],
        init_containers=[check_container(desired)] if desired.mysql_init else [],
        volumes=[*_volumes(desired), *list_volumes(desired)[0]],
        image_pull_secrets=spec.image_pull_secrets,
        affinity=spec.affinity or (_spread(desired) if desired.cluster else None),
        tolerations=spec.tolerations,
        node_selector=spec.node_selector,
        topology_spread_constraints=_constraints(desired),
        priority_class_name=spec.priority_class_name or None,
        security_context=pod_context(desired),
        # Servers never call Kubernetes, and a Service called nacos would fill their environment with NACOS_… variables.
        automount_service_account_token=False,
        enable_service_links=False,
    )
    standard = RESTRICTED if desired.restricted else ""
    marks = {names.CONFIG_DIGEST: config_digest, names.SECRETS_DIGEST: secrets_digest, names.POD_SECURITY: standard}
    annotations = {name: value for name, value in marks.items() if value}
    return PodTemplateSpec(
        metadata=ObjectMeta(labels=desired.child_labels, annotations=annotations),
        spec=overlaid(pod, spec.k8s_wrapper.pod_spec),
    )


def _container(desired: Desired) -> Container:
    """Named like the resource, as overlays expect it. It runs the image's own entry point."""
    container = Container(
        name=desired.name,
        image=desired.spec.image,
        env=environment(desired),
        ports=[ContainerPort(name=name, container_port=port, protocol="TCP") for name, port in _ports(desired).items()],
        resources=desired.spec.resources,
        volume_mounts=[*_mounts(desired), *list_volumes(desired)[1]],
        lifecycle=follow_list(desired),
        security_context=server_context(desired),
    )
    add_probes(container, desired)
    return container


def _ports(desired: Desired) -> dict[str, int]:
    left_out = () if desired.third or not desired.version.known else (names.CONSOLE,)
    return {name: port for name, port in names.PORTS.items() if name not in left_out}


def _mounts(desired: Desired) -> list[VolumeMount]:
    mounts = []
    if has_data_volume(desired):
        mounts.append(VolumeMount(name=names.DATA_VOLUME, mount_path=_DATA))
    if desired.renders:
        mounts.append(VolumeMount(name="final-config", mount_path=_FINAL, sub_path=FINAL_KEY))
    elif desired.spec.config:
        mounts.append(VolumeMount(name="config", mount_path=_CUSTOM, sub_path=CUSTOM_KEY))
    if desired.engine == "postgresql" and desired.spec.postgres.tls.ca_secret_ref is not None:
        mounts.append(VolumeMount(name="postgres-ca", mount_path=POSTGRES_CA, read_only=True))
    return [
        *mounts,
        *trust_mounts(desired),
        *tls_mounts(desired),
        *writable_volumes(desired, data=not has_data_volume(desired))[1],
    ]


def _volumes(desired: Desired) -> list[Volume]:
    volumes, volume = [], desired.spec.volume
    if volume.host_path is not None:
        volumes.append(Volume(name=names.DATA_VOLUME, host_path=volume.host_path))
    elif volume.empty_dir is not None:
        volumes.append(Volume(name=names.DATA_VOLUME, empty_dir=volume.empty_dir))
    if desired.renders:
        volumes.append(Volume(name="final-config", config_map=ConfigMapVolumeSource(name=desired.final_config)))
    elif desired.spec.config:
        volumes.append(Volume(name="config", config_map=ConfigMapVolumeSource(name=desired.name)))
    ca = desired.spec.postgres.tls.ca_secret_ref
    if desired.engine == "postgresql" and ca is not None:
        volumes.append(Volume(name="postgres-ca", secret=SecretVolumeSource(secret_name=ca.name)))
    return [
        *volumes,
        *trust_volumes(desired),
        *tls_volumes(desired),
        *writable_volumes(desired, data=not has_data_volume(desired))[0],
    ]


def has_claim(desired: Desired) -> bool:
    """Whether each server has a volume claim of its own."""
    volume = desired.spec.volume
    claimed = volume.enabled or volume.volume_claim_template is not None or volume.persistent_volume_size is not None
    return claimed and volume.host_path is None and volume.empty_dir is None


def has_data_volume(desired: Desired) -> bool:
    volume = desired.spec.volume
    return volume.host_path is not None or volume.empty_dir is not None or has_claim(desired)


def _spread(desired: Desired) -> Affinity:
    """Servers of one cluster on different nodes, where there are enough nodes."""
    term = PodAffinityTerm(
        label_selector=LabelSelector(match_labels=names.selector(desired.name)), topology_key="kubernetes.io/hostname"
    )
    preferred = WeightedPodAffinityTerm(weight=100, pod_affinity_term=term)
    return Affinity(pod_anti_affinity=PodAntiAffinity(preferred_during_scheduling_ignored_during_execution=[preferred]))


def _constraints(desired: Desired) -> list[TopologySpreadConstraint]:
    """A constraint without a selector would count no pods, and so spread nothing."""
    servers = LabelSelector(match_labels=names.selector(desired.name))
    return [
        constraint if constraint.label_selector is not None else replace(constraint, label_selector=servers)
        for constraint in desired.spec.topology_spread_constraints
    ]


def add_probes(container: Container, desired: Desired) -> None:
    """The user's own, else those that fit the version. A start may take minutes when three start together.

    Only some of the health paths of Nacos are useful to the kubelet: others answer 200 with an error in the body.
    """
    spec, port, base = desired.spec, *_path(desired)
    liveness, readiness = (base, base) if not desired.version.known else (f"{base}/liveness", f"{base}/readiness")
    container.liveness_probe = spec.liveness_probe or _probe(liveness, port, period=10, failures=6)
    container.readiness_probe = spec.readiness_probe or _probe(readiness, port, period=5, failures=3)
    if spec.startup_probe is not None:
        container.startup_probe = spec.startup_probe
    elif spec.liveness_probe is None:
        container.startup_probe = _probe(liveness, port, period=5, failures=60)


def _path(desired: Desired) -> tuple[int, str]:
    if desired.third:
        return names.PORTS[names.CONSOLE], "/v3/console/health"
    if desired.version.known:
        return names.PORTS[names.CLIENT], "/nacos/v1/console/health"
    return names.PORTS[names.CLIENT], "/nacos/actuator/health"  # every line has it, though it does not check the quorum


def _probe(path: str, port: int, *, period: int, failures: int) -> Probe:
    return Probe(
        http_get=HTTPGetAction(path=path, port=port, scheme="HTTP"),
        period_seconds=period,
        timeout_seconds=4,
        failure_threshold=failures,
    )
