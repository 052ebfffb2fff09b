"""The agent on another host: copied there, verified, controlled over one ssh connection, and removed at the end.

`crates/ackclock-linux/src/agent` is the program. Requests and responses are lines of JSON on the standard input and
output of one ssh. The agent's guard undoes all changes when the connection ends, and when nothing was received for
`PATIENCE_S`.
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

#: The version of the protocol; `FORM` of `messages.rs`.
FORM = 2

#: Time without a message after which an agent's guard undoes everything, and the interval of keep-alives.
PATIENCE_S = 20
ALIVE_S = 2.0

#: Timeouts of responses, of logins and of undoing changes.
RESPONSE_S = 15.0
LOGIN_S = 30.0
UNDO_S = 30.0

#: Time for a connection to end by itself.
END_S = 1.0

#: The command that runs the script on this machine.
LOCALLY = ["sh", "-c"]

#: Exchanges for an estimate of a clock's offset.
EXCHANGES = 40

#: The line by which the script below requests the agent.
SEND = "ackclock:send "

#: Run by the host's sh: make a private folder, receive the agent, verify its checksum and execute it. Every exit of the
#: script removes the folder; from then on the agent's guard does.
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

#: The script's exit statuses and their messages.
EXIT_MESSAGES = {
    90: "its shell was terminated",
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
    """Return the agent's file for a processor, as `uname -m` names it. Raises `InputError` if none was built."""
    name = machine if re.fullmatch(r"[A-Za-z0-9_]+", machine) else "unknown"
    file = Path(__file__).parent / f"ackclock-agent-{name}"
    if not file.is_file():
        raise InputError(f"found no agent for {name} machines; expected {file}: `make agent` builds this machine's own")
    return file


