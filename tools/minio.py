"""MinIO, a server of S3-compatible storage, built from its Go module: `python -m tools.minio`.

It needs Go and the module proxy, and takes a few minutes on two free cores; what is built is kept in a folder outside
the repository, and an attempt that was broken off goes on where it was. No test builds it: they skip and name this
command.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

from tools.kubevirt import Origin, cache, go, prepare

RELEASE = "RELEASE.2025-09-07T16-13-09Z"
COMMAND = "python -m tools.minio"
_MODULE = "github.com/minio/minio"
_ORIGIN = Origin(_MODULE, "v0.0.0-20250907161309-07c3a429bfed", _MODULE)
"""The release as the module proxy knows it: MinIO's tags are no versions of modules."""


def program() -> Path:
    return cache() / f"minio-{RELEASE}" / "minio"


def missing() -> str:
    """What to do about it; nothing when it is there."""
    return "" if os.access(program(), os.X_OK) else f"no minio in {cache()}: install Go and run `{COMMAND}`"


def build() -> None:
    work = program().parent / "build"
    prepare(work, _ORIGIN)
    go(work, "build", "-trimpath", "-ldflags", "-s -w", "-o", str(program()), _ORIGIN.package)


def main() -> int:
    if shutil.which("go") is None:
        print("there is no Go on the PATH", file=sys.stderr)
        return 1
    if missing():
        build()
    print(program())
    return 0


if __name__ == "__main__":
    sys.exit(main())
