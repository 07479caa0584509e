"""`konverge why`: why an object, or anything in the cluster, is not ready: the chain to the cause, in one sentence."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from konverge.cli.arguments import add_output, command
from konverge.cli.exit import FAILED
from konverge.cli.targets import CouldNotAsk, add_target, configured, kinds_named, no_such_object, parse_target, resolve
from konverge.cli.targets import where as chosen_namespace
from konverge.cli.terminal import Paint

if TYPE_CHECKING:
    from konverge.cli.operator_stories import StoryPlace
    from konverge.client import Client
    from konverge.explain import Answer, Branch, Health, Ref
    from konverge.runtime.story.model import ReconcileStory


def add(commands: Any) -> None:
    parser = command(
        commands,
        "why",
        "say why an object is not ready, down to the cause; without one, what is not ready",
        "konverge why deploy/web",
        "konverge why pvc data-db-0 -n shop --tree",
        "konverge why -A",
    )
    add_target(parser, optional=True)
    parser.add_argument("--tree", action="store_true", help="draw the object with what it owns and uses")
    parser.add_argument(
        "--operator",
        metavar="URL",
        help="ask this operator why it reconciled the object last (those of `konverge up` are found)",
    )
    parser.add_argument("--operator-token-file", type=Path, metavar="FILE", help="with --operator: a bearer token")
    parser.add_argument("--operator-ca-file", default="", metavar="FILE", help="with --operator: whom to trust")
    add_output(parser, "text", "json")
    parser.set_defaults(run=run, places=[])


def run(arguments: argparse.Namespace) -> int:
    import asyncio

    parse_target(arguments.target)
    config = configured(arguments)
    arguments.places = _places(arguments, config.server)

    async def ask() -> tuple[str, int]:
        from konverge.client import Client

        async with Client.connect(config, user_agent="konverge/why") as client:
            return await explain(client, arguments, chosen_namespace(arguments, config), Paint.on())

    text, code = asyncio.run(ask())
    print(text)
    return code


def _places(arguments: argparse.Namespace, server: str) -> list[StoryPlace]:
    from konverge.cli.operator_stories import named_place, places_of

    if arguments.operator:
        return [named_place(arguments.operator, arguments.operator_token_file, arguments.operator_ca_file)]
    return places_of(server)


async def explain(client: Client, arguments: argparse.Namespace, space: str, paint: Paint) -> tuple[str, int]:
    """What to print, and the exit code: 0 ready, 1 not ready. Raises CouldNotAsk."""
    from konverge.client import ClientError

    target = parse_target(arguments.target)
    try:
        if not target.name:
            return await _everything(client, arguments, target.kind, space, paint)
        return await _object(client, arguments, space, paint)
    except ClientError as error:
        raise CouldNotAsk(str(error)) from error


async def _object(client: Client, arguments: argparse.Namespace, space: str, paint: Paint) -> tuple[str, int]:
    from konverge.client import NotFound
    from konverge.explain import Gatherer, Health, as_json

    ref = await resolve(client, parse_target(arguments.target), space)
    try:
        answer = await Gatherer(client).why(ref, tree=arguments.tree)
    except NotFound as error:
        raise CouldNotAsk(await no_such_object(client, ref)) from error
    code = 0 if answer.health is Health.READY else FAILED
    stories, problems = await _stories(arguments.places, ref)
    if arguments.output == "json":
        return json.dumps({**as_json(answer), **_as_document(stories, problems)}, indent=2), code
    lines = [*_answer_lines(answer, paint), *_story_lines(stories, paint)]
    lines += _unread_lines([*answer.unread, *problems], paint)
    if answer.tree is not None:
        lines += ["", *tree_lines(answer.tree, paint)]
    return "\n".join(lines), code


async def _stories(places: list[StoryPlace], ref: Ref) -> tuple[list[ReconcileStory], list[str]]:
    if not places:
        return [], []
    from konverge.cli.operator_stories import stories_of

    return await stories_of(places, ref)


def _as_document(stories: list[ReconcileStory], problems: list[str]) -> dict[str, Any]:
    if not stories and not problems:
        return {}
    import msgspec

    return {"reconciles": msgspec.to_builtins(stories), **({"unreached": problems} if problems else {})}


def _story_lines(stories: list[ReconcileStory], paint: Paint) -> list[str]:
    if not stories:
        return []
    from konverge.cli.operator_stories import story_lines
    from konverge.explain import printable

    return [paint(f"  {printable(line)}", "dim") for line in story_lines(stories)]


async def _everything(
    client: Client, arguments: argparse.Namespace, kind: str, space: str, paint: Paint
) -> tuple[str, int]:
    from konverge.explain import Gatherer, as_json

    kinds = await kinds_named(client, kind) if kind else None
    gatherer = Gatherer(client)
    answers = await gatherer.sick(space)
    if kinds is not None:
        answers = [answer for answer in answers if (answer.ref.group, answer.ref.kind) in kinds]
    code = FAILED if answers else 0
    if arguments.output == "json":
        whole = {"notReady": [as_json(answer) for answer in answers], "unread": gatherer.unread}
        return json.dumps(whole, indent=2), code
    lines = _group_lines(answers, space, paint) if answers else [f"everything is ready{_place(space)}"]
    return "\n".join([*lines, *_unread_lines(gatherer.unread, paint)]), code


def _place(space: str) -> str:
    return f" in namespace {space}" if space else ""


_COLOURS = {"ready": "ok", "progressing": "warn", "waiting": "warn", "failed": "fail", "unknown": "dim"}


def _health(health: Health, paint: Paint, width: int = 0) -> str:
    return paint(health.value.ljust(width), _COLOURS[health.value])


def _answer_lines(answer: Answer, paint: Paint) -> list[str]:
    from konverge.explain import printable

    lines = [f"{_health(answer.health, paint)}: {printable(answer.sentence)}"]
    if answer.advice:
        lines.append(f"  to do: {printable(answer.advice)}")
    if answer.log:
        pod = answer.chain[-1].ref.name
        lines.append(f"  last lines of container {printable(answer.container)} of pod {printable(pod)}:")
        lines += [paint(f"    {printable(line)}", "dim") for line in answer.log]
    return lines


def _unread_lines(unread: list[str], paint: Paint) -> list[str]:
    from konverge.explain import printable

    return [paint(f"  not looked at: {printable(text)}", "dim") for text in unread]


def _group_lines(answers: list[Answer], space: str, paint: Paint) -> list[str]:
    """A paragraph per cause, the sickest first: the sentence of the first object, and who else waits for the same."""
    from konverge.explain import grouped, printable

    lines = []
    groups = grouped(answers)
    for first, members in groups:
        name = f"{first.ref.namespace}: " if not space and first.ref.namespace else ""
        lines.append(f"{_health(first.worst, paint, 11)} {printable(name + first.sentence)}")
        if len(members) > 1:
            others = [f"{member.ref}" for member in members[1:]]
            more = f" and {len(others) - 5} more" if len(others) > 5 else ""
            lines.append(f"{'':11}   also: {printable(', '.join(others[:5]))}{more}")
        if first.advice:
            lines.append(f"{'':11}   to do: {printable(first.advice)}")
    objects = "1 object is" if len(answers) == 1 else f"{len(answers)} objects are"
    causes = "one cause" if len(groups) == 1 else f"{len(groups)} causes"
    return [*lines, f"{objects} not ready{_place(space)}, for {causes}"]


def tree_lines(root: Branch, paint: Paint) -> list[str]:
    """A tree as text, a line per object: how it is, and in which way it stands to the one above."""
    from konverge.explain import printable

    lines: list[str] = []

    def draw(branch: Branch, head: str, tail: str) -> None:
        relation = f"{branch.relation} " if branch.relation not in ("", "owns") else ""
        says = "" if branch.says == f"is {branch.health.value}" else f"  {printable(branch.says)}"
        name = f"{relation}{printable(str(branch.ref))}"
        lines.append(f"{head}{name}  {_health(branch.health, paint)}{paint(says, 'dim')}")
        below = branch.children
        for number, child in enumerate(below):
            last = number == len(below) - 1 and not branch.cut
            draw(child, f"{tail}{'└─ ' if last else '├─ '}", f"{tail}{'   ' if last else '│  '}")
        if branch.cut:
            lines.append(f"{tail}└─ … and {branch.cut} more")

    draw(root, "", "")
    return lines
