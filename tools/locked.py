"""What constraints.txt pins: names, versions and the hashes of their files.

for package in locked(Path("constraints.txt")):
    print(package.name, package.version, len(package.hashes))
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

_PIN = re.compile(r"^(?P<name>[A-Za-z0-9._-]+)==(?P<version>[^\s;\\]+)", re.MULTILINE)
_HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")


class Package(NamedTuple):
    name: str
    version: str
    hashes: tuple[str, ...]

    @property
    def purl(self) -> str:
        """How the tools of the field name it."""
        return f"pkg:pypi/{re.sub('[-_.]+', '-', self.name).lower()}@{self.version}"


def locked(path: Path) -> list[Package]:
    """Raises ValueError for a pin without hashes: nothing would say that its file is the one that was meant."""
    text = path.read_text(encoding="utf-8")
    pins = list(_PIN.finditer(text))
    ends = [pin.start() for pin in pins[1:]] + [len(text)]
    packages = [
        Package(pin["name"], pin["version"], tuple(_HASH.findall(text, pin.end(), end)))
        for pin, end in zip(pins, ends, strict=True)
    ]
    for package in packages:
        if not package.hashes:
            raise ValueError(f"{path}: {package.name} has no hash; run `make lock`")
    return packages
