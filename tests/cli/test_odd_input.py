"""Mistaken and malicious input: special files, odd names, odd terminals. Each is an error of one line."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from small_networks import dumbbell

from ackclock.cli.program import application
from ackclock.dataset import manifests

SMALL = f"""
name = "small"
duration = "500ms"
{dumbbell("5Mbit", "20ms")}
[[flows]]
count = 2
congestion = "cubic"
"""
SWEEP = SMALL + '[sweep]\n"network.queue.limit" = ["0.5bdp", "1bdp"]\n'
FROM = SMALL + '[fluid]\nsynchronisation = { kind = "replayed", from = "FOLDER" }\n'


def call(*arguments: str | Path, text: str | bytes | None = None):
    return CliRunner().invoke(application, [str(argument) for argument in arguments], input=text)


def rejected(*arguments: str | Path, text: str | bytes | None = None) -> str:
    """The message of a call that must fail with one line."""
    result = call(*arguments, text=text)
    assert isinstance(result.exception, SystemExit), repr(result.exception)
    assert result.exit_code == 2, result.output
    assert result.stderr.count("\n") == 1, result.stderr
    assert result.stdout == ""
    return str(result.stderr.strip())


@pytest.fixture(scope="module")
def good_result(tmp_path_factory):
    folder = tmp_path_factory.mktemp("good_result")
    (folder / "small.toml").write_text(SMALL)
    assert call("run", folder / "small.toml", "--no-report", "--out", folder / "good").exit_code == 0
    return folder


@pytest.fixture
def here(good_result, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shutil.copytree(good_result, tmp_path, dirs_exist_ok=True)
    os.mkfifo("pipe")
    Path("folder").mkdir()
    Path("loop").symlink_to("loop")
    with socket.socket(socket.AF_UNIX) as one:
        one.bind("socket")
    return tmp_path


ODD = {
    "pipe": "a pipe",
    "socket": "a socket",
    "folder": "a directory",
    "/dev/zero": "a device",
    "loop": "an error (Too many levels of symbolic links)",
    "nowhere": "no such file",
    "x" * 300: "an error (File name too long)",
    "small.toml/x": "an error (Not a directory)",
    "": "a directory",
}


@pytest.mark.parametrize(("name", "found"), ODD.items())
@pytest.mark.parametrize(
    "command", [("run",), ("run", "--dry-run"), ("sweep",), ("compare", "--engine", "packet,fluid")]
)
def test_a_scenario_is_a_regular_file(here, command, name, found):
    assert f"found {found}; expected a scenario file, or - for standard input" in rejected(*command, name)


@pytest.mark.parametrize("name", ODD)
@pytest.mark.parametrize(
    "command",
    [
        ("plot", None, "cwnd"),
        ("plot", None, "sweep"),
        ("plot", "good", "cwnd", "--overlay", None),
        ("report", None, "--out", "x.html"),
    ],
)
def test_a_result_is_a_folder(here, command, name):
    rejected(*(name if word is None else word for word in command))


@pytest.mark.parametrize("name", [name for name in ODD if name not in ("folder", "nowhere", "", "/dev/zero")])
@pytest.mark.parametrize(
    "command",
    [
        ("run", "small.toml", "--no-report", "--out"),
        ("compare", "small.toml", "--engine", "packet,fluid", "--out"),
        ("sweep", "small.toml", "--out"),
        ("reproduce", "B5.4", "--quick", "--out"),
    ],
)
def test_a_path_that_cannot_be_a_folder(here, command, name):
    name = f"{name}/x" if command[0] == "reproduce" and name != "x" * 300 else name
    rejected(*command, name)
    assert Path("pipe").is_fifo()


@pytest.mark.parametrize("name", ["pipe", "socket", "folder"])
def test_a_report_replaces_no_more_than_a_file(here, name):
    assert "cannot be written" in rejected("report", "good", "--out", name)
    Path(f"{name}.png").symlink_to(name)
    assert "cannot be written" in rejected("plot", "good", "cwnd", "--out", f"{name}.png")
    assert Path("pipe").is_fifo()


@pytest.mark.parametrize("option", [("--width", "3in"), ("--dpi", "72"), ("--label", "a"), ("--no-title",)])
def test_xplot_lays_out_its_window_itself(here, option):
    assert rejected("plot", "good", "sequence", "--out", "x.xpl", *option).startswith(f"{option[0]}: found a file for")


@pytest.mark.parametrize("what", ["manifest.json", "flows.parquet/part-0000.parquet"])
@pytest.mark.parametrize("kind", ["pipe", "folder", "loop", "socket", "device"])
def test_a_results_files_are_regular_files(here, what, kind):
    path = Path("good") / what
    path.unlink()
    if kind == "device":
        path.symlink_to("/dev/zero")
    else:
        Path(kind).rename(path)
    for command in (("plot", "good", "cwnd"), ("report", "good")):
        rejected(*command)


def manifest(**values: object) -> None:
    """A manifest that says these, sealed again."""
    path = Path("good/manifest.json")
    known = json.loads(path.read_bytes())
    files = known.pop("files")
    del known["sha256"]
    path.write_bytes(manifests.content(known | values, files))


@pytest.mark.parametrize(
    "values",
    [
        {"runs": 3},
        {"runs": [{}]},
        {"runs": [{"run": "x"}]},
        {"runs": [{"run": 2**40}]},
        {"runs": [{"run": 0, "seed": "x"}]},
        {"plan": 3},
        {"plan": {"links": 3}},
        {"plan": {"duration_s": "x"}},
        {"format": "x"},
        {"sweep": 3},
    ],
)
def test_a_manifest_of_other_kinds(here, values):
    manifest(**values)
    for command in (("plot", "good", "cwnd"), ("report", "good")):
        rejected(*command)


@pytest.mark.parametrize("text", ["[" * 100_000, "9" * 100_000, "null", "[]"])
def test_invalid_manifests(here, text):
    Path("good/manifest.json").write_text(text)
    rejected("report", "good")


def drawn_and_reported(name: str) -> str:
    """Return a figure (SVG) and a report (HTML) of a result with this name."""
    manifest(plan=json.loads(Path("good/manifest.json").read_bytes())["plan"] | {"name": name})
    assert call("plot", "good", "cwnd", "--out", "x.svg").exit_code == 0
    assert call("report", "good", "--out", "x.html").exit_code == 0
    return Path("x.svg").read_text() + Path("x.html").read_text()


@pytest.mark.parametrize("name", ["</script><script>alert(1)", '"><img src=x onerror=alert(1)>'])
def test_names_in_results_are_text(here, name):
    assert name not in drawn_and_reported(name)


def test_names_in_results_are_not_templates(here):
    assert "{{ 7 * 7 }}" in drawn_and_reported("{{ 7 * 7 }}")


@pytest.mark.parametrize("name", ["\ud800", "\x1b[31m", "$\\frac{", "\0", "n" * 5000])
def test_names_in_results_that_no_font_has(here, name):
    drawn_and_reported(name)
    assert "\x1b" not in Path("x.svg").read_text()


CONTENTS = {
    "3,000 parts": (
        SMALL + '[sweep]\n"' + ".".join(["a"] * 3000) + '" = [1, 2]\n',
        'expected a key such as "network.q',
    ),
    "3,000 bare parts": (SMALL + "[sweep]\n" + ".".join(["a"] * 3000) + " = [1, 2]\n", "expected"),
    "a deep value": (
        SMALL + '[sweep]\n"name" = [' + "[" * 500 + "]" * 500 + ', "a"]\n',
        "found tables nested too deeply",
    ),
    "deep lists": (SMALL + "x = " + "[" * 5000 + "]" * 5000, "found tables nested too deeply"),
    "deep tables": (SMALL + "x = " + "{a=" * 300 + "1" + "}" * 300, "found tables nested too deeply"),
    "a deep heading": ("[" + ".".join(["a"] * 5000) + "]\n", "found tables nested too deeply"),
    "a deep key": (".".join(["a"] * 20_000) + " = 1\n" + SMALL, "found tables nested too deeply"),
    "a date": (SMALL + "x = 2026-01-01T07:00:00Z\n", "found an unknown key"),
    "a trace in an unknown key": (SMALL + 'rato = { trace = "small.toml" }\n', "found an unknown key"),
    "100,000 digits": (SMALL.replace("= 2", "= " + "9" * 100_000), "expected TOML"),
    "a long quantity": (SMALL.replace("5Mbit", "9" * 100_000 + "Mbit"), "network.rate: found"),
    "a long name": (SMALL.replace("small", "n" * 300), "name: found"),
    "an escape": (SMALL.replace("small", "\\u001b[31m"), "name: found"),
    "a zero byte": (SMALL + "\0", "expected TOML"),
    "not UTF-8": (SMALL.encode() + b"\xff", "found the byte 0xff; expected UTF-8 text"),
    "a kernel's path": (
        SMALL + '[linux]\nkernel = "/bin/sh"\n',
        'linux.kernel: found "/bin/sh"; expected "guest", "live", or the version of a guest kernel such as "6.1.192"; '
        "a file is for --kernel alone",
    ),
    "a kernel's relative path": (SMALL + '[linux]\nkernel = "./linux"\n', "a file is for --kernel alone"),
    "a kernel above": (SMALL + '[linux]\nkernel = ".."\n', "a file is for --kernel alone"),
    "a swept kernel": (SWEEP + '"linux.kernel" = ["guest", "/bin/sh"]\n', "a file is for --kernel alone"),
    "a shell's word": (SMALL + '[linux]\nsysctls = { "net.ipv4.x" = "$(id)" }\n', "words without quotes"),
}


@pytest.mark.parametrize(("text", "expected"), CONTENTS.values(), ids=CONTENTS)
def test_odd_contents(here, text, expected):
    Path("odd.toml").write_bytes(text if isinstance(text, bytes) else text.encode())
    command = ("sweep", "odd.toml") if b"[sweep]" in Path("odd.toml").read_bytes() else ("run", "odd.toml", "--dry-run")
    assert expected in rejected(*command)


def test_a_deep_key_takes_little_memory(here):
    """Python's own parser takes gigabytes for it."""
    Path("odd.toml").write_text(".".join(["a"] * 20_000) + " = 1\n" + SMALL)
    limited = 'ulimit -v 1500000; exec "$0" -m ackclock run odd.toml --dry-run'
    done = subprocess.run(["bash", "-c", limited, sys.executable], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr


@pytest.mark.parametrize("folder", ["pipe", "/dev/zero", "x" * 300, "a\\u0000b", "\\u001b[31m", "folder", "loop"])
def test_a_result_that_a_scenario_names(here, folder):
    Path("odd.toml").write_text(FROM.replace("FOLDER", folder))
    assert "\x1b" not in rejected("run", "odd.toml", "--engine", "fluid", "--no-report")


@pytest.mark.parametrize("name", ["~", "a*", "[b]", "c?", "-x", "f\x1b[31m", "g\nh", "..x"])
def test_a_folder_may_have_any_name(here, name):
    out = f"out/{name}"
    for _ in range(2):
        assert call("run", "small.toml", "--no-report", "--out", out).exit_code == 0
    assert call("report", out).exit_code == 0
    assert call("plot", out, "queue", "--overlay", "good").exit_code == 0
    assert (Path("out") / name / "report.html").is_file()
    assert sorted(path.name for path in Path("out").iterdir()) == [name]


def test_a_scenario_on_standard_input(here):
    assert json.loads(call("run", "-", "--dry-run", text=SMALL.replace("name", "#")).stdout)["name"] == "stdin"
    assert call("run", "-", "--no-report", text=SMALL).exit_code == 0
    assert Path("results/stdin-packet/manifest.json").is_file()
    assert rejected("run", "-", text="x").startswith('stdin:1: found "x"; expected TOML (')

    assert rejected("run", "-", text=b"\xff").startswith("stdin:1: found the byte 0xff")


@pytest.mark.parametrize(
    "words",
    [
        ("show", "\udcff"),
        ("reproduce", "\udcff"),
        ("run", "small.toml", "--engine", "\udcff"),
        ("run", "small.toml", "--out", "\udcff"),
        ("sweep", "small.toml", "--out", "\udcff"),
        ("plot", "\udcff", "cwnd"),
        ("plot", "good", "\udcff"),
        ("sweep", "small.toml", "--metrics", "\udcff"),
        ("run", "small.toml", "--engine", "linux", "--kernel", "\udcff"),
        ("run", "small.toml", "--engine", "linux", "--kernel", "/" + "x" * 5000),
        ("kernel", "load", "lincubic", "--set", "beta=" + "[" * 5000),
        ("kernel", "load", "lincubic", "--set", "beta=" + "9" * 100_000),
    ],
)
def test_odd_arguments(here, words):
    rejected(*words)


def program(*arguments: str | bytes, **environment: str) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "ackclock", *arguments]
    return subprocess.run(command, env=os.environ | environment, capture_output=True, check=False)


ASCII = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PYTHONIOENCODING": "ascii"}


def test_a_name_that_is_not_utf8_on_an_ascii_terminal(here):
    odd = b"b\xff\xc3\xbc.toml"
    Path(os.fsdecode(odd)).write_text(SMALL.replace('name = "small"', 'name = "×ü"'))
    assert b"found a name that is not UTF-8" in program("run", odd, **ASCII).stderr
    done = program("run", odd, "--out", "out", "--no-report", **ASCII)
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.startswith(b"x?\n")
    assert b"Jain's" in done.stdout
    assert done.stdout.isascii()
    assert json.loads(Path("out/manifest.json").read_bytes())["scenario_path"] == "b\N{REPLACEMENT CHARACTER}ü.toml"


def test_the_catalog_on_an_ascii_terminal(here):
    done = program("show", "cubic", **ASCII)
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.isascii()
