"""`konverge chart`: a Helm chart of an operator."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from konverge.cli.arguments import add_operators, chosen_operators, command
from konverge.cli.exit import UsageError


def add(commands: Any) -> None:
    about = "make a Helm chart of an operator: definitions, roles from its code, Deployment, Service, budget, monitor"
    parser = command(
        commands,
        "chart",
        about,
        "konverge chart nacos --dir charts",
    )
    add_operators(parser)
    parser.add_argument("--dir", type=Path, default=Path("charts"), help="where the chart's folder is made (charts)")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    from importlib.metadata import version

    from konverge.cli.charts import chart

    for operator in chosen_operators(arguments.operators):
        folder: Path = arguments.dir / operator.identity
        if folder.exists() and not (folder / "Chart.yaml").exists() and any(folder.iterdir()):
            raise UsageError(f"{folder} is there and no chart: give another --dir, or remove it")
        for path, text in chart(operator, version("konverge")).items():
            file = folder / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
        print(folder)
    return 0
