"""Operators by reference: names, modules, files; what they may be; and what is said when they are not."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from konverge.objects.kinds.core_v1 import ConfigMap
from konverge.operators.catalog import SUMMARIES, find
from konverge.operators.loading import LoadError, as_operator, known_names, load, references
from konverge.operators.webapp import WebApp, WebAppReconciler
from konverge.runtime import Controller, Manager, Settings

pytestmark = pytest.mark.spec("O-01")

DECLARED = '''
"""Texts that are kept. And more about it."""
from konverge import Context, Controller, CustomResource, Manager, Model, Use
from konverge.objects.kinds.core_v1 import ConfigMap

class Spec(Model):
    text: str

class Note(CustomResource[Spec, Model], group="example.com", version="v1"):
    """A text."""

async def reconcile(ctx: Context[Note]) -> None: ...

note = Controller(Note, reconcile, owns=[ConfigMap])
'''
Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Write]:
    """Write a file in the current folder, which is an empty one; what it imports is forgotten afterwards."""
    path = list(sys.path)
    monkeypatch.chdir(tmp_path)

    def write_file(name: str, text: str) -> Path:
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return file

    yield write_file
    sys.path[:] = path
    for name, module in list(sys.modules.items()):
        if str(getattr(module, "__file__", None)).startswith(str(tmp_path)):
            del sys.modules[name]


@pytest.mark.parametrize("name", SUMMARIES)
def test_ours_are_named_without_being_installed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(references, "_installed", dict)
    assert load(name).name == name
    assert load(name).start == ("konverge", "run", name)
    assert load(name).definitions() == find(name).definitions()
    assert load(name).sample_objects() == find(name).sample_objects() != []


@pytest.mark.parametrize(
    ("end", "reference"),
    [
        ("manager = Manager(); manager.add(note)", "notes.py"),
        ("manager = Manager(); manager.add(note)", "notes"),
        ("manager = Manager(); manager.add(note)", "./notes.py:manager"),
        ("def make(): return Manager().add(note)", "notes:make"),
        ("def make(more=()): return [note, *more]", "notes.py:make"),
        ("every = (note,)", "notes.py:every"),
        ("class Box: every = [note]", "notes:Box.every"),
        ("", "notes:note"),
    ],
)  # fmt: skip
def test_what_is_named_may_have_any_form(write: Write, end: str, reference: str) -> None:
    write("notes.py", DECLARED + end)
    operator = load(reference)
    assert operator.name == "notes"
    assert operator.about == "Texts that are kept. And more about it"
    assert [definition["metadata"]["name"] for definition in operator.definitions()] == ["notes.example.com"]
    assert [controller.kind.resource.kind for controller in operator.controllers()] == ["Note"]
    assert operator.start == ("konverge", "run", reference.removeprefix("./"))


def test_an_operator_declares_all_of_it_itself(write: Write) -> None:
    write("sub/first.yaml", "kind: Note\n---\nkind: Other\n")
    text = 'from konverge.operators.catalog import Operator\nit = Operator(name="n", kinds=[Note], '
    write("sub/notes.py", DECLARED + text + 'controllers=lambda: [note], samples=("first.yaml",))')
    operator = load("sub/notes.py:it")
    assert operator.name == "n"
    assert operator.sample_objects() == [{"kind": "Note"}, {"kind": "Other"}]


def test_the_manager_of_a_user_keeps_its_name_and_settings_in_company() -> None:
    manager = Manager(name="shop-operator", settings=Settings(timeout=7.0, workers=2))
    manager.add(Controller(WebApp, WebAppReconciler(), settings=Settings(workers=5)))
    operator = as_operator(manager)
    controller = operator.controllers()[0]
    assert (operator.name, operator.identity, operator.manager) == ("shop-operator", "shop-operator", manager)
    assert (controller.field_manager, controller.component) == ("shop-operator", "shop-operator")
    assert controller.settings is not None
    assert (controller.settings.workers, controller.settings.timeout) == (5, 7.0)
    assert controller.settings.given == {"workers", "timeout"}


def test_only_kinds_of_its_own_groups_are_installed_with_an_operator(write: Write) -> None:
    more = """
