"""One file per operator: what `konverge check check.toml` needs to know.

    command = ["${OPERATORS_HOME}/bin/rabbitmq-1.6.0", "--metrics-bind-address", "0"]
    crds = ["config/crd/bases"]
    rbac = ["config/rbac"]
    sample = "sample.yaml"
    simulate = "simulate.yaml"

    [environment]
    OPERATOR_NAMESPACE = "rabbitmq-system"

Paths are relative to the file, `${NAME}` is of the environment, and a name that is not known is refused.
`docs/check/profiles.md` lists all names.
"""

from __future__ import annotations

import os
import re
import shutil
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from konverge.check import accounts, old_apis
from konverge.check.manifests import CannotCheck, read_objects
from konverge.check.model import Obj, Setup, Subject


class Profile(msgspec.Struct, frozen=True, kw_only=True):
    """What is checked, and with what."""

    name: str
    subject: Subject
    setup: Setup
    samples: tuple[Obj, ...]
    notes: tuple[str, ...] = ()
    """What the report has to say about the setup: permissions that are not tested, old APIs that are served."""


class Given(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a file may say; the options of the command line say the same."""

    name: str = ""
    target: str = ""
    """An operator in Python: `module:attribute` or a file."""
    command: tuple[str, ...] = ()
    """An operator of any language: a program and its arguments."""
    folder: str = ""
    """Where the command is started: by default beside the file."""
    environment: dict[str, str] = {}
    in_cluster: bool = False
    """The program finds the API server as in a pod (KUBERNETES_SERVICE_HOST, a mounted token), not by KUBECONFIG."""
    crds: tuple[str, ...] = ()
    rbac: tuple[str, ...] = ()
    account: str = ""
    """`namespace/name` of the operator's ServiceAccount, where the roles are bound to several."""
    objects: tuple[str, ...] = ()
    """Other manifests that have to be there before the operator starts."""
    sample: str | tuple[str, ...] = ()
    """Files with the custom resource that users create, and what it refers to (Secrets before it)."""
    simulate: str = ""
    namespace: str = "default"
    nodes: int = 3
    old_apis: bool = False
    """Serve API versions that Kubernetes no longer has."""


def load(path: Path | str, environ: Mapping[str, str] | None = None) -> Profile:
    """The profile of a file. Raises CannotCheck.

    profile = load("bench/check/rabbitmq/check.toml")
    """
    path = Path(path)
    try:
        with path.open("rb") as file:
            values = tomllib.load(file)
    except (OSError, tomllib.TOMLDecodeError) as error:
        raise CannotCheck(f"{path}: {error}") from error
    expanded = _expanded(values, os.environ if environ is None else environ, str(path))
    try:
        given = msgspec.convert(expanded, Given)
    except msgspec.ValidationError as error:
        raise CannotCheck(f"{path}: {error}; known are {', '.join(Given.__struct_fields__)}") from error
    return make(given, path.parent)


def make(given: Given, folder: Path) -> Profile:
    """The profile of what was given; paths are relative to `folder`. Raises CannotCheck."""
    if bool(given.command) == bool(given.target):
        raise CannotCheck("name the operator: either `command` (a program) or `target` (Python, in this process)")
    notes: list[str] = []
    setup = setup_of(given, folder, notes)
    wanted = (given.sample,) if isinstance(given.sample, str) else given.sample
    if not wanted:
        raise CannotCheck("name a `sample`: a file with the custom resource that users create")
    samples = samples_of(_paths(wanted, folder))
    return Profile(
        name=given.name or _name(given),
        subject=_subject(given, folder),
        setup=setup,
        samples=samples,
        notes=tuple(notes),
    )


def samples_of(paths: Sequence[Path]) -> tuple[Obj, ...]:
    """What users create, of files that were named. Raises CannotCheck."""
    samples = tuple(read_objects(paths))
    if not samples:
        raise CannotCheck(f"no object is in {_listed(paths)}: give the custom resource that users create")
    return samples


def setup_of(given: Given, folder: Path, notes: list[str]) -> Setup:
    """What has to be there before the operator starts; `notes` get what the report has to say of it."""
    crds = _definitions(_paths(given.crds, folder))
    others = read_objects(_paths(given.objects, folder))
    roles, account = _roles(given, folder, notes)
    return Setup(
        objects=tuple(_modern([*crds, *roles, *others], given, notes)),
        account=account,
        simulate=_text(folder / given.simulate) if given.simulate else "",
        namespace=given.namespace,
        nodes=given.nodes,
        old_apis=given.old_apis,
    )


def _definitions(paths: Sequence[Path]) -> list[Obj]:
    """Folders of kustomizations have patches too, which look like definitions and define nothing."""
    found = read_objects(paths, ["CustomResourceDefinition"])
    whole = [obj for obj in found if isinstance(obj.get("spec"), dict) and {"group", "names"} <= obj["spec"].keys()]
    if paths and not whole:
        raise CannotCheck(f"no CustomResourceDefinition is in {_listed(paths)}: give the files that define the kinds")
    return whole


def _listed(paths: Sequence[Path]) -> str:
    return ", ".join(map(str, paths))


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise CannotCheck(f"{path} cannot be read: {error}") from error


def _subject(given: Given, folder: Path) -> Subject:
    command = given.command
    if command and "/" in command[0]:
        program = (folder / command[0]).resolve()
        if not program.is_file() or not os.access(program, os.X_OK):
            raise CannotCheck(f"{program} is not there, or is no program: build the operator, or correct `command`")
        command = (str(program), *command[1:])
    elif command and shutil.which(command[0], path=given.environment.get("PATH")) is None:
        raise CannotCheck(f"{command[0]} is in no folder of the PATH: build the operator, or correct `command`")
    where = (folder / given.folder).resolve()
    return Subject(
        target=given.target,
        command=command,
        environment=given.environment,
        folder=str(where) if command else "",
        in_cluster=given.in_cluster,
    )


def _roles(given: Given, folder: Path, notes: list[str]) -> tuple[list[Obj], str]:
    if not given.rbac:
        if given.command:
            notes.append("permissions were not tested: no roles were given, the operator is the administrator")
        return [], ""
    return accounts.granted(read_objects(_paths(given.rbac, folder), accounts.KINDS), given.namespace, given.account)


def _modern(objects: list[Obj], given: Given, notes: list[str]) -> list[Obj]:
    old = sorted({f"{obj['apiVersion']} {obj['kind']}" for obj in objects if old_apis.is_old(obj)})
    if old and not given.old_apis:
        listed = ", ".join(old)
        raise CannotCheck(f"Kubernetes no longer has {listed}: set `old_apis = true` to have them served all the same")
    if given.old_apis:
        notes.append(f"old API versions are served, which Kubernetes no longer has ({', '.join(old) or 'on request'})")
    return [old_apis.modern(obj) for obj in objects]


def _paths(names: tuple[str, ...], folder: Path) -> list[Path]:
    return [folder / name for name in names]


def _name(given: Given) -> str:
    return given.target or Path(given.command[0]).name


_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")


def _expanded(value: Any, environ: Mapping[str, str], origin: str) -> Any:
    if isinstance(value, dict):
        return {name: _expanded(item, environ, origin) for name, item in value.items()}
    if isinstance(value, list):
        return [_expanded(item, environ, origin) for item in value]
    if not isinstance(value, str):
        return value

    def variable(match: re.Match[str]) -> str:
        if match[1] not in environ:
            raise CannotCheck(f"{origin}: the environment has no {match[1]}; set it")
        return environ[match[1]]

    return _VARIABLE.sub(variable, value)