class Agent:
    """The connection to an agent: responses come in the order of the requests, a run's messages in between."""

    def __init__(self, name: str, process: subprocess.Popen[bytes]) -> None:
        self.name, self._process = name, process
        self.hello: Message = {}
        self.share, self.is_done, self.files = 0.0, False, dict[str, bytes]()
        self.received_s = time.monotonic()
        self._unread = 0
        self._received: queue.Queue[Message | str | None] = queue.Queue()
        self._errors: list[bytes] = []
        self._writing = threading.Lock()
        for receive in (self._receive, self._receive_errors):
            threading.Thread(target=receive, daemon=True).start()

    # --- requests ---------------------------------------------------------------------------------------

    def request(self, name: str, timeout_s: float = RESPONSE_S, **parameters: Any) -> Message:
        """Send a request and return the response. Raises `HostError` if the agent is gone, silent, or failed."""
        self.send_request(name, **parameters)
        return self.response(timeout_s)

    def send_request(self, name: str, **parameters: Any) -> int:
        """Send a request; return the time by our monotonic clock, in ns. Raises `HostError` if the agent is gone."""
        line = json.dumps({"ask": name, **parameters}).encode() + b"\n"
        sent_ns = time.monotonic_ns()
        self._send(line)
        return sent_ns

    def response(self, timeout_s: float = RESPONSE_S) -> Message:
        """Return the next response. Raises `HostError` as `request` does."""
        while self._unread:
            self._next(timeout_s)
            self._unread -= 1
        message = self._next(timeout_s)
        if isinstance(message, str):
            raise HostError(f'host "{self.name}": found {message[:80]!r}; expected a response of its agent')
        self._check(message)
        return message

    def clock(self) -> Offset:
        """Return the offset of its monotonic clock."""
        return offset([self._exchange() for _ in range(EXCHANGES)])

    def change(self, changes: Sequence[Mapping[str, Any]]) -> None:
        """Change the host until `end`: `{"sysctl", "value"}` or `{"run", "undo"}`. Raises `HostError`."""
        if changes:
            self.request("change", UNDO_S, changes=list(changes))

    def prepare(self, run_spec: Mapping[str, Any]) -> None:
        """Prepare a run, which replaces the previous one. Raises `HostError`."""
        self.share, self.is_done = 0.0, False
        self.files.clear()
        self.request("order", order=dict(run_spec))

    def run_commands(self, *commands: Sequence[str], apart: bool = False) -> list[tuple[int | None, str, str]]:
        """Run `ip`, `tc` or `ethtool`; return each command's status (None: not run), output and errors.

        With `apart` in a network namespace of their own.
        """
        results = self.request("look", commands=[list(words) for words in commands], apart=apart)["said"]
        return [(status, output, _line(error)) for status, output, error in results]

    def read_files(self, *paths: str) -> list[str]:
        """Return the contents of files in /proc and /sys, empty for those that cannot be read."""
        return [text or "" for text in self.request("read", paths=list(paths))["texts"]]

    def disk_space(self, place: str) -> Message:
        """Return `free_bytes` of a folder, `file_bytes` of a file; or `why` it cannot be read or written."""
        return self.request("room", place=place)

    def ping(self) -> None:
        """Request the time as a keep-alive; `raise_failures` reads the response."""
        self.send_request("clock")
        self._unread += 1

    def raise_failures(self) -> None:
        """Read pending messages. Raises `HostError` for a run that failed, or an agent that is gone."""
        while True:
            try:
                message = self._received.get_nowait()
            except queue.Empty:
                return
            if message is None:
                self._received.put(None)
                raise self._connection_error()
            if isinstance(message, dict):
                self._check(message)
                self._unread -= 1

    def end(self) -> list[str]:
        """Undo all changes; return a line for each that remains. Raises `HostError` if the agent is gone."""
        return [_line(problem) for problem in self.request("end", UNDO_S)["problems"]]

    # --- protocol ---------------------------------------------------------------------------------------

    def _exchange(self) -> Exchange:
        sent_ns = self.send_request("clock")
        response = self.response()
        return Exchange(sent_ns, int(response["monotonic_ns"]), int(response["received_ns"]))

    def _check(self, message: Message) -> None:
        if message["answer"] == "failed":
            raise HostError(f'host "{self.name}": {_line(message["why"])}')

    def start(self, patience_s: int) -> None:
        """Copy the agent and start it. Raises `HostError`, `InputError`."""
        machine = self._await_line(SEND)
        file = program(machine.removeprefix(SEND).strip()).read_bytes()
        self._send(f"{len(file)} {hashlib.sha256(file).hexdigest()}\n".encode() + file)
        self.hello = self.response(LOGIN_S)
        if (self.hello.get("version"), self.hello.get("form")) != (_core.version, FORM):
            raise HostInputError(
                f'host "{self.name}": found an agent of version {_line(str(self.hello.get("version")))}; expected '
                f"{_core.version}: `make agent` builds it"
            )

    def _await_line(self, prefix: str) -> str:
        """Return the first line with this prefix; a login may print others before it."""
        end_s = time.monotonic() + LOGIN_S
        while True:
            line = self._next(max(0.0, end_s - time.monotonic()))
            if isinstance(line, str) and line.startswith(prefix):
                return line

    def _next(self, timeout_s: float) -> Message | str:
        try:
            message = self._received.get(timeout=timeout_s)
        except queue.Empty:
            raise HostError(f'host "{self.name}": no response for {timeout_s:.0f} s') from None
        if message is None:
            self._received.put(None)
            raise self._connection_error()
        return message

    def _send(self, data: bytes) -> None:
        try:
            with self._writing:
                assert self._process.stdin is not None
                self._process.stdin.write(data)
                self._process.stdin.flush()
        except (OSError, ValueError):
            raise self._connection_error() from None

    def _connection_error(self) -> AckclockError:
        """Return why the connection ended: the script's status, or the last error of ssh."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(5)
        status = self._process.returncode
        time.sleep(0.05)  # the last errors may still be in the pipe
        if status in EXIT_MESSAGES:
            return HostInputError(f'host "{self.name}": {EXIT_MESSAGES[status]}')
        lines = [line for line in b"".join(self._errors).decode(errors="replace").splitlines() if line.strip()]
        last = _line(lines[-1]) if lines else "the connection ended"
        kind = HostError if self.hello else HostInputError
        return kind(f'host "{self.name}": {"its agent is gone" if self.hello else "not reached"}: {last}')

    def _receive(self) -> None:
        """Receive messages with their arrival times, in a thread."""
        pipe = self._process.stdout
        assert pipe is not None
        with suppress(OSError, ValueError):
            while line := pipe.readline(1 << 24):
                received_ns = time.monotonic_ns()
                self.received_s = received_ns * 1e-9
                message = _parsed(line)
                if message is None:
                    self._received.put(line.decode(errors="replace").rstrip("\n"))
                elif message["answer"] == "progress":
                    self.share = float(message.get("share", 0.0))
                elif message["answer"] == "file":
                    self.files[str(message["name"])] = pipe.read(int(message["bytes"]))
                elif message["answer"] == "over":
                    self.is_done = True
                else:
                    self._received.put(message | {"received_ns": received_ns})
        self._received.put(None)

    def _receive_errors(self) -> None:
        """Keep the last errors of ssh and of the host's shell, in a thread."""
        pipe = self._process.stderr
        assert pipe is not None
        with suppress(OSError, ValueError):
            while line := pipe.readline(1 << 12):
                self._errors[:] = [*self._errors[-20:], line]


