"""An agent on another host: copied there, checked, told what to do, and gone at the end.

`crates/ackclock-agent` is its other side. What is said goes over the standard input and output of one ssh: a line of
JSON each. The agent's guard undoes all changes when the connection ends, and when nothing was heard for `PATIENCE_S`.
"""

from __future__ import annotations

import hashlib
import json
import os
import queue
import re
import shlex
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

from ackclock import _core
from ackclock.errors import AckclockError, InputError
from ackclock.hosts import ssh
from ackclock.hosts.clocks import Exchange, Offset, offset
from ackclock.system import signals

#: The form of the messages; `FORM` of `messages.rs`.
FORM = 2

#: How long an agent may hear nothing before its guard undoes everything, and how often it hears something.
PATIENCE_S = 20
ALIVE_S = 2.0

#: How long an answer may take, that a login may take, and that undoing may.
ANSWER_S = 15.0
LOGIN_S = 30.0
UNDO_S = 30.0

#: How long a connection may take to end by itself.
END_S = 1.0

#: What runs the script on this machine.
LOCALLY = ["sh", "-c"]

#: Exchanges by which a clock is related to ours.
EXCHANGES = 40

#: The line of the script below that asks for the agent.
SEND = "ackclock:send "

#: What the host's sh does: a private folder, the agent into it, its sum, and then the agent alone. Each way out of it
#: removes the folder, until the agent's guard does.
SCRIPT = """\
umask 077
d=
trap 'test -n "$d" && rm -rf "$d"' EXIT
trap 'exit 90' HUP INT TERM PIPE
d=$(mktemp -d "${TMPDIR:-/tmp}/ackclock-agent.XXXXXXXXXX") || exit 91
echo "%(send)s$(uname -m)" || exit 92
read -r size sum || exit 92
timeout 60 head -c "$size" > "$d/agent" || exit 92
echo "$sum  $d/agent" | sha256sum -c > /dev/null 2>&1 || exit 93
chmod 700 "$d/agent" && "$d/agent" --version > /dev/null || exit 94
trap - EXIT
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin exec "$d/agent" serve "$d" %(patience)d
"""

#: The script's statuses, in words.
ENDS = {
    90: "its shell was told to end",
    91: "found no private folder for the agent; expected room in /tmp, or in the login's TMPDIR",
    92: "the connection ended while the agent was copied",
    93: "the agent did not arrive as it was sent; expected its SHA-256 (and the program sha256sum)",
    94: "the agent cannot be run there; expected Linux, and a /tmp (or TMPDIR) from which programs may run",
}

Message: TypeAlias = dict[str, Any]


class HostError(AckclockError):
    """Something failed on a host, or on the way to it."""


class HostInputError(InputError):
    """A host that cannot be used as it is."""


def program(machine: str) -> Path:
    """The agent's file for a kind of processor, as `uname -m` has it. Raises `InputError` if none was built."""
    name = machine if re.fullmatch(r"[A-Za-z0-9_]+", machine) else "unknown"
    file = Path(__file__).parent / f"ackclock-agent-{name}"
    if not file.is_file():
        raise InputError(f"found no agent for {name} machines; expected {file}: `make agent` builds this machine's own")
    return file


