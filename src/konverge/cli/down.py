"""`konverge down`: end clusters that `konverge up` started, in the background or in a terminal, and what they left."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from konverge.cli.arguments import command, count
from konverge.cli.cluster_names import DEFAULT, cluster_name
from konverge.cli.exit import CommandFailed, UsageError

if TYPE_CHECKING:
    from konverge.cli.cluster_folders import ClusterFolder

END_WITHIN = 30


def add(commands: Any) -> None:
    about = "end clusters that `konverge up` started"
    parser = command(commands, "down", about, "konverge down", "konverge down dev", "konverge down --all")
    parser.add_argument("names", nargs="*", type=cluster_name, metavar="NAME", help=f"names of clusters ({DEFAULT})")
    parser.add_argument("--all", action="store_true", help="all clusters of this user")
    parser.add_argument(
        "--wait",
        type=count(1, 3600),
        default=END_WITHIN,
        metavar="SECONDS",
        help=f"how long one may take to end before it is killed ({END_WITHIN})",
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    from konverge.cli.cluster_folders import ClusterFolder, known_clusters

    if arguments.all and arguments.names:
        raise UsageError("give names, or --all")
    if arguments.all:
        folders = [folder for folder in known_clusters() if folder.record() is not None]
        if not folders:
            print("no cluster runs")
    else:
        folders = [ClusterFolder(name) for name in dict.fromkeys(arguments.names or [DEFAULT])]
        for folder in folders:
            _refuse_unless_known(folder)
    failed = []
    for folder in folders:
        try:
            print(end(folder, arguments.wait), flush=True)
        except CommandFailed as error:  # the others are ended nevertheless
            failed.append(str(error))
    if failed:
        raise CommandFailed("; ".join(failed))
    return 0


def _refuse_unless_known(folder: ClusterFolder) -> None:
    from konverge.cli.cluster_folders import known_clusters

    if not folder.path.is_dir():
        names = ", ".join(known.name for known in known_clusters())
        raise CommandFailed(f"there is no cluster {folder.name!r}" + (f"; there are: {names}" if names else ""))


def end(folder: ClusterFolder, seconds: float) -> str:
    """End a cluster and remove what it left. Returns what was done."""
    from konverge.cli import local_processes
    from konverge.cli.cluster_folders import is_starting
    from konverge.cli.lifetime import context_name, take_out

    record = folder.record()
    if record is None:
        if folder.running:
            raise CommandFailed(is_starting(folder.name))
        return f"{folder.name}: does not run"
    outcome = local_processes.end(record.pid, record.started, within=seconds)
    with folder.unclaimed() as unclaimed:
        if unclaimed:
            remains = folder.record()
            if remains is not None and not take_out(remains):
                again = f"`konverge down {folder.name}` tries again"
                raise CommandFailed(f"the cluster {folder.name!r} does not run; its context stays: {again}")
            folder.clear()
        elif outcome == "gone":
            raise CommandFailed(
                f"the cluster {folder.name!r} (process {record.pid}) runs in another container or user's view; "
                "end it there"
            )
    what = {
        "ended": "ended",
        "killed": f"killed: it did not end within {seconds} s",
        "gone": f"had been killed or had crashed (process {record.pid}); removed what it left",
    }[outcome]
    merged = f"; the context {context_name(record.name)} is gone from {record.merged}" if record.merged else ""
    kept = f"; its state is kept in {record.data_dir}" if record.data_dir else ""
    return f"{folder.name}: {what}{merged}{kept}"
