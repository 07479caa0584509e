"""`konverge new`: a small project with an operator, and a test of it that passes.

The files of the project are templates in the folder `projectfiles` of this package: `$kind` and its like are filled in.
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import Any

from konverge.cli.arguments import command, konverge_version
from konverge.cli.exit import UsageError

GROUP = "example.com"


def add(commands: Any) -> None:
    about = "make a project with an operator, its own command, tests that pass, a container file and a CI workflow"
    parser = command(commands, "new", about, "konverge new my-operator && cd my-operator && python -m pytest")
    parser.add_argument("name", type=_name, help="name of the project: lower-case letters, digits and dashes")
    parser.add_argument("--dir", type=Path, help="the folder to create (the name by default)")
    parser.add_argument("--group", default=GROUP, help=f"the API group of its kind: a domain that you own ({GROUP})")
    parser.set_defaults(run=run)


def _name(text: str) -> str:
    if not _is_name(text):
        near = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")
        meant = f"; did you mean {near}?" if _is_name(near) else ""
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a name for a project: use up to 40 of a-z, 0-9 and dashes, and begin with a letter, "
            f"such as my-operator{meant}"
        )
    if problem := _taken(text.replace("-", "_")):
        raise argparse.ArgumentTypeError(f"{text!r} is {problem}: take another name, such as {_another(text)}")
    return text


def _is_name(text: str) -> bool:
    return re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", text) is not None and len(text) <= 40


def _taken(package: str) -> str:
    """Why a package cannot have this name: an import of it would be an error, or of something else."""
    import keyword
    import sys
    from importlib.util import find_spec

    from konverge.operators.catalog import SUMMARIES

    if package in SUMMARIES:
        return "an operator that comes with konverge"
    if keyword.iskeyword(package):
        return "a word of the Python language"
    if package in sys.stdlib_module_names:
        return "a module of the Python standard library"
    if package == "tests":
        return "the folder of the tests"
    spec = find_spec(package)
    if spec is not None and spec.origin is not None:  # and not just a folder of that name
        return "a package that is installed here"
    return ""


def _another(name: str) -> str:
    """
    >>> _another("class"), _another("operator")
    ('class-operator', 'my-operator')
    """
    return f"my-{name}" if name.endswith("operator") else f"{name}-operator"


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
    if kind_of(arguments.name) != plain_kind(arguments.name):
        print(f"\nIts kind is {kind_of(arguments.name)}: there is a {plain_kind(arguments.name)} already.")
    print(f"\nNext:\n  cd {folder}\n  pip install -e '.[dev]'\n  python -m pytest")
    print(f"  konverge up --operators {arguments.name}    # see README.md for the rest")
    return 0


def project(name: str, group: str) -> dict[str, str]:
    """Path -> text, for a project of that name."""
    from importlib.resources import files
    from string import Template

    from konverge.cli.documents import read_folder

    package = name.replace("-", "_")
    values = {
        "name": name,
        "package": package,
        "kind": kind_of(name),
        "group": group,
        "version": konverge_version(),
    }
    # The templates do not have the names of the files, so that no tool takes them for Python or for a .gitignore.
    names = {"gitignore": ".gitignore", "dockerignore": ".dockerignore"}
    return {
        names.get(path, path).replace("src/package/", f"src/{package}/").replace("github/", ".github/"): Template(
            text
        ).substitute(values)
        for path, text in sorted(
            (path.removesuffix(".tmpl"), text) for path, text in read_folder(files("konverge.cli") / "projectfiles")
        )
    }


def plain_kind(name: str) -> str:
    """
    >>> plain_kind("my-shop-operator"), plain_kind("operator")
    ('MyShop', 'Operator')
    """
    parts = name.removesuffix("-operator").split("-")
    return "".join(part.capitalize() for part in parts)


def kind_of(name: str) -> str:
    """The kind of a project: one that Kubernetes does not have, and that is not a name of the code around it.

    >>> kind_of("backup"), kind_of("secret"), kind_of("context-operator")
    ('Backup', 'MySecret', 'MyContext')
    """
    import konverge
    from konverge.objects.kinds import known

    kind = plain_kind(name)
    taken = {builtin for _, builtin in known()} | set(konverge.__all__) | {"Annotated", "Minimum", "MinLength"}
    return f"My{kind}" if kind in taken else kind
