"""The list of members as a file that changes under running servers: a cluster is scaled without restarts.

The kubelet updates a mounted ConfigMap in place (but not one that is mounted by `subPath`), within a minute or so.
Nacos reads `conf/cluster.conf` again when a file of this name is created or changed there (FileConfigMemberLookup). The
update of a ConfigMap does neither, as it exchanges a link in the folder of the mount. So a loop in the container, begun
by its `postStart` hook, compares the mounted list with the last one, and writes another one to `conf/cluster.conf`: in
one piece, because a server that reads half a list removes the other half from its raft groups.

The image's own entry point is untouched: it writes the first list, from NACOS_SERVERS, which the kubelet takes from the
same ConfigMap when the container starts. Where the loop cannot run, the operator restarts servers that do not follow.
"""

from __future__ import annotations

from konverge.objects.kinds.core_v1 import (
    ConfigMapVolumeSource,
    ExecAction,
    KeyToPath,
    Lifecycle,
    LifecycleHandler,
    Pod,
    Volume,
    VolumeMount,
)
from konverge.operators.nacos.children.config import LIST_KEY
from konverge.operators.nacos.desired import Desired

_NAME = "members"
_FOLDER = "/home/nacos/members"
# Nothing of the hook may keep its output open or fail: the kubelet would wait for it, or kill the container.
FOLLOW = f"""\
seen=$NACOS_SERVERS
while sleep 2; do
  list=$(cat {_FOLDER}/{LIST_KEY}) || continue
  [ -n "$list" ] && [ "$list" != "$seen" ] || continue
  printf '%s\\n' $list > /home/nacos/conf/members.new &&
    mv -f /home/nacos/conf/members.new /home/nacos/conf/cluster.conf && seen=$list
done < /dev/null > /dev/null 2>&1 &
"""


def list_volumes(desired: Desired) -> tuple[list[Volume], list[VolumeMount]]:
    if not desired.lists_by_file:
        return [], []
    items = [KeyToPath(key=LIST_KEY, path=LIST_KEY)]
    source = ConfigMapVolumeSource(name=desired.name, items=items)
    return [Volume(name=_NAME, config_map=source)], [VolumeMount(name=_NAME, mount_path=_FOLDER, read_only=True)]


def reads_list(pod: Pod) -> bool:
    """Whether a pod starts with the list of the ConfigMap: without it, its container could not start again."""
    variables = (variable for container in pod.spec.containers for variable in container.env)
    return any(variable.name == "NACOS_SERVERS" and variable.value_from is not None for variable in variables)


def follow_list(desired: Desired) -> Lifecycle | None:
    if not desired.lists_by_file:
        return None
    return Lifecycle(post_start=LifecycleHandler(exec=ExecAction(command=["sh", "-c", FOLLOW])))
