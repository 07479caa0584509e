"""MySQL: the Job that creates database and tables, and the container that lets servers wait for them."""

from __future__ import annotations

from konverge.objects import ObjectMeta
from konverge.objects.kinds.batch_v1 import Job, JobSpec
from konverge.objects.kinds.core_v1 import (
    ConfigMapKeySelector,
    Container,
    EnvVar,
    EnvVarSource,
    PodSpec,
    PodTemplateSpec,
)
from konverge.operators.nacos import names
from konverge.operators.nacos.children.config import SCRIPT_KEY
from konverge.operators.nacos.children.environment import JOB_VARIABLES, mysql_variables
from konverge.operators.nacos.children.mysql_tls import (
    CLIENT_OPTIONS,
    client_variables,
    trust_mounts,
    trust_volumes,
)
from konverge.operators.nacos.children.overlay import overlaid
from konverge.operators.nacos.children.security import helper_context, pod_context
from konverge.operators.nacos.desired import Desired

SCRIPT_DIGEST = "nacos.io/script-digest"

# The password is in MYSQL_PWD: on a command line every process of the node could read it.
_LOGIN = 'export MYSQL_PWD="$MYSQL_PASS"; set -e; at="-h $MYSQL_HOST -P $MYSQL_PORT -u $MYSQL_USER"'
_PING = f"{_LOGIN}; until mysqladmin $at ping; do sleep 2; done"
_CREATE = f'{_LOGIN}; mysql $at -e "CREATE DATABASE IF NOT EXISTS \\`$MYSQL_DB\\` DEFAULT CHARACTER SET utf8mb4"'
_INIT = f'{_LOGIN}; printf "%s" "$SQL_SCRIPT" | mysql $at "$MYSQL_DB"'
_CHECK = f'{_LOGIN}; until mysql $at -e "SELECT 1 FROM users LIMIT 1" "$MYSQL_DB"; do sleep 2; done'  # noqa: S608 - run by a shell


def mysql_init_job(desired: Desired, script_digest: str) -> Job:
    """Safe to run again: the script only creates what is missing."""
    pod = PodSpec(
        restart_policy="Never",
        init_containers=[
            _container(desired, "mysql-ping-database", _PING),
            _container(desired, "mysql-create-database", _CREATE),
        ],
        containers=[_container(desired, "mysql-sql-init", _INIT, script=True)],
        volumes=trust_volumes(desired),
        image_pull_secrets=desired.spec.image_pull_secrets,
        tolerations=desired.spec.tolerations,
        node_selector=desired.spec.node_selector,
        priority_class_name=desired.spec.priority_class_name or None,
        automount_service_account_token=False,
        security_context=pod_context(desired) if desired.restricted else None,
    )
    name = names.mysql_init(desired.name)
    return Job(
        metadata=desired.metadata(name, extra={SCRIPT_DIGEST: script_digest}),
        spec=JobSpec(
            backoff_limit=6,
            template=PodTemplateSpec(
                # Not the servers' labels: neither Services nor the StatefulSet may select its pod.
                metadata=ObjectMeta(labels={"app": name, "middleware": "nacos", "component": "mysql-init"}),
                spec=overlaid(pod, _for_job(desired)),
            ),
        ),
    )


def _for_job(desired: Desired) -> dict[str, object]:
    """The part of the overlay that is about pods in general; the servers' containers and volumes are not the Job's."""
    ours = ("containers", "initContainers", "volumes", "restartPolicy")
    return {key: value for key, value in desired.spec.k8s_wrapper.pod_spec.items() if key not in ours}


def check_container(desired: Desired) -> Container:
    """Before a server: waits until the tables exist."""
    return _container(desired, "mysql-check-database", _CHECK)


def _container(desired: Desired, name: str, command: str, *, script: bool = False) -> Container:
    env = [*mysql_variables(desired, JOB_VARIABLES), *client_variables(desired)]
    if desired.spec.database.tls is not None:
        command = command.replace(_LOGIN, f'{CLIENT_OPTIONS}{_LOGIN}; at="$at $tls"', 1)
    if script:
        source = ConfigMapKeySelector(name=names.mysql_init(desired.name), key=SCRIPT_KEY)
        env.append(EnvVar(name="SQL_SCRIPT", value_from=EnvVarSource(config_map_key_ref=source)))
    return Container(
        name=name,
        image=desired.spec.mysql_init_image,
        command=["/bin/sh", "-c", command],
        env=env,
        volume_mounts=trust_mounts(desired),
        security_context=helper_context(desired),
    )
