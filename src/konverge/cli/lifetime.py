"""A cluster in the user's list of clusters, from start to end: `konverge status` and `konverge down` read it."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from msgspec.structs import replace

from konverge.cli.arguments import refuse_unless_free
from konverge.cli.cluster_folders import ClusterFolder, Record
from konverge.cli.cluster_names import DEFAULT
from konverge.cli.databases import without_password
from konverge.cli.endpoints import Endpoints
from konverge.cli.exit import CommandFailed
from konverge.cli.local_processes import start_mark
from konverge.cli.user_kubeconfig import merge, unmerge, user_kubeconfig
from konverge.objects import times


class Lifetime:
    """One run of a cluster. Without a folder it is in no list."""

    def __init__(self, folder: ClusterFolder | None, arguments: argparse.Namespace) -> None:
        self.folder = folder
        self._arguments = arguments
        self._merged: Path | None = None
        self._left = ""
        """The kubeconfig that still has the context of the last run: it is taken out at the end of this one."""
        if arguments.merge_kubeconfig:
            self._merged = user_kubeconfig(os.environ).absolute()

    @property
    def name(self) -> str:
        return self.folder.name if self.folder is not None else ""

    def port(self) -> int:
        """Where to listen: as asked for, else where it was the last time if that is free, else anywhere (0)."""
        asked: int = self._arguments.port
        remembered = 0 if asked or self.folder is None else self.folder.port
        if not remembered:
            return asked
        try:
            refuse_unless_free("--port", (self._arguments.host, remembered))
        except CommandFailed:
            return 0
        return remembered

    def starts(self) -> None:
        """From now on it can be ended by its name. What a run that was killed left behind is noticed and removed."""
        if self.folder is None:
            return
        remains = self.folder.record()
        if remains is not None:
            print(_killed(remains), file=sys.stderr)
            if not take_out(remains):
                self._left = remains.merged
            self.folder.clear()
        self.folder.write(self._record())

    def serves(self, endpoints: Endpoints) -> Endpoints:
        """From now on it can be used. Returns the endpoints with what was done for the user."""
        if self.folder is None:
            return endpoints
        if self._merged is not None:
            kubeconfig = json.loads(endpoints.kubeconfig.read_bytes())
            switch = self._arguments.switch_context
            merge(self._merged, context_name(self.name), kubeconfig, switch=switch)
            endpoints = replace(endpoints, context=context_name(self.name), merged=str(self._merged))
        record = replace(
            self._record(),
            url=endpoints.url,
            kubeconfig=str(endpoints.kubeconfig),
            nodes=endpoints.nodes,
            operators=endpoints.operators,
            console=endpoints.console,
            metrics=endpoints.metrics,
        )
        self.folder.remember_port(urlsplit(endpoints.url).port or 0)
        self.folder.write(record)
        return endpoints

    def ends(self) -> None:
        record = self.folder.record() if self.folder is not None else None
        if self.folder is not None and record is not None:
            if take_out(record):
                self.folder.clear()
            else:
                print(f"konverge up: try again by `konverge down {self.name}`", file=sys.stderr)

    def _record(self) -> Record:
        data_dir: Path | None = self._arguments.data_dir
        assert self.folder is not None
        return Record(
            name=self.name,
            pid=os.getpid(),
            started=start_mark(os.getpid()),
            since=times.now(),
            data_dir=str(data_dir.resolve()) if data_dir is not None else "",
            log=str(self.folder.log) if self._arguments.in_background else "",
            merged=str(self._merged or self._left),
            arguments=tuple(map(without_password, self._arguments.argv)),
        )


@contextmanager
def lifetime(arguments: argparse.Namespace) -> Iterator[Lifetime]:
    """Inside the block, the cluster has its name. Raises Taken."""
    folder = ClusterFolder(arguments.name or DEFAULT)
    with ExitStack() as stack:
        try:
            stack.enter_context(folder.claimed())
        except OSError as error:
            if arguments.name or arguments.in_background or arguments.merge_kubeconfig:
                raise CommandFailed(f"{folder.path}: {error.strerror}; set XDG_STATE_HOME to another folder") from error
            print(f"konverge up: {folder.path}: {error.strerror}; no `konverge status` lists this", file=sys.stderr)
            yield Lifetime(None, arguments)
            return
        run = Lifetime(folder, arguments)
        run.starts()
        stack.callback(run.ends)
        yield run


def context_name(cluster: str) -> str:
    """Of the context, the cluster and the user in a kubeconfig of the user."""
    return f"konverge-{cluster}"


def take_out(record: Record) -> bool:
    """Take the context of a cluster out of the user's kubeconfig, if it is there. What prevents it is printed; returns
    False then, and it has to be tried again.
    """
    if record.merged:
        try:
            unmerge(Path(record.merged), context_name(record.name))
        except (CommandFailed, OSError) as error:
            print(f"konverge: the context {context_name(record.name)} stays: {error}", file=sys.stderr)
            return False
    return True


def _killed(record: Record) -> str:
    log = f"; its log: {record.log}" if record.log and Path(record.log).exists() else ""
    return f"konverge up: the last run of {record.name!r} (process {record.pid}) was killed or crashed{log}"
