"""A process that has imported everything, and forks others that are killed: a start of Python costs a second each.

It imports what the first of its children has imported in the end, and uses none of it, since the threads that packages
start would not be there in a child. Run as a program it reads tasks from standard input, a line of JSON each, and
answers each with how its process ended and when.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any


class Warm:
    """The process, and what it is asked to do. Use it in a `with` block."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | {"POLARS_MAX_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
        )

    def __enter__(self) -> Warm:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.stdin.close()
        self._process.wait()

    def do(self, what: str, *arguments: str, kill_after_s: float = 300.0) -> tuple[int, float]:
        """Does something in a process of its own. Returns its status, 9 if it was killed, and its seconds."""
        self._process.stdin.write(json.dumps([what, arguments, kill_after_s]) + "\n")
        self._process.stdin.flush()
        status, elapsed_s = json.loads(self._process.stdout.readline())
        return status, elapsed_s


def _sweep(scenario: str, out: str) -> None:
    """A sweep whose runs are made in this process, with a part for each."""
    from ackclock.experiments.sweep import folder, run, worker

    def run_all(order: Any, runs: Any, parts: Any, *_: Any, **__: Any) -> None:
        made = worker.Worker(order)
        for one in runs:
            parts.add(made.rows([one]))

    folder.PART_S = folder.PART_SHARE = 0.0
    run.run_all = run_all
    run.sweep(Path(scenario), out=out)


def _command(*arguments: str) -> None:
    from contextlib import suppress

    from ackclock.cli.program import application

    with suppress(SystemExit):
        application(list(arguments))


def _child(what: str, arguments: list[str], answer: int) -> None:
    with open(os.devnull, "w") as nowhere:  # noqa: PTH123
        os.dup2(nowhere.fileno(), 1)
    try:
        {"sweep": _sweep, "command": _command}[what](*arguments)
        os.write(answer, " ".join(sys.modules).encode())
        os._exit(0)
    except BaseException as error:
        os.write(2, f"{what} {arguments}: {type(error).__name__}: {error}\n".encode())
        os._exit(1)


def _ended(process: int, kill_after_s: float) -> tuple[int, float]:
    began_s = time.monotonic()
    handle = os.pidfd_open(process)
    try:
        if not select.select([handle], [], [], kill_after_s)[0]:
            os.kill(process, signal.SIGKILL)
        status = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
        return abs(status), time.monotonic() - began_s
    finally:
        os.close(handle)


def main() -> None:
    """Serves until standard input ends."""
    for line in sys.stdin:
        what, arguments, kill_after_s = json.loads(line)
        answer = os.memfd_create("modules")
        process = os.fork()
        if process == 0:
            _child(what, arguments, answer)
        print(json.dumps(_ended(process, kill_after_s)), flush=True)
        _import(os.pread(answer, 1 << 20, 0).decode().split())
        os.close(answer)


def _import(names: list[str]) -> None:
    for name in names:
        if name not in sys.modules and name.split(".")[0] != "__mp_main__":
            with suppress(Exception):
                import_module(name)


if __name__ == "__main__":
    main()
