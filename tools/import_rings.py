"""The rings of files that import each other, each directly or through the others.

    python -m tools.import_rings [package …]

Every import counts: those under TYPE_CHECKING and inside functions keep a ring from failing at run time, but a reader
still has to know all of its files to understand one of them. The rings are the strongly connected components of the
graph of imports, which Tarjan's algorithm finds.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src"


def graph(source: Path = SOURCE) -> dict[str, set[str]]:
    """For every module below `source`, the modules that it imports."""
    files = {_module_name(source, path): path for path in sorted(source.rglob("*.py"))}
    return {name: set(_imports(name, path, files)) - {name} for name, path in files.items()}


def rings(imports: dict[str, set[str]], package: str = "") -> list[list[str]]:
    """The rings of two files or more among the modules of a package, largest first."""
    inside = {name for name in imports if not package or name == package or name.startswith(f"{package}.")}
    components = _components({name: imports[name] & inside for name in sorted(inside)})
    return sorted((sorted(ring) for ring in components if len(ring) > 1), key=lambda ring: (-len(ring), ring))


def _module_name(source: Path, path: Path) -> str:
    parts = path.relative_to(source).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _imports(name: str, path: Path, modules: dict[str, Path]) -> Iterator[str]:
    """`from a import b` is an import of the module a.b where there is one, else of a."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in modules)
        elif isinstance(node, ast.ImportFrom):
            if node.level:
                raise ValueError(f"{name}: relative imports are not used here (line {node.lineno})")
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                if full in modules:
                    yield full
                elif node.module in modules:
                    yield str(node.module)


def _components(imports: dict[str, set[str]]) -> list[list[str]]:
    """Tarjan's algorithm."""
    order: dict[str, int] = {}
    lowest: dict[str, int] = {}
    stack: list[str] = []
    components: list[list[str]] = []

    def visit(name: str) -> None:
        order[name] = lowest[name] = len(order)
        stack.append(name)
        for other in sorted(imports[name]):
            if other not in order:
                visit(other)
                lowest[name] = min(lowest[name], lowest[other])
            elif other in stack:
                lowest[name] = min(lowest[name], order[other])
        if lowest[name] == order[name]:
            start = stack.index(name)
            components.append(stack[start:])
            del stack[start:]

    for name in imports:
        if name not in order:
            visit(name)
    return components


def main(packages: list[str]) -> None:
    imports = graph()
    for package in packages or [""]:
        for ring in rings(imports, package):
            print(f"{len(ring)} files:")
            for name in ring:
                targets = sorted(imports[name] & set(ring))
                print(f"  {name} -> {', '.join(targets)}")


if __name__ == "__main__":
    main(sys.argv[1:])
