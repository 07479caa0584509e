"""`konverge new`: a small project with an operator, and a test of it that passes.

The files of the project are templates in the folder `projectfiles` of this package: `$kind` and its like are filled in.
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import Any

from konverge.cli.arguments import command
from konverge.cli.exit import UsageError

GROUP = "example.com"


def add(commands: Any) -> None:
    about = "make a project with an operator, a test that passes, a README and a container file"
    parser = command(commands, "new", about, "konverge new my-operator && cd my-operator && python -m pytest")
    parser.add_argument("name", type=_name, help="name of the project: lower-case letters, digits and dashes")
    parser.add_argument("--dir", type=Path, help="the folder to create (the name by default)")
    parser.add_argument("--group", default=GROUP, help=f"the API group of its kind: a domain that you own ({GROUP})")
    parser.set_defaults(run=run)


def _name(text: str) -> str:
    if not re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", text) or len(text) > 40:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a name for a project: use up to 40 of a-z, 0-9 and dashes, such as my-operator"
        )
    return text


def run(arguments: argparse.Namespace) -> int:
    from konverge.cli.documents import write_folder
    from konverge.objects.names import dns_subdomain_errors

    if "." not in arguments.group or dns_subdomain_errors(arguments.group):
        raise UsageError(f"--group {arguments.group}: must be a domain that you own, such as shop.example.com")
    folder: Path = arguments.dir or Path(arguments.name)
    if folder.exists() and any(folder.iterdir()):
        raise UsageError(f"the folder {folder} exists and is not empty: give another --dir, or remove it")
    files = project(arguments.name, arguments.group)
    write_folder(folder, files)
    print("\n".join(f"  {folder / path}" for path in files))
    print(f"\nNext:\n  cd {folder}\n  python -m pytest\n  konverge up    # in another terminal, then see README.md")
    return 0


def project(name: str, group: str) -> dict[str, str]:
    """Path -> text, for a project of that name."""
    from importlib.resources import files
    from string import Template

    from konverge.cli.documents import read_folder

    package = name.replace("-", "_")
    values = {"name": name, "package": package, "kind": kind_of(name), "group": group}
    # The templates do not have the names of the files, so that no tool takes them for Python or for a .gitignore.
    names = {"gitignore": ".gitignore"}
    return {
        names.get(path, path).replace("src/package/", f"src/{package}/"): Template(text).substitute(values)
        for path, text in sorted(
            (path.removesuffix(".tmpl"), text) for path, text in read_folder(files("konverge.cli") / "projectfiles")
        )
    }


def kind_of(name: str) -> str:
    """
    >>> kind_of("my-shop-operator"), kind_of("operator")
    ('MyShop', 'Operator')
    """
    parts = name.removesuffix("-operator").split("-")
    return "".join(part.capitalize() for part in parts)
