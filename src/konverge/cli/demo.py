"""`konverge demo`: an operator at work on an embedded cluster, in virtual time, step by step."""

from __future__ import annotations

import argparse
import json
from importlib import import_module
from typing import Any

from konverge.cli.arguments import add_output, command

DEMOS = ("webapp",)
"""Modules of `konverge.cli.demos` with `play() -> Story`."""


def add(commands: Any) -> None:
    about = "show what an operator does, on an embedded cluster and without waiting"
    parser = command(commands, "demo", about, "konverge demo webapp", "konverge demo webapp --lang zh")
    parser.add_argument("name", choices=DEMOS, metavar="NAME", help=f"the operator: {', '.join(DEMOS)}")
    parser.add_argument("--lang", choices=("en", "zh"), default="en", help="language of the story (en)")
    add_output(parser, "text", "json")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    from konverge.cli.demos.story import Story
    from konverge.cli.terminal import Paint

    story: Story = import_module(f"konverge.cli.demos.{arguments.name}").play()
    if arguments.output == "json":
        print(json.dumps(story.facts(), ensure_ascii=False))
    else:
        print("\n".join(story.lines(arguments.lang, Paint.on())))
    return 0 if story.fine else 1
