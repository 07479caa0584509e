"""Our end of a pseudo terminal: what a process says there is heard, what a client types is written, its size is set."""

from __future__ import annotations

import asyncio
import errno
import fcntl
import os
import struct
import termios
from collections.abc import Callable
from contextlib import suppress

CHUNK = 32 * 1024


class Terminal:
    """Our end of a pseudo terminal. Once it is closed nothing happens to it: its number may be another file's."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._say: Callable[[bytes], None] = lambda data: None
        self._open = True
        os.set_blocking(fd, False)

    def say_to(self, say: Callable[[bytes], None]) -> None:
        self._say = say
        self.hold(False)

    def hold(self, held: bool) -> None:
        loop = asyncio.get_running_loop()
        if held or not self._open:
            loop.remove_reader(self._fd)
        else:
            loop.add_reader(self._fd, self._read)

    def _read(self) -> None:
        try:
            data = os.read(self._fd, CHUNK)
        except BlockingIOError:
            return
        except OSError:  # EIO: no process has the other end open any more
            data = b""
        if data:
            self._say(data)
        else:
            asyncio.get_running_loop().remove_reader(self._fd)

    async def write(self, data: bytes) -> None:
        while data and self._open:
            try:
                data = data[os.write(self._fd, data) :]
            except BlockingIOError:
                await asyncio.sleep(0.01)  # a terminal that is not being read; typing is slow anyway
            except OSError as error:
                if error.errno == errno.EIO:
                    return
                raise

    def end(self) -> None:
        if self._open:
            with suppress(OSError):
                os.write(self._fd, b"\x04")

    def resize(self, columns: int, rows: int) -> None:
        if self._open:
            size = struct.pack("HHHH", min(rows, 0xFFFF), min(columns, 0xFFFF), 0, 0)
            fcntl.ioctl(self._fd, termios.TIOCSWINSZ, size)

    def rest(self) -> None:
        """What was said last is still in the terminal when its process has ended."""
        for _ in range(1024 if self._open else 0):
            try:
                data = os.read(self._fd, CHUNK)
            except OSError:
                return
            if not data:
                return
            self._say(data)

    def close(self) -> None:
        if self._open:
            self._open = False
            asyncio.get_running_loop().remove_reader(self._fd)
            os.close(self._fd)
