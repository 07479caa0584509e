"""Images from folders and archives: what they become on disk, what they say of their containers, and where an archive
that means harm does not get."""

from __future__ import annotations

import hashlib
import io
import json
import os
import stat
import tarfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from konverge.sim.processes.images import Image, Images, Settings
from konverge.sim.processes.layers import ImageError, inside, unpack
from tests.sim.processes.image_files import archived, docker_save, layout, tar

pytestmark = pytest.mark.spec("S-45")

CONFIG = {
    "Entrypoint": ["/bin/app"],
    "Cmd": ["serve"],
    "Env": ["PATH=/bin", "MODE=a=b"],
    "WorkingDir": "/srv",
    "User": "app",
}
BASE = tar(("bin", None), ("bin/app", b"first"), ("etc", None), ("etc/old", b"old"), ("etc/kept", b"kept"), mode=0o755)
NEXT = tar(("bin/app", b"second"), ("etc/.wh.old", b""), ("lib", "-> usr/lib"), ("lib/so", b"library"))


def tree(folder: Path) -> dict[str, str]:
    """Files by their paths, with their contents; links with their targets."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_symlink():
            found[name] = f"-> {path.readlink()}"
        elif path.is_file():
            found[name] = path.read_text()
    return found


MERGED = {"bin/app": "second", "etc/kept": "kept", "lib": "-> usr/lib", "usr/lib/so": "library"}


# ------------------------------------------------------------------ the forms that there are


def test_the_layers_of_an_oci_layout_lie_one_on_the_other(tmp_path: Path) -> None:
    image = Images(tmp_path / "cache").get(str(layout(tmp_path / "oci", [BASE, NEXT], CONFIG)), "app:1")
    assert tree(image.folder) == MERGED
    assert image.settings == Settings(["/bin/app"], ["serve"], {"PATH": "/bin", "MODE": "a=b"}, "/srv", "app")


def test_archives_are_read_as_the_folders_that_they_hold(tmp_path: Path) -> None:
    images = Images(tmp_path / "cache")
    of_oci = archived(layout(tmp_path / "oci", [BASE, NEXT], CONFIG), tmp_path / "oci.tar.gz")
    of_docker = docker_save(tmp_path / "docker.tar", [BASE, NEXT], CONFIG, "app:1")
    for path in (of_oci, of_docker):
        image = images.get(str(path), "app:1")
        assert tree(image.folder) == MERGED
        assert image.settings.entrypoint == ["/bin/app"]
    plain = tmp_path / "plain.tar"
    plain.write_bytes(BASE)
    image = images.get(str(plain), "app:1")
    assert tree(image.folder) == {"bin/app": "first", "etc/kept": "kept", "etc/old": "old"}
    assert image.settings == Settings()


def test_a_folder_is_used_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    images = Images(tmp_path / "cache")
    assert images.get(str(tmp_path / "root"), "app:1").folder == tmp_path / "root"
    assert not (tmp_path / "cache").exists()


def test_an_image_is_unpacked_once_and_again_when_it_has_changed(tmp_path: Path) -> None:
    path, images = tmp_path / "plain.tar", Images(tmp_path / "cache")
    path.write_bytes(BASE)
    first = images.get(str(path), "app:1").folder
    (first / "mark").touch()
    assert (images.get(str(path), "app:1").folder / "mark").exists()
    path.write_bytes(BASE + NEXT)
    assert images.get(str(path), "app:1").folder != first
    assert [entry.name for entry in (tmp_path / "cache").iterdir() if entry.name.startswith(".")] == []


def test_nobody_else_gets_to_an_unpacked_image(tmp_path: Path) -> None:
    image = Images(tmp_path / "cache").get(str(layout(tmp_path / "oci", [BASE])), "app:1")
    assert stat.S_IMODE(image.folder.parent.stat().st_mode) == 0o700
    assert stat.S_IMODE(image.folder.stat().st_mode) == 0o755
    assert stat.S_IMODE((image.folder / "bin/app").stat().st_mode) == 0o755


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give files away")
def test_as_root_an_image_belongs_to_the_user_of_its_containers(tmp_path: Path) -> None:
    path, images = layout(tmp_path / "oci", [BASE, NEXT]), Images(tmp_path / "cache")
    one, other = (images.get(str(path), "app:1", user).folder for user in (70001, 70002))
    assert {entry.lstat().st_uid for entry in (one, *one.rglob("*"))} == {70001}
    assert {entry.lstat().st_uid for entry in (other, *other.rglob("*"))} == {70002}


# ------------------------------------------------------------------ which image, and what is wrong with it


def test_of_several_images_the_one_with_the_name_counts(tmp_path: Path) -> None:
    path, images = layout(tmp_path / "oci", [BASE], names=("1", "example.com/app:2")), Images(tmp_path / "cache")
    for name in ("app:1", "example.com/app:2"):
        assert tree(images.get(str(path), name).folder)["bin/app"] == "first"
    with pytest.raises(ImageError, match=r"which image is app:3\? there are: 1; example.com/app:2"):
        images.get(str(path), "app:3")


def test_the_image_for_this_machine_is_taken(tmp_path: Path) -> None:
    path, images = layout(tmp_path / "oci", [BASE]), Images(tmp_path / "cache")
    index = json.loads((path / "index.json").read_text())
    [one] = index["manifests"]

    def offered(*machines: str) -> None:
        entries = [{**one, "platform": {"os": "linux", "architecture": machine}} for machine in machines]
        text = json.dumps({"manifests": entries}).encode()
        digest = hashlib.sha256(text).hexdigest()
        (path / "blobs/sha256" / digest).write_bytes(text)
        (path / "index.json").write_text(json.dumps({"manifests": [{"digest": f"sha256:{digest}"}]}))

    machine = {"x86_64": "amd64", "aarch64": "arm64"}.get(os.uname().machine, os.uname().machine)
    offered("s370", machine)
    assert tree(images.get(str(path), "app:1").folder)["bin/app"] == "first"
    offered("s370", "vax")
    with pytest.raises(ImageError, match=f"not for linux/{machine}"):
        images.get(str(path), "app:1")


def test_contents_that_are_others_than_the_digest_says_are_refused(tmp_path: Path) -> None:
    path, images = layout(tmp_path / "oci", [BASE]), Images(tmp_path / "cache")
    for blob in (path / "blobs/sha256").iterdir():
        if blob.read_bytes().startswith(b"\x1f\x8b"):
            blob.write_bytes(blob.read_bytes() + b"more")
    with pytest.raises(ImageError, match="are others than the image says"):
        images.get(str(path), "app:1")
    assert list((tmp_path / "cache").iterdir()) == []


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"no archive", "is no whole tar archive"),
        (BASE[:1026], "is no whole tar archive"),
        (b"", "is no whole tar archive"),
        (tar(("manifest.json", b"[]")), "which image is app:1"),
        (tar(("oci-layout", b"{}"), ("index.json", b"{")), "index.json of the image is no JSON"),
        (tar(("oci-layout", b"{}"), ("index.json", b"[]")), "says something that no image says"),
        (tar(("manifest.json", b"[{}]")), "says something that no image says"),
        (tar(("oci-layout", b"{}")), "index.json is missing"),
        (tar(("oci-layout", b"{}"), ("index.json", b'{"manifests": [{"digest": "sha256:../../x"}]}')), "no digest"),
    ],
)
def test_what_is_no_image_is_refused_with_a_reason(tmp_path: Path, data: bytes, message: str) -> None:
    path = tmp_path / "image.tar"
    path.write_bytes(data)
    with pytest.raises(ImageError, match=message):
        Images(tmp_path / "cache").get(str(path), "app:1")


def test_a_root_that_is_not_there_and_zstandard_are_named(tmp_path: Path) -> None:
    with pytest.raises(ImageError, match="there is no /nowhere"):
        Images(tmp_path).get("/nowhere", "app:1")
    with pytest.raises(ImageError, match="compressed with zstd"):
        unpack(io.BytesIO(b"\x28\xb5\x2f\xfd...."), tmp_path, what="the layer")


# ------------------------------------------------------------------ archives that mean harm


def device(kind: bytes) -> tarfile.TarInfo:
    info = tarfile.TarInfo()
    info.type, info.devmajor, info.devminor = kind, 8, 0
    return info


def setuid() -> tarfile.TarInfo:
    info = tarfile.TarInfo()
    info.mode = 0o6755
    return info


HARM: dict[str, list[tuple[str, Any]]] = {
    "up": [("../../planted", b"x"), ("../beside/planted", b"x")],
    "absolute": [("/planted", b"x")],
    "link to a folder outside": [("out", "-> ../beside"), ("out/planted", b"x")],
    "absolute link": [("out", "-> {beside}"), ("out/planted", b"x")],
    "a chain of links": [("a", "-> b"), ("b", "-> ../../beside"), ("a/deep/planted", b"x")],
    "a link as the file itself": [("file", "-> ../beside/target"), ("file", b"changed")],
    "hard link outside": [("grabbed", "= ../beside/target"), ("grabbed", b"changed")],
    "hard link through a link": [("out", "-> ../beside"), ("grabbed", "= out/target"), ("grabbed", b"changed")],
    "whiteout of what is above": [("..", None), ("etc/.wh...", b""), (".wh...", b""), (".wh..", b"")],
    "whiteout through a link": [("out", "-> ../beside"), ("out/.wh.target", b""), ("out/.wh..wh..opq", b"")],
    "a folder over a link": [("out", "-> ../beside"), ("out", None), ("out/target", b"changed")],
}


@pytest.mark.parametrize("entries", HARM.values(), ids=HARM)
def test_an_archive_changes_nothing_outside_of_its_folder(tmp_path: Path, entries: list[tuple[str, Any]]) -> None:
    beside, root = tmp_path / "beside", tmp_path / "root"
    beside.mkdir()
    root.mkdir()
    (beside / "target").write_text("as it was")
    filled = [(name, what.format(beside=beside) if isinstance(what, str) else what) for name, what in entries]
    with suppress(ImageError):
        unpack(io.BytesIO(tar(*filled)), root, what="the layer")
    assert tree(beside) == {"target": "as it was"}
    assert (beside / "target").stat().st_nlink == 1
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["beside", "root"]


_NAMES = st.sampled_from(["a", "b", "..", ".", "a/b", "b/..", "../b", "/a", ".wh.a", ".wh...", ".wh..wh..opq"])
_WHATS = st.one_of(
    st.just(b"x"), st.none(), _NAMES.map(lambda name: f"-> {name}"), _NAMES.map(lambda name: f"= {name}")
)


@given(st.lists(st.tuples(st.lists(_NAMES, min_size=1, max_size=3).map("/".join), _WHATS), max_size=8))
def test_no_archive_at_all_does(tmp_path_factory: pytest.TempPathFactory, entries: list[tuple[str, Any]]) -> None:
    above = tmp_path_factory.mktemp("above")
    (above / "beside").write_text("as it was")
    root = above / "root"
    root.mkdir()
    with suppress(ImageError):
        unpack(io.BytesIO(tar(*entries)), root, what="the layer")
    assert sorted(entry.name for entry in above.iterdir()) == ["beside", "root"]
    assert (above / "beside").read_text() == "as it was"
    assert (above / "beside").stat().st_nlink == 1


def test_devices_and_rights_of_other_users_are_left_out(tmp_path: Path) -> None:
    archive = tar(("disk", device(tarfile.BLKTYPE)), ("tty", device(tarfile.CHRTYPE)), ("su", setuid()))
    unpack(io.BytesIO(archive), tmp_path, what="the layer")
    assert [entry.name for entry in tmp_path.iterdir()] == ["su"]
    assert stat.S_IMODE((tmp_path / "su").stat().st_mode) == 0o755


def test_an_opaque_folder_keeps_what_its_own_layer_brings(tmp_path: Path) -> None:
    unpack(io.BytesIO(tar(("d", None), ("d/old", b"1"), ("d/e/old", b"1"))), tmp_path, what="the layer")
    unpack(io.BytesIO(tar(("d/new", b"2"), ("d/.wh..wh..opq", b""))), tmp_path, what="the layer")
    assert tree(tmp_path) == {"d/new": "2"}


def test_links_that_go_round_are_noticed(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises(ImageError, match="round in circles"):
        inside(tmp_path, ["a", "x"])


# ------------------------------------------------------------------ users of an image


def test_users_are_found_by_name_and_by_number(tmp_path: Path) -> None:
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/passwd").write_text("root:x:0:0:root:/root:/bin/sh\napp:x:1000:2000::/home/app:/bin/sh\n")
    (tmp_path / "etc/group").write_text("staff:x:50:\n")
    image = Image(tmp_path)
    assert image.account("0") == (0, 0, "/root")
    assert image.account("app") == image.account("1000") == (1000, 2000, "/home/app")
    assert image.account("app:staff") == (1000, 50, "/home/app")
    assert image.account("7:8") == (7, 8, "/")
    for wrong in ("who", "app:who"):
        with pytest.raises(ImageError, match="'who'"):
            image.account(wrong)
    assert Image(tmp_path / "empty").account("0") == (0, 0, "/")
