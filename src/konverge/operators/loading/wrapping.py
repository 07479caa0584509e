"""An `Operator` from what a module has: a manager, controllers, a function that makes them, or an `Operator` itself.

The kinds to install are the custom resources that the controllers reconcile, and those of the same API groups that
they own, watch or read. Samples are `sample.yaml`, `samples.yaml` and `samples/*.yaml` beside the module; its pages in
the console are what the module calls `console_pages`.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

from konverge.objects import CustomResource
from konverge.operators.catalog import Operator
from konverge.operators.loading.errors import LoadError
from konverge.operators.loading.modules import FILE_PREFIX, attempt
from konverge.runtime import Controller, Manager

DEFAULT_NAME = "konverge"
"""The name of a Manager that was given none."""
_GENERIC = {"operator", "operators", "main", "__main__", "__init__", "manager", "app", "controllers", "cli"}
_FORMS = "a Manager, an Operator, a list of controllers, or a function that returns one of them"


def as_operator(value: Any, *, name: str = "", module: ModuleType | None = None, what: str = "") -> Operator:
    """The operator that a value declares. Raises LoadError.

    operator = as_operator(manager)
    """
    what = what or f"this {type(value).__name__}"
    value = _made(value, what)
    folder = _folder(module)
    if isinstance(value, Operator):
        return replace(value, folder=value.folder or folder)
    if isinstance(value, Manager):
        declared = value.controllers
        webhooks = list(value.webhooks.routes.values()) if value.webhooks else []
        make: Callable[[], list[Controller[Any]]] = value.movable_controllers
        name = _named(value.name if value.name != DEFAULT_NAME else name, module)
    else:
        declared, webhooks = _controllers(value, what), []
        name, make = _named(name, module), declared.copy
    if not declared and not webhooks and not (isinstance(value, Manager) and value.tasks):
        raise LoadError(f"{what} has no controllers: add some, as `manager.add(Controller(…))`")
    return Operator(
        name=name,
        kinds=own_kinds(declared, [kind for webhook in webhooks for kind in webhook.kinds]),
        controllers=make,
        webhooks=webhooks.copy,
        about=_about(module, name),
        samples=_samples(folder),
        manager=value if isinstance(value, Manager) else None,
        folder=folder,
        image=f"{name}:latest",
        console_pages=tuple(getattr(module, "console_pages", ())),
    )


def _made(value: Any, what: str) -> Any:
    """What a function returns; any other value is as it is."""
    if isinstance(value, Manager | Operator | Controller) or not callable(value):
        return value
    if inspect.iscoroutinefunction(value):
        raise LoadError(f"{what} is asynchronous: name {_FORMS}")
    needed = _required(value)
    if needed:
        raise LoadError(f"{what} needs arguments ({', '.join(needed)}): name {_FORMS} without arguments")
    return attempt(f"{what}()", value, failed="fails")


def _required(function: Callable[..., Any]) -> list[str]:
    try:
        parameters = inspect.signature(function).parameters.values()
    except ValueError:  # a function in C that does not say
        return []
    variable = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return [p.name for p in parameters if p.default is p.empty and p.kind not in variable]


def _controllers(value: Any, what: str) -> list[Controller[Any]]:
    if isinstance(value, Controller):
        return [value]
    if not isinstance(value, list | tuple):
        raise LoadError(f"{what} is {_described(value)}: name {_FORMS}")
    for item in value:
        if not isinstance(item, Controller):
            raise LoadError(f"{what} has {_described(item)} among its controllers: name {_FORMS}")
    return list(value)


def _described(value: Any) -> str:
    return f"the class {value.__name__}" if isinstance(value, type) else f"of the type {type(value).__name__}"


def own_kinds(
    controllers: Iterable[Controller[Any]], reviewed: Iterable[type[Any]] = ()
) -> list[type[CustomResource[Any, Any]]]:
    """The kinds whose definitions come with these controllers, each once. `reviewed` are those of its webhooks, which
    may be about kinds of others; an operator without controllers is about its webhooks' kinds."""
    declared = list(controllers)
    reconciled = _custom(kind for controller in declared for kind in (controller.versions or [controller.kind]))
    reviewed = list(reviewed)
    if not declared:
        reconciled = _custom(reviewed)
    groups = {kind.resource.group for kind in reconciled}
    others = [*_custom(kind for controller in declared for kind in _mentioned(controller)), *_custom(reviewed)]
    kinds = [*reconciled, *(kind for kind in others if kind.resource.group in groups)]
    return [*{kind.resource: kind for kind in reversed(kinds)}.values()][::-1]


def _custom(kinds: Iterable[type[Any]]) -> list[type[CustomResource[Any, Any]]]:
    return [kind for kind in kinds if issubclass(kind, CustomResource)]


def _mentioned(controller: Controller[Any]) -> Sequence[type[Any]]:
    return [kind for kind in controller.kinds if kind not in controller.optional_kinds]


def _folder(module: ModuleType | None) -> Path | None:
    file = getattr(module, "__file__", None)
    return Path(file).parent if file else None


def _samples(folder: Path | None) -> tuple[str, ...]:
    if folder is None:
        return ()
    beside = [name for name in ("sample.yaml", "samples.yaml") if (folder / name).is_file()]
    return (*beside, *sorted(f"samples/{file.name}" for file in (folder / "samples").glob("*.yaml")))


def _named(name: str, module: ModuleType | None) -> str:
    """A name for objects in a cluster: the given one, else that of the module, or of its package where that is dull."""
    if not name and module is not None:
        path = module.__name__.removeprefix(FILE_PREFIX).split(".")
        name = next((part for part in reversed(path) if part not in _GENERIC), path[0])
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:50].strip("-") or "my"


def _about(module: ModuleType | None, name: str) -> str:
    lines = (inspect.getdoc(module) or "").strip().splitlines() if module is not None else []
    return lines[0].rstrip(".") if lines else f"the operator {name}"
