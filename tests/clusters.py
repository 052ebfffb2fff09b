"""Schedulers and workers of Dask as processes of their own, on loopback, at ports that the system chooses.

As a program, `clusters.py scheduler` and `clusters.py worker ADDRESS` are such a process. It prints its address, and
ends with its standard input, so nothing is left of it however a test ends.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

ENVIRONMENT = {
    "POLARS_MAX_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "DASK_DISTRIBUTED__LOGGING__DISTRIBUTED": "error",
}


class Process:
    """A scheduler or a worker. `address` is what it has printed."""

    def __init__(self, *arguments: str, before: str = "", **environment: str) -> None:
        """`before` is a line of Python that it begins with."""
        self._process = subprocess.Popen(
            [sys.executable, __file__, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env={**os.environ, **ENVIRONMENT, **environment, "BEFORE": before},
        )
        self.pid = self._process.pid

    @property
    def address(self) -> str:
        """Return the listening address; waits for it."""
        if not hasattr(self, "_address"):
            self._address = self._process.stdout.readline().strip()
        return self._address

    def kill(self) -> None:
        """Ends it at once."""
        self._process.kill()
        self._process.wait()

    def cpu_s(self) -> float:
        """The processor's time that it has had."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def close(self) -> None:
        """Ends it, whatever it does."""
        self.kill()
        self._process.stdin.close()
        self._process.stdout.close()


class Cluster:
    """A scheduler, to which workers can be added."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack
        self.scheduler = self._begun("scheduler")
        self.workers: list[Process] = []

    @property
    def address(self) -> str:
        """The scheduler's."""
        return self.scheduler.address

    def add(self, threads: int = 1, before: str = "", **environment: str) -> Process:
        """Starts a worker; it comes when it comes."""
        self.workers.append(self._begun("worker", self.address, str(threads), before=before, **environment))
        return self.workers[-1]

    def _begun(self, *arguments: str, **more: str) -> Process:
        process = Process(*arguments, **more)
        self._stack.callback(process.close)
        return process


@contextmanager
def cluster(workers: int = 0) -> Iterator[Cluster]:
    """A scheduler with so many workers of one thread each; all end with the block."""
    with ExitStack() as stack:
        made = Cluster(stack)
        for _ in range(workers):
            made.add()
        for worker in made.workers:
            assert worker.address
        yield made


def _end_with_input() -> None:
    sys.stdin.read()
    os._exit(0)


async def _serve(what: str, *arguments: str) -> None:
    from distributed import Scheduler, Worker

    local = {"host": "127.0.0.1", "dashboard": False}
    if what == "scheduler":
        server = Scheduler(port=0, dashboard_address=None, **local)
    else:
        server = Worker(arguments[0], nthreads=int(arguments[1]), memory_limit=0, local_directory=None, **local)
    async with server:
        print(server.address, flush=True)
        await server.finished()


if __name__ == "__main__":
    threading.Thread(target=_end_with_input, daemon=True).start()
    exec(os.environ["BEFORE"])  # noqa: S102 (a line of a test)
    asyncio.run(_serve(*sys.argv[1:]))
