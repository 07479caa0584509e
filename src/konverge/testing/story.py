"""The section that a failed test's report has: what happened in its cluster, and how to see it again.

Everything is read from the store behind the cluster, without its loop: a test may have failed in any state.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from konverge.testing.scene import Scene

if TYPE_CHECKING:
    from konverge.apiserver import ApiServer
    from konverge.explain import Answer

TITLE = "Konverge: the cluster's story"
SHOWN = 10
"""Lines of each part."""
LONGEST = 400


def story(scene: Scene) -> str:
    """The text of the section. A part that cannot be told says so: the failure of the test is what matters."""
    parts: list[tuple[str, Callable[[Scene], Iterable[str]]]] = [
        ("not ready", _not_ready),
        ("the last reconciles", _reconcile_lines),
        ("events", _events),
    ]
    lines = [again(scene)]
    for title, tell in parts:
        try:
            told = list(tell(scene))
        except Exception as error:
            told = [f"(cannot be told: {type(error).__name__}: {error})"]
        if told:
            lines += ["", f"{title}:", *(f"  {_short(line)}" for line in told)]
    return "\n".join(lines)


def again(scene: Scene) -> str:
    """The seed, and the command that shows the failure again."""
    if not scene.loop.virtual:
        return f"see it again: pytest {shlex.quote(scene.item.nodeid)}"
    return f"seed {scene.seed}; see it again: pytest {shlex.quote(scene.item.nodeid)} --konverge-seed {scene.seed}"


# ------------------------------------------------------------------ what is not ready


def _not_ready(scene: Scene) -> Iterable[str]:
    """The sickest objects, each with the chain to its cause."""
    if scene.cluster is None:
        return []
    from konverge.explain import Explainer, World, printable

    answers = Explainer(World(_objects(scene.cluster.server), now=scene.now())).sick()
    lines = [f"{printable(answer.sentence)}{_advice(answer)}" for answer in answers[:SHOWN]]
    return [*lines, *([f"and {len(answers) - SHOWN} more"] if len(answers) > SHOWN else [])]


def _advice(answer: Answer) -> str:
    return f" (advice: {answer.advice})" if answer.advice else ""


def _objects(server: ApiServer) -> Iterable[dict[str, Any]]:
    """Everything in the store, in one of its versions."""
    resources = {(served.resource.group, served.resource.plural): served.resource for served in server.registry}
    for (group, plural), resource in resources.items():
        for obj in server.objects.scan(group, plural):
            yield {"apiVersion": resource.api_version, "kind": resource.kind, **obj}


# ------------------------------------------------------------------ reconciles


def _reconcile_lines(scene: Scene) -> Iterable[str]:
    """The latest at the end; of a key that was reconciled again and again for the same end, one line."""
    from konverge.runtime.story.render import reconcile

    entries = [parts for story in scene.stories for parts in story.entries()]
    entries.sort(key=lambda parts: parts[2].began)
    lines: list[tuple[str, int, str]] = []
    for controller, kind, entry in entries:
        story = reconcile(entry, controller, kind, 0.0)
        subject = f"{controller} {entry.key} {entry.error}"
        text = f"at {entry.began:.3f} s {story}"
        if lines and lines[-1][0] == subject:
            lines[-1] = (subject, lines[-1][1] + 1, text)
        else:
            lines.append((subject, 1, text))
    return [f"{text} (the last of {count})" if count > 1 else text for _, count, text in lines[-SHOWN:]]


# ------------------------------------------------------------------ events


def _events(scene: Scene) -> Iterable[str]:
    if scene.cluster is None:
        return []
    events = [*scene.cluster.server.objects.scan("", "events")]
    events += scene.cluster.server.objects.scan("events.k8s.io", "events")
    events.sort(key=_when)
    return [_event(event) for event in events[-SHOWN:]]


def _when(event: dict[str, Any]) -> str:
    series = event.get("series") or {}
    named = (series.get("lastObservedTime"), event.get("lastTimestamp"), event.get("eventTime"))
    return str(next((time for time in named if time), event["metadata"].get("creationTimestamp", "")))


def _event(event: dict[str, Any]) -> str:
    about = event.get("involvedObject") or event.get("regarding") or {}
    name = "/".join(part for part in (about.get("namespace"), about.get("name")) if part)
    count = event.get("count") or (event.get("series") or {}).get("count") or 1
    often = f" ({count} times)" if count > 1 else ""
    message = event.get("message") or event.get("note") or ""
    what = f"{event.get('type', '')} {event.get('reason', '')} {about.get('kind', '')} {name}"
    return f"{_when(event)} {what}: {message}{often}"


def _short(line: str) -> str:
    line = " ".join(line.split())
    return line if len(line) <= LONGEST else f"{line[:LONGEST]}…"
