"""An operator as a program of its own: `backup run`, `backup crd`, `backup manifests` and the like.

    manager = Manager(name="backup")
    main = operator_main(manager)

    if __name__ == "__main__":
        main()

The commands are those of `konverge`, for this operator alone. Without a command nothing is started: the help is shown.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from types import ModuleType

    from konverge.cli.parsing import Parser
    from konverge.operators.catalog import Operator

COMMANDS = ("run", "doctor", "manifests", "sim")
"""The modules whose commands an operator has."""


class OperatorProgram:
    """What `operator_main` returns: call it without arguments, or with those to use in place of `sys.argv`."""

    def __init__(self, declared: Any, command: str, module: ModuleType | None) -> None:
        self._declared = declared
        self._command = command
        self._module = module

    def __call__(self, argv: Sequence[str] | None = None) -> None:
        """Runs a command and ends the process with its status."""
        from konverge.runtime.importing import refuse_while_loading

        refuse_while_loading(self._command or "of this module")
        sys.exit(self.run(argv))

    def run(self, argv: Sequence[str] | None = None) -> int:
        """Runs a command; returns its status."""
        from konverge.cli.boundary import run_program
        from konverge.operators.loading import LoadError

        try:
            operator = self.operator()
        except LoadError as error:
            print(f"{error.trace}\n{error}".strip(), file=sys.stderr)
            return 2
        return run_program(lambda: self.parser(operator), lambda: operator.version or "0", argv)

    def operator(self) -> Operator:
        """The operator that was declared. Raises LoadError."""
        from dataclasses import replace

        from konverge.operators.loading import as_installed, as_operator

        operator = as_installed(as_operator(self._declared, module=self._module, what="the operator"))
        return replace(operator, command=(self._command or operator.name, "run"))

    def parser(self, operator: Operator) -> Parser:
        from konverge.cli.arguments import OwnCommands
        from konverge.cli.boundary import add_common
        from konverge.cli.parsing import Parser

        program = operator.start[0]
        made = Parser(
            prog=program,
            description=f"{operator.summary[:1].upper()}{operator.summary[1:]}.",
            epilog=f"`{program} run` starts the operator; `{program} COMMAND --help` says more about each.",
        )
        add_common(made)
        commands = made.add_subparsers(dest="command", metavar="COMMAND")
        for name in COMMANDS:
            import_module(f"konverge.cli.{name}").add(OwnCommands(commands, program, [operator]))
        return made


def operator_main(declared: Any, *, command: str = "") -> OperatorProgram:
    """The `main` of an operator's own program, from its Manager, its controllers, or a function that makes them.

    Nothing is looked at or started before it is called. `command` is the name of the program, which is that of the
    manager by default: `[project.scripts]` of a project calls it the same, since the manifests start it so.

        main = operator_main(manager)
    """
    module = sys.modules.get(sys._getframe(1).f_globals.get("__name__", ""))
    return OperatorProgram(declared, command, module)
