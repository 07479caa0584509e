"""A server as a process, to be killed: `python server_process.py FOLDER` prints its address and its token."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from konverge.apiserver import ApiServer


async def serve(folder: Path) -> None:
    async with ApiServer(data_dir=folder) as server:
        print(await server.listen(), server.token, flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(serve(Path(sys.argv[1])))
