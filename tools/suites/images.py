"""File systems of the two images that the conformance specs use most, as roots of process pods.

agnhost is built from its module, everything else in both is busybox, which has to be a static one: it is alone there.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

FOLDERS = ("bin", "dev", "etc", "home", "proc", "root", "sys", "tmp", "uploads", "var")
ACCOUNTS = {
    "etc/passwd": "root:x:0:0:root:/root:/bin/sh\nuser-defined-in-image:x:1000:1000::/home:/bin/sh\n",
    "etc/group": "root:x:0:\nuser-defined-in-image:x:1000:\n",
}


def make_busybox(root: Path, busybox: Path) -> None:
    """A folder as the image of busybox has it: one program by many names."""
    for name in FOLDERS:
        (root / name).mkdir(parents=True)
    (root / "tmp").chmod(0o1777)
    for name, text in ACCOUNTS.items():
        (root / name).write_text(text)
    shutil.copy(busybox, root / "bin" / "busybox")
    listed = subprocess.run([busybox, "--list"], check=True, capture_output=True, text=True)
    for applet in listed.stdout.split():
        if applet != "busybox":
            (root / "bin" / applet).symlink_to("busybox")


def make_agnhost(root: Path, busybox: Path, agnhost: Path) -> None:
    """The image has a shell too, and its program by a second name, by which the specs call it."""
    make_busybox(root, busybox)
    shutil.copy(agnhost, root / "agnhost")
    (root / "agnhost-2").symlink_to("agnhost")
