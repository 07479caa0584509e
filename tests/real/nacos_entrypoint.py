"""What the entrypoint of the official image does for process pods: it reads the environment and becomes Java.

python -m tests.real.nacos_entrypoint PROGRAM FOLDER ADDRESS HOSTS
"""

from __future__ import annotations

import os
import socket
import sys
from pathlib import Path

from tests.real.nacos import command, prepare


def main(program: str, folder: str, address: str, hosts: str) -> None:
    """Replace this process by a server."""
    home = Path(folder) / "nacos"
    standalone = os.environ.get("MODE") == "standalone"
    members = [] if standalone else os.environ.get("NACOS_SERVERS", "").split()
    own = os.environ.get("HOSTNAME") or socket.gethostname()
    name = next((member.rpartition(":")[0] for member in members if member.partition(".")[0] == own), "")
    prepare(home, members)
    line = command(Path(program), home, address, standalone=standalone, name=name, hosts=hosts)
    os.execvp(line[0], line)


if __name__ == "__main__":
    main(*sys.argv[1:5])