def _parsed(line: bytes) -> Message | None:
    """Return a message; None for any other line."""
    try:
        message = json.loads(line)
    except ValueError:
        return None
    return message if isinstance(message, dict) and isinstance(message.get("answer"), str) else None


def _line(text: str) -> str:
    """Return a host's text as one line for a terminal."""
    return "".join(letter if letter.isprintable() else " " for letter in text.strip())[:300]


@contextmanager
def agents(
    destinations: Mapping[str, str | None], config: Path | None = None, patience_s: int | None = None
) -> Iterator[dict[str, Agent]]:
    """Start agents on hosts, by name; at the end of the block they are removed, and all their changes undone.

    A destination is an argument of ssh; None is this machine, where the same script runs without ssh.

    Raises `HostError` and `InputError`, with a line for each host that cannot be used.
    """
    if not shutil.which("ssh"):
        raise InputError("found no ssh; expected the Debian package openssh-client")
    patience_s = PATIENCE_S if patience_s is None else patience_s
    lines = (SCRIPT % {"send": SEND, "patience": patience_s}).splitlines()
    # One line, since the login shell may be another than sh.
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
                processes.append(_spawn(words))
            started[name] = Agent(name, processes[-1])
        with _keep_alive(started.values()):
            _run_parallel([partial(agent.start, patience_s) for agent in started.values()])
            yield started


def _spawn(words: Sequence[str]) -> subprocess.Popen[bytes]:
    """Start an ssh that ends with this process, however it ends, and that ignores the terminal's signals.

    On this machine it gets SIGTERM, so that the script's trap removes the folder.
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
    """End the connections: the guards notice it, and undo the remaining changes."""
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


def _run_parallel(actions: Sequence[Callable[[], object]]) -> None:
    """Run actions in threads. Raises one error with the messages of all their errors."""
    raised_by: dict[int, AckclockError] = {}

    def run(number: int, action: Callable[[], object]) -> None:
        try:
            action()
        except AckclockError as error:
            raised_by[number] = error

    threads = [threading.Thread(target=run, args=each, daemon=True) for each in enumerate(actions)]
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
def _keep_alive(agents: Iterator[Agent] | Any) -> Iterator[None]:
    """Send blank lines to all agents in this block, also to those that wait for another to be copied."""
    ended = threading.Event()
    each = list(agents)

    def send() -> None:
        while not ended.wait(ALIVE_S):
            for agent in [agent for agent in each if agent.hello]:
                with suppress(AckclockError):
                    agent._send(b"\n")

    thread = threading.Thread(target=send, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