class Agent:
    """An agent, as we know it: what was asked is answered in turn, what a run tells comes in between."""

    def __init__(self, name: str, process: subprocess.Popen[bytes]) -> None:
        self.name, self._process = name, process
        self.hello: Message = {}
        self.share, self.over, self.files = 0.0, False, dict[str, bytes]()
        self.heard_s = time.monotonic()
        self._unread = 0
        self._heard: queue.Queue[Message | str | None] = queue.Queue()
        self._errors: list[bytes] = []
        self._writing = threading.Lock()
        for listen in (self._listen, self._listen_to_errors):
            threading.Thread(target=listen, daemon=True).start()

    # --- what is said -----------------------------------------------------------------------------------

    def ask(self, ask: str, within_s: float = ANSWER_S, **more: Any) -> Message:
        """Asks and waits for the answer. Raises `HostError`: the agent is gone, silent, or could not."""
        self.tell(ask, **more)
        return self.answer(within_s)

    def tell(self, ask: str, **more: Any) -> int:
        """Asks, and waits for no answer; when, by our monotonic clock in ns. Raises `HostError` if it is gone."""
        line = json.dumps({"ask": ask, **more}).encode() + b"\n"
        asked_ns = time.monotonic_ns()
        self._send(line)
        return asked_ns

    def answer(self, within_s: float = ANSWER_S) -> Message:
        """The next answer. Raises `HostError` as `ask` does."""
        while self._unread:
            self._next(within_s)
            self._unread -= 1
        found = self._next(within_s)
        if isinstance(found, str):
            raise HostError(f'host "{self.name}": found {found[:80]!r}; expected an answer of its agent')
        self._check(found)
        return found

    def clock(self, exchanges: int = EXCHANGES) -> Offset:
        """What its monotonic clock is ahead of ours."""
        return offset([self._exchange() for _ in range(exchanges)])

    def change(self, changes: Sequence[Mapping[str, Any]]) -> None:
        """Changes the host until the end: `{"sysctl", "value"}` or `{"run", "undo"}`. Raises `HostError`."""
        if changes:
            self.ask("change", UNDO_S, changes=list(changes))

    def prepare(self, order: Mapping[str, Any]) -> None:
        """Has it make ready for a run, which is its only one from now on. Raises `HostError`."""
        self.share, self.over = 0.0, False
        self.files.clear()
        self.ask("order", order=dict(order))

    def look(self, *commands: Sequence[str], apart: bool = False) -> list[tuple[int | None, str, str]]:
        """Status (None: it could not be run), output and errors of commands of `ip`, `tc` and `ethtool`."""
        said = self.ask("look", commands=[list(words) for words in commands], apart=apart)["said"]
        return [(status, output, _line(error)) for status, output, error in said]

    def read(self, *paths: str) -> list[str]:
        """What stands in files of /proc and /sys; nothing in one that cannot be read."""
        return [text or "" for text in self.ask("read", paths=list(paths))["texts"]]

    def room(self, place: str) -> Message:
        """Of a place: `free_bytes`, `file_bytes` of a file; or `why` nothing can be read or written there."""
        return self.ask("room", place=place)

    def ask_silently(self) -> None:
        """Asks for the time, as a sign of life; the answer is `look_for_failure`'s."""
        self.tell("clock")
        self._unread += 1

    def look_for_failure(self) -> None:
        """Takes what has come by itself. Raises `HostError` for a run that failed, or an agent that is gone."""
        while True:
            try:
                found = self._heard.get_nowait()
            except queue.Empty:
                return
            if found is None:
                self._heard.put(None)
                raise self._gone()
            if isinstance(found, dict):
                self._check(found)
                self._unread -= 1

    def end(self) -> list[str]:
        """Has everything undone; what could not be, in one line each. Raises `HostError` if the agent is gone."""
        return [_line(problem) for problem in self.ask("end", UNDO_S)["problems"]]

    # --- how ------------------------------------------------------------------------------------------------

    def _exchange(self) -> Exchange:
        asked_ns = self.tell("clock")
        found = self.answer()
        return Exchange(asked_ns, int(found["monotonic_ns"]), int(found["heard_ns"]))

    def _check(self, found: Message) -> None:
        if found["answer"] == "failed":
            raise HostError(f'host "{self.name}": {_line(found["why"])}')

    def greet(self, patience_s: int) -> None:
        """Has the agent copied and started. Raises `HostError`, `InputError`."""
        machine = self._awaited_word(SEND)
        file = program(machine.removeprefix(SEND).strip()).read_bytes()
        self._send(f"{len(file)} {hashlib.sha256(file).hexdigest()}\n".encode() + file)
        self.hello = self.answer(LOGIN_S)
        if (self.hello.get("version"), self.hello.get("form")) != (_core.version, FORM):
            raise HostInputError(
                f'host "{self.name}": found an agent of version {_line(str(self.hello.get("version")))}; expected '
                f"{_core.version}: `make agent` builds it"
            )

    def _awaited_word(self, word: str) -> str:
        """The first line that begins so: what a login says before is its own affair."""
        end_s = time.monotonic() + LOGIN_S
        while True:
            found = self._next(max(0.0, end_s - time.monotonic()))
            if isinstance(found, str) and found.startswith(word):
                return found

    def _next(self, within_s: float) -> Message | str:
        try:
            found = self._heard.get(timeout=within_s)
        except queue.Empty:
            raise HostError(f'host "{self.name}": no answer for {within_s:.0f} s') from None
        if found is None:
            self._heard.put(None)
            raise self._gone()
        return found

    def _send(self, data: bytes) -> None:
        try:
            with self._writing:
                assert self._process.stdin is not None
                self._process.stdin.write(data)
                self._process.stdin.flush()
        except (OSError, ValueError):
            raise self._gone() from None

    def _gone(self) -> AckclockError:
        """Why the connection ended: what ssh said, or the script's status."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(5)
        status = self._process.returncode
        time.sleep(0.05)  # what was said last may still be on its way from the pipe
        if status in ENDS:
            return HostInputError(f'host "{self.name}": {ENDS[status]}')
        last = self._last_words()
        kind = HostError if self.hello else HostInputError
        return kind(f'host "{self.name}": {"its agent is gone" if self.hello else "not reached"}: {last}')

    def _last_words(self) -> str:
        said = [line for line in b"".join(self._errors).decode(errors="replace").splitlines() if line.strip()]
        return _line(said[-1]) if said else "the connection ended"

    def _listen(self) -> None:
        """In a thread: takes what comes, with the time of its arrival."""
        pipe = self._process.stdout
        assert pipe is not None
        with suppress(OSError, ValueError):
            while line := pipe.readline(1 << 24):
                heard_ns = time.monotonic_ns()
                self.heard_s = heard_ns * 1e-9
                found = _parsed(line)
                if found is None:
                    self._heard.put(line.decode(errors="replace").rstrip("\n"))
                elif found["answer"] == "progress":
                    self.share = float(found.get("share", 0.0))
                elif found["answer"] == "file":
                    self.files[str(found["name"])] = pipe.read(int(found["bytes"]))
                elif found["answer"] == "over":
                    self.over = True
                else:
                    self._heard.put(found | {"heard_ns": heard_ns})
        self._heard.put(None)

    def _listen_to_errors(self) -> None:
        """In a thread: keeps the last of what ssh and the host's shell complain of."""
        pipe = self._process.stderr
        assert pipe is not None
        with suppress(OSError, ValueError):
            while line := pipe.readline(1 << 12):
                self._errors[:] = [*self._errors[-20:], line]