from konverge.operators.webapp import WebApp
class Draft(CustomResource[Spec, Model], group="example.com", version="v1"): ...
class Absent(CustomResource[Spec, Model], group="example.com", version="v1"): ...
absent = Use(Absent, cached=True, optional=True)
controllers = [Controller(Note, reconcile, owns=[ConfigMap, WebApp, Draft], uses=[absent])]
"""
    write("notes.py", DECLARED + more)
    assert [kind.__name__ for kind in load("notes:controllers").kinds] == ["Note", "Draft"]
    assert as_operator([Controller(ConfigMap, WebAppReconciler())]).kinds == []  # type: ignore[arg-type]


def test_samples_beside_the_file_are_its_samples(write: Write) -> None:
    write("notes.py", DECLARED + "manager = Manager().add(note)")
    assert load("notes.py").sample_objects() == []
    for name, kind in (("sample.yaml", "A"), ("samples/2.yaml", "C"), ("samples/1.yaml", "B"), ("other.yaml", "X")):
        write(name, f"kind: {kind}\n")
    assert [sample["kind"] for sample in load("notes.py").sample_objects()] == ["A", "B", "C"]


# ------------------------------------------------------------------ files


def test_a_file_finds_its_neighbours_and_a_package_its_own_modules(write: Write) -> None:
    write("tools/parts.py", DECLARED)
    write("tools/alone.py", "from parts import *\nmanager = Manager().add(note)")
    assert load("tools/alone.py").name == "alone"
    write("src/shop/__init__.py", "")
    write("src/shop/parts.py", DECLARED)
    write("src/shop/operator.py", "from .parts import *\nmanager = Manager().add(note)")
    assert load("src/shop/operator.py").name == "shop"
    assert load("src/shop/operator.py").controllers()[0].kind is sys.modules["shop.parts"].Note


def test_a_file_is_imported_once_and_takes_the_name_of_no_other_module(write: Write) -> None:
    import operator as standard

    write("operator.py", DECLARED + "manager = Manager().add(note)")
    first, second = load("operator.py"), load("operator.py:manager")
    assert first.manager is second.manager is not None
    assert sys.modules["operator"] is standard
    write("other/operator.py", DECLARED + "manager = Manager().add(note)")
    assert load("other/operator.py").manager is not first.manager
    assert load("operator.py").manager is first.manager
    write("2-my notes.py", DECLARED + "manager = Manager().add(note)")
    assert load("2-my notes.py").name == "2-my-notes"


def test_a_path_elsewhere_is_a_file_of_the_working_folder_in_the_container(write: Write) -> None:
    file = write("deep/notes.py", DECLARED + "manager = Manager().add(note)")
    assert load(str(file)).reference == ("notes.py",)
    assert load("deep/notes.py").reference == ("deep/notes.py",)


def test_what_a_module_prints_does_not_mix_with_the_output(write: Write, capsys: pytest.CaptureFixture[str]) -> None:
    write("notes.py", DECLARED + "print('hello')\nmanager = Manager().add(note)")
    load("notes.py")
    assert capsys.readouterr() == ("", "hello\n")


# ------------------------------------------------------------------ installed packages


def entry(name: str, value: str) -> EntryPoint:
    return EntryPoint(name, value, references.GROUP)


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    def install(*entries: EntryPoint) -> None:
        monkeypatch.setattr("importlib.metadata.entry_points", lambda group: [e for e in entries if e.group == group])
        references._installed.cache_clear()

    yield install
    references._installed.cache_clear()


def test_an_installed_operator_has_its_entry_points_name(write: Write, installed: Callable[..., None]) -> None:
    file = write("notes.py", DECLARED + "manager = Manager(name='other').add(note)")
    sys.path.insert(0, str(file.parent))
    installed(entry("keeper", "notes:manager"), entry("keeper", "notes:manager"))
    assert list(known_names()) == [*SUMMARIES, "keeper"]
    operator = load("keeper")
    assert (operator.name, operator.start, operator.image) == ("keeper", ("konverge", "run", "keeper"), "keeper:latest")
    assert operator.controllers()[0].field_manager == "other"


def test_a_package_cannot_take_the_name_of_ours_or_of_another(installed: Callable[..., None]) -> None:
    installed(entry("webapp", "evil:manager"), entry("redis", "a:manager"), entry("redis", "b:manager"))
    assert load("webapp").kinds == [WebApp]
    with pytest.raises(LoadError, match=r"several packages have an operator 'redis': a:manager .* b:manager"):
        load("redis")


# ------------------------------------------------------------------ mistakes


@pytest.mark.parametrize(
    ("end", "reference", "message"),
    [
        ("def make_manager() -> Manager: ...", "notes.py",
         "notes.py has no `manager`; it has note, make_manager; did you mean `notes.py:make_manager`?"),
        ("manager = Manager().add(note)", "notes:manger",
         "notes has no `manger`; it has manager, note; did you mean `notes:manager`?"),
        ("def make(kind, *, size): ...", "notes:make", "notes:make needs arguments (kind, size)"),
        ("async def make(): ...", "notes:make", "notes:make is asynchronous"),
        ("manager = 3", "notes", "notes:manager is of the type int: name a Manager"),
        ("manager = [note, Note]", "notes", "notes:manager has the class Note among its controllers"),
        ("manager = Manager()", "notes", "notes:manager has no controllers"),
        ("def make(): return None", "notes:make", "notes:make is of the type NoneType"),
        ("def make(): return 1 // 0", "notes:make",
         "notes:make() fails (notes.py, line 15): ZeroDivisionError"),
        ("Manager().add(note).run()", "notes.py",
         "notes.py starts its operator when it is imported (notes.py, line 15): put that under `if __name__"),
        ("try:\n  Manager().add(note).run()\nexcept Exception: pass", "notes.py", "starts its operator"),
        ("import asyncio; asyncio.run(Manager().add(note).serve(None))", "notes.py", "starts its operator"),
        ("import sys; sys.exit(3)", "notes.py", "notes.py ends the program when it is imported (notes.py, line 15)"),
        ("import nosuch.part", "notes.py",
         "notes.py cannot be imported (notes.py, line 15): ModuleNotFoundError: No module named 'nosuch'"),
        ("import nosuch", "notes", "the module notes cannot be imported (notes.py, line 15)"),
        ("x = = 1", "notes.py", "notes.py cannot be imported (notes.py, line 15): SyntaxError"),
        ("", "note.py", "the file note.py does not exist; did you mean notes.py?"),
        ("", "project/notees.py", "the file project/notees.py does not exist; did you mean project/notes.py?"),
        ("", "my-shop", "my-shop is not installed yet: `pip install -e .` here"),
        ("", "note:manager", "there is no module 'note' here or installed; did you mean notes?"),
        ("", "folder.py", "folder.py is a folder"),
        ("", "a/b", "'a/b' is not the name of an operator, a file that ends with .py, or module:attribute"),
        ("", "nakos", "there is no operator 'nakos'; did you mean nacos?"),
    ],
)  # fmt: skip
def test_a_mistake_is_named_with_what_to_do(write: Write, end: str, reference: str, message: str) -> None:
    write("notes.py", DECLARED + end)
    for path in ("folder.py/inside", "project/notes.py", "src/my_shop/__init__.py"):
        write(path, "")
    with pytest.raises(LoadError) as raised:
        load(reference)
    assert message in str(raised.value)


def test_a_module_without_anything_of_the_kind_is_told_how_to_begin(write: Write) -> None:
    write("empty.py", "import konverge\ndef helper(): ...")
    with pytest.raises(LoadError, match=r"empty.py has no `manager`, and nothing else .*: give it a `manager = "):
        load("empty.py")


def test_a_traceback_has_the_users_part_alone(write: Write) -> None:
    write("parts.py", "def broken():\n    raise ValueError('bad')\n")
    write("notes.py", "import parts\nparts.broken()\n")
    with pytest.raises(LoadError) as raised:
        load("notes.py")
    lines = raised.value.trace.splitlines()
    assert [line for line in lines if line.startswith("  File")] == [
        f'  File "{Path.cwd() / "notes.py"}", line 2, in <module>',
        f'  File "{Path.cwd() / "parts.py"}", line 2, in broken',
    ]
    assert lines[-1] == "ValueError: bad"
    write("wrong.py", "from konverge import Controller\nController()\n")
    with pytest.raises(LoadError) as raised:
        load("wrong.py")
    assert raised.value.trace.count("  File") == 1


def test_a_module_that_failed_is_imported_again_once_it_is_corrected(write: Write) -> None:
    write("notes.py", "import nosuch")
    with pytest.raises(LoadError):
        load("notes.py")
    write("notes.py", DECLARED + "manager = Manager().add(note)")
    assert load("notes.py").name == "notes"


def test_a_manager_runs_again_after_it_was_loaded(write: Write) -> None:
    """The mark of the import ends with the import."""
    write("notes.py", DECLARED + "Manager().add(note).run()")
    with pytest.raises(LoadError):
        load("notes.py")
    from konverge.runtime.importing import refuse_while_loading

    refuse_while_loading("any")
