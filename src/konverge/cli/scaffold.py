"""The files of a new project, as templates. `$kind` and its like are filled in; everything else is as it will be."""

from __future__ import annotations

from string import Template

PYPROJECT = """[build-system]
requires = ["setuptools>=77"]
build-backend = "setuptools.build_meta"

[project]
name = "$name"
version = "0.1.0"
requires-python = ">=3.11"
dependencies = ["konverge", "pyyaml"]

[project.optional-dependencies]
dev = ["pytest"]

[project.scripts]
$name = "$package.operator:main"

[tool.setuptools.packages.find]
where = ["src"]

[tool.ruff]
line-length = 120
lint.ignore = ["RUF012"]  # a mutable default is copied for each object

[tool.pytest.ini_options]
pythonpath = ["src"]
"""

OPERATOR = '''"""A $kind is a text that is kept in a ConfigMap. Change this into what you need."""

from __future__ import annotations

import sys
from typing import Annotated

import yaml
from konverge import (
    Condition,
    Context,
    Controller,
    CustomResource,
    Manager,
    Model,
    ObjectMeta,
    Reconciler,
    Result,
    set_condition,
)
from konverge.objects import Minimum, MinLength, crd_dict
from konverge.objects.kinds.core_v1 import ConfigMap


class ${kind}Spec(Model):
    """What the user asks for. The API server refuses what does not fit."""

    text: Annotated[str, MinLength(1)]
    times: Annotated[int, Minimum(1)] = 1


class ${kind}Status(Model):
    """What is."""

    observed_generation: int = 0
    conditions: list[Condition] = []


class $kind(CustomResource[${kind}Spec, ${kind}Status], group="$group", version="v1"):
    """A text, so many times."""


class ${kind}Reconciler(Reconciler[$kind]):
    async def reconcile(self, ctx: Context[$kind]) -> Result | None:
        spec, status = ctx.obj.spec, ctx.obj.status
        data = {"text": " ".join([spec.text] * spec.times)}
        await ctx.apply(ConfigMap(metadata=ObjectMeta(name=ctx.request.name), data=data))
        status.observed_generation = ctx.obj.metadata.generation
        set_condition(status.conditions, "Ready", True, "Written")
        await ctx.save_status()  # no request when nothing has changed; neither has apply
        return None


def controllers() -> list[Controller[$kind]]:
    return [Controller($kind, ${kind}Reconciler(), owns=[ConfigMap])]


def main() -> None:
    """`$name crd` prints the definition, `$name` runs."""
    if sys.argv[1:] == ["crd"]:
        print(yaml.safe_dump(crd_dict($kind), sort_keys=False))
        return
    manager = Manager(name="$name")
    for controller in controllers():
        manager.add(controller)
    manager.run()


if __name__ == "__main__":
    main()
'''

TEST = '''"""The operator on a Kubernetes in this process, in virtual time: no cluster, no waiting."""

from __future__ import annotations

from konverge import Manager, ObjectMeta, is_true
from konverge.client import MergePatch
from konverge.objects import crd
from konverge.objects.kinds.core_v1 import ConfigMap
from konverge.sim import Cluster, run

from $package.operator import $kind, ${kind}Spec, controllers


async def scenario() -> None:
    async with Cluster() as cluster:
        client = cluster.client
        await client.create(crd($kind))
        await cluster.settle()
        manager = Manager(client, name="$name")
        for controller in controllers():
            manager.add(controller)
        async with manager.running():
            metadata = ObjectMeta(name="first", namespace="default")
            await client.create($kind(metadata=metadata, spec=${kind}Spec(text="hello", times=2)))
            await cluster.settle()
            assert (await client.get(ConfigMap, "first", "default")).data == {"text": "hello hello"}
            assert is_true((await client.get($kind, "first", "default")).status.conditions, "Ready")

            await client.patch($kind, "first", MergePatch({"spec": {"times": 1}}), "default")
            await cluster.settle()
            assert (await client.get(ConfigMap, "first", "default")).data == {"text": "hello"}

            await client.delete(ConfigMap, "first", "default")  # a user deletes it by hand
            await cluster.settle()
            assert (await client.get(ConfigMap, "first", "default")).data == {"text": "hello"}


def test_the_text_is_kept_in_a_config_map() -> None:
    run(scenario())
'''

README = """# $name

An operator on [konverge](https://pypi.org/project/konverge/): a `$kind` is a text that is kept in a ConfigMap.

```sh
pip install -e '.[dev]'
python -m pytest                      # the operator on a Kubernetes in the process, in virtual time
```

Try it on a simulated Kubernetes. In one terminal:

```sh
konverge up --kubeconfig up.kubeconfig
```

In another:

```sh
export KUBECONFIG=up.kubeconfig
$name crd | kubectl apply -f -
kubectl apply -f sample.yaml
$name                                 # runs until Ctrl-C; any other cluster will do as well
```

`src/$package/operator.py` is the whole operator; `Containerfile` makes an image of it.
"""

SAMPLE = """apiVersion: $group/v1
kind: $kind
metadata:
  name: first
  namespace: default
spec:
  text: hello
  times: 2
"""

CONTAINERFILE = """FROM python:3.13-slim AS build
WORKDIR /project
COPY . .
RUN pip install --no-cache-dir --prefix=/installed .

FROM python:3.13-slim
COPY --from=build /installed /usr/local
USER 65532:65532
ENTRYPOINT ["$name"]
"""

IGNORED = """__pycache__/
*.egg-info/
.venv/
.pytest_cache/
*.kubeconfig
"""


def project(name: str, group: str) -> dict[str, str]:
    """Path -> text, for a project of that name."""
    package = name.replace("-", "_")
    values = {"name": name, "package": package, "kind": kind_of(name), "group": group}
    files = {
        "pyproject.toml": PYPROJECT,
        "README.md": README,
        "Containerfile": CONTAINERFILE,
        ".gitignore": IGNORED,
        "sample.yaml": SAMPLE,
        f"src/{package}/__init__.py": '"""An operator for $kind objects."""\n',
        f"src/{package}/operator.py": OPERATOR,
        "tests/test_operator.py": TEST,
    }
    return {path: Template(text).substitute(values) for path, text in files.items()}


def kind_of(name: str) -> str:
    """
    >>> kind_of("my-shop-operator"), kind_of("operator")
    ('MyShop', 'Operator')
    """
    parts = name.removesuffix("-operator").split("-")
    return "".join(word.capitalize() for word in parts)
