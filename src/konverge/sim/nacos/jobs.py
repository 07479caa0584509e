"""The Jobs of backups, on simulated databases: what their scripts do, without the programs that they call.

A Job's pod does its work when its last container runs, and ends with the message that the program would write. The data
is in the pod's volume, and lives as long as that, or in a bucket.
"""

from __future__ import annotations

import copy
from collections.abc import Callable

import msgspec
from msgspec.structs import replace

from konverge.objects.kinds.core_v1 import Container, Pod
from konverge.operators.nacos.backup.failures import Failure
from konverge.operators.nacos.backup.manifest import SUFFIX, check_data, read_manifest
from konverge.sim.databases import Content, Kept, SimulatedDatabase, SimulatedDatabases
from konverge.sim.kubelet.agent import Kubelet
from konverge.sim.kubelet.behaviour import RUNS, SUCCEEDS, Behaviour
from konverge.sim.kubelet.containers import Mode
from konverge.sim.kubelet.machine import PodMachine
from konverge.sim.nacos.buckets import SimulatedStorage, StoredFile
from konverge.sim.nacos.configs import Configs
from konverge.sim.nacos.disk import Disks, Place, Read
from konverge.sim.nacos.settings import environment, secret_texts

COMPONENTS = ("nacos-backup", "nacos-restore", "nacos-delete", "nacos-inspect")
"""Of the pods, by their label."""


class JobFailure(Exception):
    """The script ends with an error; the text is the end of its log."""

    def __init__(self, text: str, code: int = 1) -> None:
        super().__init__(text)
        self.code = code


class _Work(msgspec.Struct):
    """Of one pod."""

    env: dict[str, str]
    files: dict[str, StoredFile]
    """Of the volume, or of the bucket."""