def _parsed(line: bytes) -> Message | None:
    """An answer; None for any other line."""
    try:
        found = json.loads(line)
    except ValueError:
        return None
    return found if isinstance(found, dict) and isinstance(found.get("answer"), str) else None


def _line(text: str) -> str:
    """What a host says, as one line for a terminal."""
    return "".join(letter if letter.isprintable() else " " for letter in text.strip())[:300]


@contextmanager
def agents(
    destinations: Mapping[str, str | None], config: Path | None = None, patience_s: int | None = None
) -> Iterator[dict[str, Agent]]:
    """Agents on hosts, by name; at the end of the block they are gone, and all that they changed is undone.

    A destination is what ssh takes; None is this machine, where the same script runs without ssh.

    Raises `HostError` and `InputError`; of several hosts that cannot be used, all are named, a line each.
    """
    if not shutil.which("ssh"):
        raise InputError("found no ssh; expected the Debian package openssh-client")
    patience_s = PATIENCE_S if patience_s is None else patience_s
    lines = (SCRIPT % {"send": SEND, "patience": patience_s}).splitlines()
    # One line, for the login's own shell may be another than sh.
    script = f"exec sh -c {shlex.quote('; '.join(lines))}"
    commands = {
        name: [*LOCALLY, script] if address is None else ssh.command(address, script, config)
        for name, address in destinations.items()
    }
    processes: list[subprocess.Popen[bytes]] = []
    with signals.cleanup(partial(_kill, processes)):
        started: dict[str, Agent] = {}
        for name, words in commands.items():
            with signals.register_cleanup():
                processes.append(_started(words))
            started[name] = Agent(name, processes[-1])
        with _alive(started.values()):
            _all([partial(agent.greet, patience_s) for agent in started.values()])
            yield started


def _started(words: Sequence[str]) -> subprocess.Popen[bytes]:
    """An ssh that ends with us, however we end, and does not hear what the terminal sends.

    On this machine the script's own trap has to remove what was copied.
    """
    last = "TERM" if words[: len(LOCALLY)] == LOCALLY else "KILL"
    dying = ["setpriv", "--pdeathsig", last] if shutil.which("setpriv") else []
    return subprocess.Popen(
        [*dying, *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )


def _kill(processes: Sequence[subprocess.Popen[bytes]]) -> None:
    """Ends the connections: the guards hear it, and undo what is left to undo."""
    for process in processes:
        for last in (signal.SIGTERM, signal.SIGKILL):
            with suppress(ProcessLookupError, subprocess.TimeoutExpired):
                os.killpg(process.pid, last)
                process.wait(END_S)
        process.wait()
        for pipe in (process.stdin, process.stdout, process.stderr):
            with suppress(OSError, ValueError, RuntimeError):
                if pipe:
                    pipe.close()


def _all(actions: Sequence[Callable[[], object]]) -> None:
    """Does all at a time. Raises what they raised, together."""
    raised_by: dict[int, AckclockError] = {}

    def does(number: int, action: Callable[[], object]) -> None:
        try:
            action()
        except AckclockError as error:
            raised_by[number] = error

    threads = [threading.Thread(target=does, args=each, daemon=True) for each in enumerate(actions)]
    for thread in threads:
        thread.start()
    for thread in threads:
        while thread.is_alive():
            thread.join(0.2)
    if raised_by:
        raised = [raised_by[number] for number in sorted(raised_by)]
        kind = InputError if all(isinstance(error, InputError) for error in raised) else HostError
        raise kind("\n".join(dict.fromkeys(map(str, raised))))


@contextmanager
def _alive(agents: Iterator[Agent] | Any) -> Iterator[None]:
    """While the block lasts, each agent hears again and again that we are there: a blank line, which is no question.

    So does one that waits for another, whose way is slow, to be copied.
    """
    ended = threading.Event()
    each = list(agents)

    def tell() -> None:
        while not ended.wait(ALIVE_S):
            for agent in [agent for agent in each if agent.hello]:
                with suppress(AckclockError):
                    agent._send(b"\n")

    thread = threading.Thread(target=tell, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
