"""Volumes on this machine: the types of host paths, and limits of what an emptyDir may hold."""

from __future__ import annotations

import os
import re
import socket
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from konverge.objects.codec import from_dict
from konverge.objects.kinds.core_v1 import Pod
from konverge.sim.processes import host_paths, local_storage
from konverge.sim.processes.disk import MountError
from tests.sim.processes.support import SCRIPT, output, process_cluster, script, until
from tests.sim.processes.test_pods import said

pytestmark = pytest.mark.spec("S-59")


# ------------------------------------------------------------------ host paths


def things(folder: Path) -> dict[str, Path]:
    """Something of each type but devices."""
    (folder / "folder").mkdir()
    (folder / "file").write_text("text")
    with socket.socket(socket.AF_UNIX) as sock:
        sock.bind(os.path.relpath(folder / "socket"))
    return {"Directory": folder / "folder", "File": folder / "file", "Socket": folder / "socket"}


def test_what_is_there_has_to_be_of_the_type(tmp_path: Path) -> None:
    found = {**things(tmp_path), "CharDevice": Path("/dev/null")}
    names = {"Directory": "directory", "File": "file", "Socket": "socket file", "CharDevice": "character device"}
    for wanted, name in names.items():
        for kind, path in found.items():
            if kind == wanted:
                host_paths.provide(path, wanted)
            else:
                message = f"hostPath type check failed: {path} is not a {name}, it's a {kind}"
                with pytest.raises(MountError, match=f"^{re.escape(message)}$"):
                    host_paths.provide(path, wanted)
    with pytest.raises(MountError, match="is not a block device, it's a CharDevice"):
        host_paths.provide(Path("/dev/null"), "BlockDevice")


def test_what_is_not_there_is_refused_made_or_left_to_the_container(tmp_path: Path) -> None:
    place = tmp_path / "none"
    for kind in ("Directory", "File", "Socket", "CharDevice", "BlockDevice"):
        with pytest.raises(MountError, match=f'unable to determine its type: path "{place}" does not exist'):
            host_paths.provide(place, kind)
    host_paths.provide(place, "")
    assert not place.exists()
    host_paths.provide(tmp_path / "a" / "b", "DirectoryOrCreate")
    host_paths.provide(tmp_path / "a" / "b", "DirectoryOrCreate")
    assert (tmp_path / "a" / "b").stat().st_mode & 0o777 == 0o755
    host_paths.provide(tmp_path / "new", "FileOrCreate")
    assert (tmp_path / "new").read_text() == ""
    with pytest.raises(MountError, match="cannot be made: No such file"):
        host_paths.provide(tmp_path / "c" / "new", "FileOrCreate")


def test_what_is_there_already_is_not_made_anew(tmp_path: Path) -> None:
    found = things(tmp_path)
    host_paths.provide(found["File"], "FileOrCreate")
    assert found["File"].read_text() == "text"
    with pytest.raises(MountError, match="is not a directory, it's a File"):
        host_paths.provide(found["File"], "DirectoryOrCreate")


async def test_a_pod_gets_a_folder_that_was_not_there_and_is_told_of_one_that_is_none(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)  # as root, processes are other users
    (tmp_path / "file").write_text("")
    text = "import sys; open(sys.argv[1] + '/note', 'w').write('left'); print('done')"
    command = (*SCRIPT.command, text, "{mount:/host}")
    rule = replace(SCRIPT, image="*", host_paths=(str(tmp_path),), command=command)

    def pod(name: str, path: str) -> Pod:
        source = {"path": str(tmp_path / path), "type": "DirectoryOrCreate"}
        volumes = {"volumes": [{"name": "host", "hostPath": source}]}
        return script(name, "", volumeMounts=[{"name": "host", "mountPath": "/host"}], pod=volumes)

    async with process_cluster(rule) as cluster:
        assert await output(cluster, pod("good", "new/folder")) == ["done"]
        assert (tmp_path / "new/folder/note").read_text() == "left"
        await cluster.client.create(pod("bad", "file"))
        assert "is not a directory, it's a File" in await said(cluster, "bad", "FailedMount")


# ------------------------------------------------------------------ limits


def limited(**volumes: Any) -> Pod:
    listed = [{"name": name, "emptyDir": source} for name, source in volumes.items()]
    return from_dict(Pod, {"metadata": {"name": "web"}, "spec": {"volumes": listed, "containers": []}})


def test_which_volumes_have_a_limit() -> None:
    pod = limited(a={"sizeLimit": "1Mi"}, b={}, c={"medium": "Memory", "sizeLimit": "2Mi"}, d={"sizeLimit": "0"})
    assert {name: int(limit) for name, limit in local_storage.limits(pod).items()} == {"a": 1 << 20, "c": 2 << 20}


def test_what_a_folder_holds_is_counted_once_and_not_beyond_it(tmp_path: Path) -> None:
    folder, other = tmp_path / "folder", tmp_path / "other"
    other.write_bytes(os.urandom(1 << 20))
    (folder / "deep").mkdir(parents=True)
    (folder / "link").symlink_to(other)
    (folder / "deep" / "file").write_bytes(os.urandom(100_000))
    before = local_storage.used(folder)
    assert 100_000 <= before < 1 << 20
    (folder / "again").hardlink_to(folder / "deep" / "file")
    assert local_storage.used(folder) == before
    (tmp_path / "way").symlink_to(folder)
    assert local_storage.used(tmp_path / "way") == before


@pytest.mark.parametrize("medium", ["", "Memory"])
async def test_a_pod_that_writes_too_much_is_evicted(medium: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_storage, "PERIOD", 0.01)
    text = "import os, sys, time; open(sys.argv[1] + '/big', 'wb').write(os.urandom(1 << 20)); time.sleep(100000)"
    rule = replace(SCRIPT, image="*", command=(*SCRIPT.command, text, "{mount:/cache}"))
    volume = {"name": "cache", "emptyDir": {"medium": medium, "sizeLimit": "512Ki"}}
    mounts = [{"name": "cache", "mountPath": "/cache"}]
    async with process_cluster(rule) as cluster:
        await cluster.client.create(script("big", "", volumeMounts=mounts, pod={"volumes": [volume]}))
        pod = await until(cluster.client, "big", lambda pod: pod.status.phase == "Failed")
        expected = 'Usage of EmptyDir volume "cache" exceeds the limit "512Ki". '
        assert (pod.status.reason, pod.status.message) == ("Evicted", expected)
        assert await said(cluster, "big", "Evicted") == expected