class SimulatedJobs(msgspec.Struct):
    """All of a cluster, as the kubelet directs them."""

    kubelet: Kubelet
    databases: SimulatedDatabases | None
    disks: Disks
    read: Read
    serving: Callable[[str], Configs | None]
    """What the servers behind the name of a Service hold; None: none answers."""
    duration: float = 5.0
    """Seconds that a Job works."""
    stop: float = 0.0
    """Seconds that a pod takes to end when it is asked to."""
    failure: str = ""
    """With this message Jobs fail before they have changed anything, such as `No space left on device`."""
    broken_off: int = 0
    """Restores end with this exit code after they have dropped the tables, or have written the namespaces."""
    restoring: Callable[[dict[str, str]], None] = lambda env: None
    """Called by each restore before it changes the database, with its environment."""
    cut_off: int = 0
    """So many backups end after the data, and before its manifest."""
    silent: bool = False
    """Jobs succeed, and their messages are lost."""
    volumes: dict[Place, dict[str, StoredFile]] = msgspec.field(default_factory=dict)
    """Files by the volume that they are in, and by their path below its mount."""
    storage: SimulatedStorage = msgspec.field(default_factory=SimulatedStorage)
    """What is stored in buckets."""
    done: list[str] = msgspec.field(default_factory=list)
    """The components of the pods that have done their work, in order."""
    _ends: dict[str, Behaviour] = msgspec.field(default_factory=dict)
    """By the uid of a pod: how it ends."""

    def direct(self, pod: Pod, scripts: dict[str, Behaviour]) -> dict[str, Behaviour]:
        container = self._container(pod)
        if container is None or scripts.get(container.name) != SUCCEEDS:
            return scripts
        return scripts | {container.name: replace(self._ends.get(pod.metadata.uid, RUNS), stop=self.stop)}

    def lived(self, machine: PodMachine, address: str) -> None:
        pod = machine.pod
        container, uid = self._container(pod), pod.metadata.uid
        if container is None or uid in self._ends or machine.mains[container.name].mode is not Mode.RUNNING:
            return
        try:
            message = self._work(pod, container, address)
            self._ends[uid] = replace(SUCCEEDS, exit_after=self.duration, message="" if self.silent else message)
        except JobFailure as error:
            self._ends[uid] = replace(SUCCEEDS, exit_code=error.code, exit_after=self.duration, message=str(error))
        self.kubelet.look_at(pod)

    def forgotten(self, uid: str) -> None:
        self._ends.pop(uid, None)

    def _container(self, pod: Pod) -> Container | None:
        component = pod.metadata.labels.get("component")
        real = self.kubelet.runtime.lives(pod) if self.kubelet.runtime is not None else ()
        ours = (c for c in pod.spec.containers if c.name == component and component in COMPONENTS)
        return next((container for container in ours if container.name not in real), None)

    # -------------------------------------------------------------- the scripts

    def _work(self, pod: Pod, container: Container, address: str) -> str:
        """The termination message. Raises JobFailure."""
        env: dict[str, str] = {}
        for each in (*pod.spec.init_containers, container):
            env |= environment(pod, each, address, self.read)
        if self.failure:
            raise JobFailure(self.failure)
        actions: dict[str, Callable[[_Work], str]] = {
            "nacos-backup": self._back_up,
            "nacos-restore": self._restore,
            "nacos-delete": self._delete,
            "nacos-inspect": self._inspect,
        }
        try:
            message = actions[container.name](self._placed(pod, env))
        except Failure as failure:
            raise JobFailure(failure.encode()) from None
        self.done.append(container.name)
        return message

    def _placed(self, pod: Pod, env: dict[str, str]) -> _Work:
        """With the files that the pod sees. Raises Failure."""
        if "S3_BUCKET" in env:
            secret = next(volume.secret for volume in pod.spec.volumes if volume.name == "s3-credentials")
            texts = secret_texts(self.read, pod.metadata.namespace, secret.secret_name or "" if secret else "")
            return _Work(env | {"FILE": env["KEY"], "FILES": env["KEYS"]}, self.storage.bucket(env, texts))
        mounted = next(volume for volume in pod.spec.volumes if volume.persistent_volume_claim is not None)
        return _Work(env, self.volumes.setdefault(self.disks.volume(pod, mounted), {}))

    def _back_up(self, work: _Work) -> str:
        content = self._held(work) if "NACOS_ADDRESS" in work.env else copy.deepcopy(self._database(work.env).content)
        stored = StoredFile(content, repr(content).encode())
        result = {"size": len(stored.data), "sha256": stored.sha256}
        manifest = msgspec.json.decode(work.env["MANIFEST"], type=dict) | result
        work.files.pop(work.env["FILE"] + SUFFIX, None)
        work.files[work.env["FILE"]] = stored
        if self.cut_off:
            self.cut_off -= 1
            raise JobFailure("Killed", 137)
        work.files[work.env["FILE"] + SUFFIX] = StoredFile(Content(), msgspec.json.encode(manifest))
        return msgspec.json.encode(result).decode()

    def _inspect(self, work: _Work) -> str:
        path = work.env["FILE"]
        beside, data = work.files.get(path + SUFFIX), work.files.get(path)
        if beside is None or data is None:
            raise Failure(
                "ManifestMissing" if beside is None else "DataNotFound", f"there is no {path} with a manifest"
            )
        manifest = read_manifest(beside.data, path + SUFFIX)
        check_data(len(data.data), data.sha256, manifest, path)
        return msgspec.json.encode(manifest).decode()

    def _restore(self, work: _Work) -> str:
        env = work.env
        stored = work.files.get(env["FILE"])
        if stored is None:
            raise JobFailure(f"there is no file {env['FILE']} in the volume")
        if stored.sha256 != env["SHA256"]:
            raise JobFailure(f"{env['FILE']} is not what was stored: its sha256 is {stored.sha256}")
        if "NACOS_ADDRESS" in env:
            return self._publish(work, stored.content)
        database = self._database(env)
        holds = database.content.configs or database.content.kept.namespaces
        if holds and env["OVERWRITE"] != "true":
            raise JobFailure("the database holds namespaces or configurations; overwrite: true replaces them")
        self.restoring(work.env)
        if self.broken_off:
            database.content = Content()
            raise JobFailure("ERROR 2013: Lost connection to server during query", self.broken_off)
        database.content = copy.deepcopy(stored.content)
        return ""

    def _servers(self, work: _Work) -> Configs:
        configs = self.serving(work.env["NACOS_ADDRESS"])
        if configs is None:
            raise JobFailure(f"{work.env['NACOS_ADDRESS']}: connection refused")
        return configs

    def _held(self, work: _Work) -> Content:
        """What the API of the servers shows: no users, no permissions, no history."""
        configs = self._servers(work)
        contents = {key: configs.read(key) or "" for key in configs.stored()}
        kept = Kept(namespaces=dict(configs.kept.namespaces), types=dict(configs.kept.types))
        return Content(configs=contents, kept=kept)

    def _publish(self, work: _Work, content: Content) -> str:
        configs = self._servers(work)
        if (configs.stored() or configs.kept.namespaces) and work.env["OVERWRITE"] != "true":
            raise JobFailure("the Nacos holds namespaces or configurations; overwrite: true writes over them")
        configs.change(lambda data: data.kept.namespaces.update(content.kept.namespaces))
        if self.broken_off:
            raise JobFailure("the servers closed the connection", self.broken_off)
        for key, text in content.configs.items():
            configs.write(key, text, content.kept.types.get(key, ""))
        return ""

    def _delete(self, work: _Work) -> str:
        for path in work.env["FILES"].split():
            for name in (path, path + SUFFIX):
                work.files.pop(name, None)
        return ""

    def _database(self, env: dict[str, str]) -> SimulatedDatabase:
        """The one that the programs of a database would connect to. Raises JobFailure."""
        prefix = "PG" if "PGHOST" in env else "MYSQL_"
        names = ("DATABASE", "USER", "PASSWORD") if prefix == "PG" else ("DB", "USER", "PASS")
        host, port = env[f"{prefix}HOST"], int(env[f"{prefix}PORT"])
        database, user, password = (env.get(f"{prefix}{name}", "") for name in names)
        server = self.databases.servers.get((host, port)) if self.databases is not None else None
        if server is None or server.down:
            raise JobFailure(f'connection to server at "{host}", port {port} failed: Connection refused')
        mode = env.get("PGSSLMODE") or env.get("MYSQL_TLS", "prefer")
        if server.insists_on_tls and mode.lower().endswith(("disable", "disabled")):
            raise JobFailure(f'connection to server at "{host}", port {port} failed: the server insists on TLS')
        if not server.tls and not mode.lower().endswith(("disable", "disabled", "prefer", "preferred")):
            raise JobFailure(f'connection to server at "{host}", port {port} failed: the server does not support TLS')
        if server.users.get(user) != password:
            raise JobFailure(f'password authentication failed for user "{user}"')
        if database not in server.databases:
            raise JobFailure(f'database "{database}" does not exist')
        return server.databases[database]
