"""Signals at any time: one line, the status that belongs to them, and nothing left, be it a file or a process."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from small_networks import dumbbell

import ackclock
from ackclock.system import signals

RUN = f"""
duration = "600s"
repeats = 3
{dumbbell("50Mbit", "20ms")}
[[flows]]
count = 2
congestion = "cubic"
"""
SWEEP = """
[sweep]
"network.queue.limit" = ["0.1bdp", "0.2bdp", "0.3bdp", "0.5bdp", "1bdp", "2bdp", "3bdp", "4bdp"]
"""
FILES = {
    "run.toml": RUN,
    "captures.toml": RUN + "[record]\npcap = true\n",
    "sweep.toml": RUN.replace("600s", "1500s") + SWEEP,
}
COMMANDS = {
    "run": ("run", "run.toml"),
    "captures": ("run", "captures.toml"),
    "sweep": ("sweep", "sweep.toml", "--jobs", "2"),
}

#: A signal, how often it is sent, and whether to the process group (as by a terminal) or to the process.
SENT = {
    "Ctrl-C": (signal.SIGINT, 1, os.killpg),
    "Ctrl-C twice": (signal.SIGINT, 2, os.killpg),
    "a scheduler": (signal.SIGTERM, 1, os.kill),
    "a scheduler, to all": (signal.SIGTERM, 1, os.killpg),
    "the terminal is closed": (signal.SIGHUP, 1, os.killpg),
}

#: The folder of the code that runs before our handlers: until then Python ends silently, or with its own message.
PACKAGE = str(Path(ackclock.__file__).parent)


def begun(here: Path, *arguments: str) -> subprocess.Popen[str]:
    """Start the command line in a new session, with default handlers of signals."""

    def restore_handlers() -> None:
        for number in (signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)

    return subprocess.Popen(
        [sys.executable, "-m", "ackclock", *arguments],
        cwd=here,
        env=os.environ | {"TMPDIR": str(here / "temporary")},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=restore_handlers,  # noqa: PLW1509 (there are no threads)
    )


def living(group: int) -> list[str]:
    """The processes of a group that have not ended."""
    found = subprocess.run(["ps", "-eo", "pgid=,stat=,args="], capture_output=True, text=True, check=True).stdout
    lines = [line.split(maxsplit=2) for line in found.splitlines()]
    return [what for number, state, what in lines if int(number) == group and not state.startswith("Z")]


def check_ended(here: Path, command: str, sent: str, after_s: float) -> None:
    """Starts a command, sends a signal after a time, and looks at what is left."""
    number, times, send = SENT[sent]
    for name, text in FILES.items():
        (here / name).write_text(text)
    (here / "temporary").mkdir()
    process = begun(here, *COMMANDS[command])
    try:
        time.sleep(after_s)
        for _ in range(times):
            send(process.pid, number)
            time.sleep(0.05 * (times - 1))
        out, err = process.communicate(timeout=60)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
    told = f"{command}, {sent} after {after_s:.3f} s: status {process.returncode}\n{err}"
    if not ("Traceback" in err and PACKAGE not in err):
        assert process.returncode in (128 + number, -number), told
        assert "Traceback" not in err, told
        assert err.count("\n") <= 1, told
        assert err.startswith("interrupted") or (err == "" and process.returncode == -number), told
    assert out == "", told
    deadline = time.monotonic() + 5
    while living(process.pid) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert living(process.pid) == [], told
    assert list((here / "temporary").iterdir()) == [], told
    assert [path for path in here.rglob("*") if path.name.endswith(".tmp")] == [], told


@pytest.mark.parametrize(
    ("command", "sent", "after_s"),
    [
        ("run", "a scheduler", 0.5),
        ("captures", "Ctrl-C twice", 3.0),
        ("captures", "a scheduler", 4.0),
        ("sweep", "Ctrl-C", 1.0),
        ("sweep", "a scheduler, to all", 4.0),
        ("sweep", "the terminal is closed", 5.0),
    ],
)
def test_a_signal_leaves_no_files(tmp_path, command, sent, after_s):
    check_ended(tmp_path, command, sent, after_s)


@pytest.mark.oracle
@pytest.mark.parametrize("number", range(200))
def test_a_signal_at_any_time_leaves_no_files(tmp_path, number):
    drawn = random.Random(number)
    command, sent = drawn.choice(list(COMMANDS)), drawn.choice(list(SENT))
    check_ended(tmp_path, command, sent, drawn.uniform(0.0, 1.0 if number % 3 else 2.5))


def test_an_interrupted_sweep_resumes(tmp_path):
    # With runs of 20 s all of it is done with its first part, which is two seconds' work, or nearly so.
    (tmp_path / "sweep.toml").write_text(RUN.replace("600s", "60s") + SWEEP)
    (tmp_path / "temporary").mkdir()
    command = ("sweep", "sweep.toml", "--jobs", "1", "--no-report", "--metrics", "utilisation", "--repeats", "20")
    process = begun(tmp_path, *command)
    deadline = time.monotonic() + 60
    folder = tmp_path / "results" / "sweep-packet-sweep"
    while not list(folder.glob("runs.parquet/part-*")) and time.monotonic() < deadline and process.poll() is None:
        time.sleep(0.02)
    process.terminate()
    _, err = process.communicate(timeout=60)
    if process.returncode != 0:  # it may have been done already
        assert process.returncode == 143
        assert err == ("interrupted; finished runs are kept in results/sweep-packet-sweep: the same command resumes\n")
    again = begun(tmp_path, *command)
    assert again.wait(timeout=120) == 0
    again.communicate()


PROGRAM = """
import sys, time
from pathlib import Path
from ackclock.system import files, signals
signals.install_handlers()
{body}
print("end", flush=True)
"""


def program(body: str, number: signal.Signals, *, nohup: bool = False) -> tuple[int, str, str]:
    """A program that gets a signal when it has said "now"."""
    handler = signal.SIG_IGN if nohup else signal.SIG_DFL
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM.format(body=body)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(number, handler),  # noqa: PLW1509 (there are no threads)
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "now\n"
        process.send_signal(number)
        out, err = process.communicate(timeout=30)
        return process.returncode, out, err


SLEEPS = "print('now', flush=True); time.sleep(20)"


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_the_exit_status_is_128_plus_the_signal(number, status):
    assert program(SLEEPS, number) == (status, "", f"{signals.MESSAGE}\n")


def test_a_bare_except_does_not_swallow_a_signal():
    body = "try:\n    print('now', flush=True); time.sleep(20)\nexcept BaseException:\n    pass"
    assert program(body, signal.SIGINT)[0] == 130


def test_an_ignored_signal_stays_ignored():
    body = SLEEPS.replace("20", "0.3")
    assert program(body, signal.SIGHUP, nohup=True) == (0, "end\n", "")


def test_defer_signals_delays_a_signal_to_the_end_of_the_block():
    body = "with signals.defer_signals() as is_pending:\n    print('now', flush=True)\n"
    body += "    while not is_pending(): time.sleep(0.01)\n"
    assert program(f"{body}    print('done', flush=True)", signal.SIGTERM) == (143, "done\n", f"{signals.MESSAGE}\n")


def test_a_signal_removes_temporary_folders(tmp_path):
    place = f"Path({str(tmp_path)!r})"
    body = f"folder = files.LockedTempDir({place}); (folder.path / 'file').touch(); {SLEEPS}"
    assert program(body, signal.SIGTERM)[0] == 143
    assert list(tmp_path.iterdir()) == []


def test_a_signal_removes_a_folder_that_another_thread_is_removing(tmp_path):
    """The other thread is held up in the midst of it, and ends with the program."""
    place = f"Path({str(tmp_path)!r})"
    slow = "\n".join(
        [
            "import shutil, threading",
            "removed = shutil.rmtree",
            "def rmtree(*given, **how):",
            "    if threading.current_thread() is not threading.main_thread(): time.sleep(60)",
            "    removed(*given, **how)",
            "shutil.rmtree = rmtree",
        ]
    )
    body = f"{slow}\nfolder = files.LockedTempDir({place}); threading.Thread(target=folder.close).start(); {SLEEPS}"
    assert program(body, signal.SIGTERM)[0] == 143
    assert list(tmp_path.iterdir()) == []


def test_exit_message_replaces_the_message():
    body = f"with signals.exit_message('later \\x1b[31m'): {SLEEPS}"
    assert program(body, signal.SIGINT)[2] == "later ?[31m\n"


@pytest.fixture
def interruptible():
    """Restore the handler of SIGINT as at a terminal: background processes of a shell ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_without_handlers_an_interrupt_is_an_exception():
    with pytest.raises(KeyboardInterrupt), signals.defer_signals() as is_pending:
        before = signal.signal(signal.SIGINT, signal.getsignal(signal.SIGINT))
        assert before is not signal.default_int_handler
        assert not is_pending()
        signal.raise_signal(signal.SIGINT)
        assert is_pending()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_cleanup_runs_one_time():
    done: list[int] = []
    with signals.cleanup(lambda: done.append(1)):
        assert done == []
    assert done == [1]
    with pytest.raises(ValueError, match="x"), signals.cleanup(lambda: done.append(2)):
        raise ValueError("x")
    assert done == [1, 2]


LIMITED = """
import os, resource, signal, sys, time
from ackclock.system import signals
resource.setrlimit(resource.RLIMIT_AS, (1 << 33, 1 << 33))
signals.watch_aborts("no memory")
signals.install_handlers()
print("begun", flush=True)
{action}
"""


@pytest.mark.parametrize(
    ("action", "status", "message"),
    [("os.abort()", 1, "no memory\n"), ("sys.exit(3)", 3, ""), ("os.kill(os.getpid(), signal.SIGKILL)", 137, "")],
)
def test_an_abort_under_a_memory_limit_is_one_line(action, status, message):
    program = [sys.executable, "-c", LIMITED.format(action=action)]
    done = subprocess.run(program, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (status, message)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_reaches_the_program_under_a_memory_limit(number):
    program = [sys.executable, "-c", LIMITED.format(action="time.sleep(60)")]
    with subprocess.Popen(program, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as started:
        assert started.stdout and started.stdout.readline() == "begun\n"
        started.send_signal(number)
        assert started.wait() == 128 + number
        assert started.stderr and started.stderr.read() == f"{signals.MESSAGE}\n"
