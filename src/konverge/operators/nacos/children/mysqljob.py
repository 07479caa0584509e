"""MySQL: the Job that makes database and tables, and the container that lets servers wait for them."""

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
from konverge.operators.nacos.children.configmaps import SCRIPT_KEY
from konverge.operators.nacos.children.environment import JOB_VARIABLES, mysql_variables
from konverge.operators.nacos.children.metadata import metadata
from konverge.operators.nacos.children.overlay import overlaid
from konverge.operators.nacos.wish import Wish

SCRIPT_DIGEST = "nacos.io/script-digest"

# The password goes by MYSQL_PWD: on a command line everybody on the node could read it.
_LOGIN = 'export MYSQL_PWD="$MYSQL_PASS"; set -e; at="-h $MYSQL_HOST -P $MYSQL_PORT -u $MYSQL_USER"'
_PING = f"{_LOGIN}; until mysqladmin $at ping; do sleep 2; done"
_CREATE = f'{_LOGIN}; mysql $at -e "CREATE DATABASE IF NOT EXISTS \\`$MYSQL_DB\\` DEFAULT CHARACTER SET utf8mb4"'
_INIT = f'{_LOGIN}; printf "%s" "$SQL_SCRIPT" | mysql $at "$MYSQL_DB"'
_CHECK = f'{_LOGIN}; until mysql $at -e "SELECT 1 FROM users LIMIT 1" "$MYSQL_DB"; do sleep 2; done'  # noqa: S608 - run by a shell


def mysql_init_job(wish: Wish, script_digest: str) -> Job:
    """Safe to run again: the script only makes what is missing."""
    pod = PodSpec(
        restart_policy="Never",
        init_containers=[
            _container(wish, "mysql-ping-database", _PING),
            _container(wish, "mysql-create-database", _CREATE),
        ],
        containers=[_container(wish, "mysql-sql-init", _INIT, script=True)],
        image_pull_secrets=wish.spec.image_pull_secrets,
        tolerations=wish.spec.tolerations,
        node_selector=wish.spec.node_selector,
        automount_service_account_token=False,
    )
    name = names.mysql_init(wish.name)
    return Job(
        metadata=metadata(wish, name, extra={SCRIPT_DIGEST: script_digest}),
        spec=JobSpec(
            backoff_limit=6,
            template=PodTemplateSpec(
                # Not the servers' labels: neither Services nor the StatefulSet may take its pod for one of them.
                metadata=ObjectMeta(labels={"app": name, "middleware": "nacos", "component": "mysql-init"}),
                spec=overlaid(pod, _for_job(wish)),
            ),
        ),
    )


def _for_job(wish: Wish) -> dict[str, object]:
    """Of the overlay, what is about pods in general; the servers' containers and volumes are not the Job's."""
    ours = ("containers", "initContainers", "volumes", "restartPolicy")
    return {key: value for key, value in wish.spec.k8s_wrapper.pod_spec.items() if key not in ours}


def check_container(wish: Wish) -> Container:
    """In front of a server: waits until the tables are there."""
    return _container(wish, "mysql-check-database", _CHECK)


def _container(wish: Wish, name: str, command: str, *, script: bool = False) -> Container:
    env = mysql_variables(wish, JOB_VARIABLES)
    if script:
        source = ConfigMapKeySelector(name=names.mysql_init(wish.name), key=SCRIPT_KEY)
        env.append(EnvVar(name="SQL_SCRIPT", value_from=EnvVarSource(config_map_key_ref=source)))
    return Container(name=name, image=wish.spec.mysql_init_image, command=["/bin/sh", "-c", command], env=env)
