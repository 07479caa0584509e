"""File systems of the images that the conformance specs use most, as roots of process pods.

agnhost is built from its module, everything else is this machine's: busybox, which has to be a static one, and the
programs that the image of agnhost has besides, with their libraries.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

FOLDERS = ("bin", "dev", "etc", "home", "proc", "root", "sys", "tmp", "uploads", "var")
ACCOUNTS = {
    "etc/passwd": "root:x:0:0:root:/root:/bin/sh\nuser-defined-in-image:x:1000:1000::/home:/bin/sh\n",
    "etc/group": "root:x:0:\nuser-defined-in-image:x:1000:\n",
    "etc/nsswitch.conf": "hosts: files dns\n",
}
TOOLS = {
    "bash": "bash",
    "curl": "curl",
    "dig": "bind9-dnsutils",
    "getent": "libc-bin",
    "nc": "netcat-openbsd",
    "nslookup": "bind9-dnsutils",
    "ss": "iproute2",
}
"""What the image of agnhost has besides its own program, and Debian's package of it. busybox has some by these names,
with other options."""
_LIBRARY = re.compile(r"(?:=> )?(/\S+) \(0x")


def make_busybox(root: Path, busybox: Path, *, tools: Iterable[Path] = ()) -> None:
    """A folder as the image of busybox has it: one program by many names, and these tools in place of some of them."""
    for name in FOLDERS:
        (root / name).mkdir(parents=True)
    (root / "tmp").chmod(0o777)  # sticky, what is this machine's root's could not be moved away by a container's
    for name, text in ACCOUNTS.items():
        (root / name).write_text(text)
    shutil.copy(busybox, root / "bin" / "busybox")
    listed = subprocess.run([busybox, "--list"], check=True, capture_output=True, text=True)
    for applet in listed.stdout.split():
        if applet != "busybox":
            (root / "bin" / applet).symlink_to("busybox")
    for tool in tools:
        add_program(root, tool)
        if tool.name == "bash":  # Debian's busybox takes `nc` for its own as `sh`, and drops variables such as `a-1`
            (root / "bin" / "sh").unlink()
            (root / "bin" / "sh").symlink_to("bash")


def make_agnhost(root: Path, busybox: Path, agnhost: Path, *, tools: Iterable[Path] = (), files: Path) -> None:
    """The image has a shell too, and its program by a second name, by which the specs call it.

    `files` is the folder of the module's images, which has the other files.
    """
    make_busybox(root, busybox, tools=tools)
    shutil.copy(agnhost, root / "agnhost")
    (root / "agnhost-2").symlink_to("agnhost")
    for name in ("localhost.crt", "localhost.key"):
        _copy_file(files / "agnhost" / "porter" / name, root / name)


def make_page(root: Path, busybox: Path, agnhost: Path, *, files: Path) -> None:
    """An image of agnhost with a page that its web server shows: those of the update demo."""
    make_agnhost(root, busybox, agnhost, files=files)
    for page in (files / root.name / "html").iterdir():
        _copy_file(page, root / page.name)


def add_program(root: Path, program: Path) -> None:
    """A program of this machine, and the libraries that it needs at their places."""
    target = root / "bin" / program.name
    target.unlink(missing_ok=True)
    shutil.copy(program, target)
    for library in _LIBRARY.findall(subprocess.run(["ldd", program], capture_output=True, text=True).stdout):
        place = root / library.lstrip("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        if not place.exists():
            shutil.copy(library, place)


def _copy_file(source: Path, target: Path) -> None:
    """Of the module cache, whose files are read-only; a container's root may move it."""
    shutil.copyfile(source, target)
