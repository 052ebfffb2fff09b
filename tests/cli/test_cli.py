"""The command line as its users meet it: what it prints where, and its exit status."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from small_networks import dumbbell

from ackclock import cli
from ackclock.cli.plot import KINDS
from ackclock.cli.program import COMMANDS, application
from ackclock.cli.terminal import output
from ackclock.cli.terminal.result import _sentence as sentence
from ackclock.figures import plots

ROOT = Path(__file__).parents[2]
DUMBBELL = str(ROOT / "scenarios" / "dumbbell.toml")

SMALL = f"""
name = "small"
duration = "3s"
warmup = "1s"
repeats = 2
{dumbbell("5Mbit", "20ms")}
[[flows]]
count = 2
congestion = "cubic"
start = {{ jitter = "100ms" }}
"""


def call(*arguments: str | Path):
    return CliRunner().invoke(application, [str(argument) for argument in arguments])


def rejected(*arguments: str | Path, status: int = 2) -> str:
    """The message of a call that must fail with one line, no traceback, and nothing on standard output."""
    result = call(*arguments)
    assert result.exit_code == status, result.output
    assert result.stdout == ""
    assert result.stderr.count("\n") == 1
    return str(result.stderr.strip())


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "small.toml").write_text(SMALL)
    return tmp_path


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    folder = tmp_path_factory.mktemp("results")
    (folder / "small.toml").write_text(SMALL)
    done = call("run", folder / "small.toml", "--out", folder / "out", "--no-report")
    assert done.exit_code == 0, done.output
    return folder


def test_help_lists_commands_and_examples():
    text = call("--help").output
    for command in ("run", "sweep", "plot", "report", "show", "ackclock run scenarios/dumbbell.toml", "--version"):
        assert command in text
    for command in ("run", "sweep", "plot", "report", "show"):
        assert f"ackclock {command} " in call(command, "--help").output
    assert call().exit_code in (0, 2)


def test_the_help_lists_the_kinds_of_plots():
    assert KINDS.split(", ") == list(plots.KINDS)


def test_every_command_has_the_name_that_it_is_imported_by():
    context = click.Context(application)
    for name in COMMANDS:
        assert application.get_command(context, name).name == name


def test_version():
    result = call("--version")
    assert result.exit_code == 0
    assert re.fullmatch(r"ackclock \d+\.\d+\.\d+\n", result.stdout)


def test_run_prints_a_summary_and_writes_the_result(here):
    result = call("run", "small.toml")
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("small\n")
    assert "Link utilisation" in result.stdout
    assert "Jain's" in result.stdout
    assert "packet engine, 2 runs" in result.stdout
    assert "95 % interval" in result.stdout
    folder = here / "results" / "small-packet"
    assert sorted(path.name for path in folder.iterdir() if path.suffix != ".parquet") == [
        "manifest.json",
        "report.html",
    ]
    assert [path.name for path in (here / "results").iterdir()] == ["small-packet"]
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest["scenario"] == SMALL
    assert manifest["command"].startswith("ackclock")


@pytest.mark.parametrize(
    ("links", "delay_s", "expected"),
    [
        ("link", 0.02, "Link utilisation 99.0 %; mean queueing delay 20.0 ms; p95 queueing delay 40.0 ms."),
        ("link", 0.0, "Link utilisation 99.0 %; mean queueing delay 0 s."),
        (
            "the 1,000 links that limited flows:",
            0.02,
            "The 1,000 links that limited flows: utilisation 99.0 %; mean queueing delay",
        ),
    ],
)
def test_the_summary_in_a_sentence(links, delay_s, expected):
    means = {"utilisation": 0.99, "queue_delay_mean_s": delay_s, "queue_delay_p95_s": 2 * delay_s}
    text = sentence({name: {"mean": mean} for name, mean in means.items()}, links)
    assert text.startswith(expected)


def test_a_percentile_of_zero_is_printed_if_the_mean_is_positive():
    means = {"queue_delay_mean_s": 3.65e-7, "queue_delay_p95_s": 0.0}
    text = sentence({name: {"mean": mean} for name, mean in means.items()}, "link")
    assert text == "Mean queueing delay 365 ns; p95 queueing delay 0 s."


def test_run_prints_the_size_that_a_buffer_rule_gave(here):
    text = SMALL.replace("1bdp", "bdp/sqrt(n)").replace("count = 2", "count = 4")
    (here / "rule.toml").write_text(text)
    result = call("run", "rule.toml", "--quick")
    assert "The limit of bottleneck is 4 packets (1bdp/sqrt(n), n = 4)." in result.stdout
    assert "limit (1bdp/sqrt(n), n = 4)" in (here / "results" / "rule-packet" / "report.html").read_text()


def test_json_is_all_of_standard_output(here):
    result = call("run", "small.toml", "--json", "--no-report")
    assert result.exit_code == 0
    found = json.loads(result.stdout)
    assert set(found) == {"scenario", "engine", "runs", "summary", "groups", "links", "warnings"}
    assert [run["seed"] for run in found["runs"]] == [1, 2]
    assert set(found["summary"]["utilisation"]) == {"mean", "ci95_low", "ci95_high", "n"}
    assert "wrote results/small-packet" in result.stderr


def test_one_run_is_flagged_and_has_no_interval(here):
    result = call("run", "small.toml", "--seed", "7", "--no-report")
    assert "one run: no intervals" in result.stdout
    result = call("run", "small.toml", "--seed", "7", "--no-report", "--json")
    found = json.loads(result.stdout)
    assert [run["seed"] for run in found["runs"]] == [7]
    assert found["summary"]["utilisation"]["ci95_low"] is None
    assert found["summary"]["utilisation"]["n"] == 1


def test_repeats_replace_the_scenarios(here):
    found = json.loads(call("run", "small.toml", "--repeats", "3", "--no-report", "--json").stdout)
    assert [run["seed"] for run in found["runs"]] == [1, 2, 3]


def test_quick_is_one_seed_and_a_tenth_of_the_time(here):
    whole = json.loads(call("run", "small.toml", "--dry-run").stdout)
    look = json.loads(call("run", "small.toml", "--quick", "--dry-run").stdout)
    assert look["seeds"] == whole["seeds"][:1]
    assert look["duration_s"] == pytest.approx(whole["duration_s"] / 10)
    assert look["warmup_s"] == pytest.approx(whole["warmup_s"] / 10)


def test_several_scenarios_get_a_folder_each_and_a_line_of_json_each(here):
    (here / "other.toml").write_text(SMALL.replace("cubic", "reno"))
    result = call("run", "small.toml", "other.toml", "--out", "both", "--no-report", "--json")
    assert [json.loads(line)["scenario"] for line in result.stdout.splitlines()] == ["small", "small"]
    assert sorted(path.name for path in (here / "both").iterdir()) == ["other-packet", "small-packet"]


def test_only_an_earlier_result_is_replaced(here):
    assert call("run", "small.toml", "--seed", "1", "--no-report").exit_code == 0
    assert call("run", "small.toml", "--seed", "2", "--no-report").exit_code == 0
    manifest = json.loads((here / "results" / "small-packet" / "manifest.json").read_text())
    assert [run["seed"] for run in manifest["runs"]] == [2]
    (here / "mine").mkdir()
    (here / "mine" / "thesis.txt").write_text("precious")
    assert rejected("run", "small.toml", "--out", "mine") == (
        "mine: found something that is not an ackclock result, which is left alone; expected another folder (--out)"
    )
    assert (here / "mine" / "thesis.txt").read_text() == "precious"
    (here / "file").write_text("precious")
    assert rejected("run", "small.toml", "--out", "file").startswith(
        "file: found something that is not an ackclock result"
    )


def test_captures_follow_the_result(here):
    (here / "small.toml").write_text(SMALL + "[record]\npcap = true\n")
    assert call("run", "small.toml", "--no-report").exit_code == 0
    folder = here / "results" / "small-packet"
    assert sorted(path.name for path in (folder / "captures").iterdir()) == ["seed-1.pcap", "seed-2.pcap"]
    (here / "small.toml").write_text(SMALL)
    assert call("run", "small.toml", "--no-report").exit_code == 0
    assert not (folder / "captures").exists()


#: The command line, killed right before or right after the new folder takes the old one's place.
KILLED = """
import os, sys
from ackclock.cli.program import application
from ackclock.dataset import folders

swap = folders._swap

def killed(new, old):
    if sys.argv[1] == "after":
        swap(new, old)
    os._exit(9)

folders._swap = killed
application(sys.argv[2:])
"""


@pytest.mark.parametrize(("moment", "seed"), [("before", 1), ("after", 2)])
def test_a_kill_leaves_captures_and_tables_of_one_result(here, moment, seed):
    (here / "small.toml").write_text(SMALL + "[record]\npcap = true\n")
    assert call("run", "small.toml", "--seed", "1").exit_code == 0
    command = [sys.executable, "-c", KILLED, moment, "run", "small.toml", "--seed", "2"]
    assert subprocess.run(command, capture_output=True, check=False).returncode == 9
    folder = here / "results" / "small-packet"
    assert [run["seed"] for run in json.loads((folder / "manifest.json").read_text())["runs"]] == [seed]
    assert [path.name for path in (folder / "captures").iterdir()] == [f"seed-{seed}.pcap"]


def test_dry_run_prints_the_plan_and_writes_nothing(here):
    result = call("run", "small.toml", "--dry-run")
    plan = json.loads(result.stdout)
    assert plan["links"][0]["rate_bps"] == 5e6
    assert plan["seeds"] == [1, 2]
    assert [path.name for path in here.iterdir()] == ["small.toml"]


SWEPT = SMALL + '[sweep]\n"network.rate" = ["1Mbit", "2Mbit"]\n"flows[0].count" = [1, 2, 3]\n'


def test_dry_runs_print_the_cost_and_write_nothing(here):
    (here / "swept.toml").write_text(SWEPT)
    about = r"(about .*|less than a second) of work on [12] cores? \(%s runs\), about .* on disk\n"
    warned = "warning: The queue of bottleneck has room for 8 packets, .*\n"
    assert re.fullmatch(about % 2 + warned, call("run", "small.toml", "--dry-run", "--jobs", "2").stderr)
    compared = call("compare", "small.toml", "--engine", "packet,fluid", "--dry-run", "--jobs", "2").stdout
    assert re.fullmatch(r"small: packet, fluid\n" + about % 4, compared)
    swept = call("sweep", "swept.toml", "--dry-run", "--jobs", "2").stdout
    assert swept.startswith("swept-packet-sweep, packet engine: 6 points\n  network.rate = 1Mbit, flows[0].count = 1\n")
    assert re.search(r"\n  …\n" + about % 12, swept)
    assert re.fullmatch(r"B5.4-5.6: \d+ results\n", call("reproduce", "B5.4", "--dry-run", "--quick").stdout)
    switched = call("reproduce", "B2.7", "--ablation", "all", "--dry-run", "--quick").stdout
    assert re.fullmatch(r"B2.7: \d+ results\n", switched)
    assert sorted(path.name for path in here.iterdir()) == ["small.toml", "swept.toml"]


@pytest.mark.parametrize(
    ("entry", "option", "name"),
    [("R4.7", "--interpretation", "4.17, 2 ms apart"), ("R4.4", "--ablation", "paced senders, no simultaneous losses")],
)
def test_a_name_with_a_comma_is_not_a_list(here, entry, option, name):
    assert call("reproduce", entry, option, name, "--dry-run", "--quick").exit_code == 0
    assert call("reproduce", entry, option, f"{name}, too", "--dry-run", "--quick").exit_code == 2


def test_dry_runs_have_a_json_form(here):
    (here / "swept.toml").write_text(SWEPT)
    told = [
        json.loads(call(*command, "--dry-run", "--json").stdout)
        for command in (
            ("run", "small.toml"),
            ("sweep", "swept.toml"),
            ("compare", "small.toml", "--engine", "packet,fluid"),
            ("reproduce", "B5.4", "--quick"),
        )
    ]
    assert [one["forecast"]["runs"] for one in told[:3]] == [2, 12, 4]
    assert all(one["forecast"][key] > 0 for one in told[:3] for key in ("cpu_s", "wall_s", "bytes"))
    assert told[3]["entries"]["B5.4-5.6"] > 0
    assert told[0]["plan"]["links"][0]["rate_bps"] == 5e6
    assert told[1]["first_points"][1] == {"network.rate": "1Mbit", "flows[0].count": 2}


def test_a_check_that_takes_long_shows_a_bar(monkeypatch):
    shown = []
    monkeypatch.setattr(output, "progress", contextmanager(lambda title: iter([shown.append])))
    monkeypatch.setattr(output, "MIN_S", 0.05)
    with output.delayed_progress("Checking") as tell:
        tell(0.1)
        time.sleep(0.1)
        tell(0.5)
        tell(1.0)
    assert shown == [0.5, 1.0]


def test_errors_of_all_files_are_printed_line_by_line(here):
    (here / "bad.toml").write_text(SMALL.replace('"5Mbit"', '"5mbps"').replace('"cubic"', '"kubic"'))
    result = call("run", "bad.toml", "none.toml")
    assert result.exit_code == 2
    lines = result.stderr.splitlines()
    assert [line.split(" ")[0] for line in lines] == ["bad.toml:8:", "bad.toml:13:", "none.toml:"]
    assert not (here / "results").exists()


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--repeats", "0"], "--repeats: found 0; expected a whole number from 1 to 10000"),
        (["--seed", "-1"], "--seed: found -1; expected a whole number from 0 to 9223372036854775807"),
        (["--seed", "1", "--repeats", "2"], "--seed: found both --seed and --repeats; expected one of them"),
        (["--quick", "--repeats", "2"], "--quick: found both --quick and --repeats; expected one of them"),
        (["--jobs", "0"], "--jobs: found 0; expected a whole number from 1 to 10000"),
        (["--engine", "pakcet"], 'engine: found "pakcet"; expected "packet"'),
        (["--engine", "packet,,"], 'engine: found ""; expected one of "packet", "hybrid"'),
        (["--out", "/dev/null/x"], "/dev/null/x: cannot be written: "),
        (["--out", "/proc/x"], "/proc/x: cannot be written: "),
    ],
)
def test_bad_options_are_one_line(here, options, expected):
    assert expected in rejected("run", "small.toml", *options)


def test_the_same_folder_twice(here):
    (here / "a").mkdir()
    (here / "a" / "small.toml").write_text(SMALL)
    assert "found two results for this folder" in rejected("run", "small.toml", "a/small.toml")


def test_unsupported_exits_with_3(here, monkeypatch):
    from ackclock.engines import packet

    monkeypatch.setattr(
        packet.PacketEngine,
        "supported_features",
        packet.PacketEngine().supported_features - {'congestion control "cubic"'},
    )
    said = rejected("run", "small.toml", status=3)
    assert said.startswith('Unsupported: engine "packet" has no congestion control "cubic"; available in ')


def test_an_option_that_does_not_exist_exits_with_2(here):
    assert call("run", "small.toml", "--no-such-option").exit_code == 2
    assert call("run").exit_code == 2


def test_show_lists_all_algorithms():
    result = call("show")
    assert result.exit_code == 0
    for name in ("cubic", "reno", "pfifo", "bfifo", "linux", "rfc"):
        assert re.search(rf"\b{name}\b", result.stdout)


def test_show_prints_a_spec_and_the_algorithms_files():
    result = call("show", "cubic")
    assert result.exit_code == 0
    for word in ("CUBIC", "beta", "0.7", "RFC 9438", "algorithms/congestion/cubic.toml"):
        assert word in result.stdout
    from_checkout = ROOT in Path(cli.__file__).parents
    assert ("ackclock-congestion/src/cubic.rs" in result.stdout) == from_checkout
    assert "pfifo.rs" not in result.stdout


def test_show_unknown():
    assert rejected("show", "cubik").startswith('NAME: found "cubik"; expected "cubic"')


def test_show_explains_a_metric():
    assert "RFC 5166 (fairness between flows)" in " ".join(call("show", "jain").stdout.split())
    assert "queue_delay_p95_s" in call("show", "metrics").stdout


def test_show_schema():
    assert json.loads(call("show", "--schema").stdout)["title"] == "ackclock scenario"


@pytest.mark.parametrize(
    ("words", "expected"),
    [("show cu", {"cubic"}), ("run --engine p", {"packet"}), ("plot folder cwnd", {"cwnd", "cwnd_total"})],
)
def test_the_shell_completes_names(words, expected):
    line = f"ackclock {words}"
    shell = {"_ACKCLOCK_COMPLETE": "bash_complete", "COMP_WORDS": line, "COMP_CWORD": str(line.count(" "))}
    command = [sys.executable, "-m", "ackclock"]
    done = subprocess.run(command, env=os.environ | shell, capture_output=True, text=True, check=False)
    assert set(done.stdout.split()) == {f"plain,{word}" for word in expected}


def test_a_completion_that_cannot_be_installed_is_one_line():
    inside_a_shell = '"$0" -m ackclock --install-completion bash; exit $?'
    command = ["bash", "-c", inside_a_shell, sys.executable]
    done = subprocess.run(command, env=os.environ | {"HOME": "/proc/x"}, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (2, "/proc/x: cannot be written: No such file or directory\n")


@pytest.mark.parametrize("kind", [kind for kind in plots.KINDS if kind != "response"])
def test_plot(results, tmp_path, kind):
    result = call("plot", results / "out", kind, "--out", tmp_path / f"{kind}.png")
    assert result.exit_code == 0, result.output
    assert (tmp_path / f"{kind}.png").read_bytes().startswith(b"\x89PNG")


def test_plot_overlays_a_result(results, tmp_path):
    call("plot", results / "out", "cwnd", "--overlay", results / "out", "--out", tmp_path / "two.png")
    assert (tmp_path / "two.png").stat().st_size > 10_000
    assert rejected("plot", results / "out", "epochs", "--overlay", results / "out").startswith(
        '--overlay: found "epochs"'
    )


def test_plot_rejects_what_it_cannot_draw(results, tmp_path):
    assert "no finished transfers" in rejected("plot", results / "out", "response")
    assert rejected("plot", results / "out", "cwmd").startswith('KIND: found "cwmd"; expected "cwnd"')
    assert rejected("plot", "cwnd", results / "out").startswith(
        "RUN: found a kind of figure; expected the result first"
    )
    assert "expected a file name that ends in .png, .pdf, .svg or .pgf" in rejected(
        "plot", results / "out", "cwnd", "--out", tmp_path / "x.xlsx"
    )
    assert str(tmp_path) in rejected("plot", tmp_path, "cwnd")


def test_report(results, tmp_path):
    result = call("report", results / "out", "--out", tmp_path / "new" / "x.html")
    assert result.exit_code == 0, result.output
    assert "<html" in (tmp_path / "new" / "x.html").read_text()[:500]
    assert str(tmp_path) in rejected("report", tmp_path)


def test_an_interrupt_leaves_nothing_half_written(tmp_path):
    long = SMALL.replace('"3s"', '"2h"').replace('"5Mbit"', '"1Gbit"')
    (tmp_path / "long.toml").write_text(long)
    command = [sys.executable, "-m", "ackclock", "run", "long.toml"]
    process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 20
    while not (tmp_path / "results").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    try:
        out, err = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 130, err
    assert out == ""
    assert err.splitlines()[-1] == "interrupted: nothing half-written is left"
    assert list((tmp_path / "results").iterdir()) == []


def test_the_kernel_option_overrides_the_scenarios(here):
    """In every plan, and so in the manifest; a sweep's says it too."""
    (here / "other.toml").write_text(SMALL + '[linux]\nkernel = "6.1.0"\n')
    engine = ["--engine", "linux", "--kernel", "/no/such/kernel"]
    printed = call("run", "small.toml", "other.toml", *engine, "--dry-run").stdout
    plans = [json.loads(line) for line in re.split(r"(?<=^})\n", printed, flags=re.MULTILINE) if line.strip()]
    assert [plan["options"]["linux"]["kernel"] for plan in plans] == ["/no/such/kernel"] * 2
    message = "/no/such/kernel: found no guest kernel that can be run; expected one made by `ackclock kernel build`"
    assert rejected("run", "small.toml", *engine) == message
    assert not (here / "results" / "small-linux" / "manifest.json").exists()
    assert message in call("sweep", "small.toml", *engine, "--jobs", "1", "--repeats", "1").stderr
    kept = json.loads((here / "results/small-linux-sweep/manifest.json").read_text())
    assert kept["sweep"]["kernel"] == "/no/such/kernel"


def test_compare_without_engines_is_rejected(here):
    expected = "engine: found packet; expected two engines or more, or choices (--try)"
    assert rejected("compare", "small.toml") == expected


@pytest.mark.parametrize("command", ["run", "sweep", "compare"])
def test_a_kernel_without_the_engine_linux_is_rejected(here, command):
    expected = '--kernel: found "live" with --engine packet,fluid; expected --engine linux'
    assert rejected(command, "small.toml", "--engine", "packet,fluid", "--kernel", "live") == expected


def test_other_settings_do_not_replace_a_result(here):
    for settings in ([], ["--set", "limit=9p"], ["--set", "limit=5p"], ["--set", "limit=5p"]):
        assert call("run", "small.toml", "--no-report", *settings).exit_code == 0
    made = sorted(path.name for path in (here / "results").iterdir())
    assert made[0] == "small-packet"
    assert [name.rpartition("-")[0] for name in made[1:]] == ["small-packet-limit"] * 2


def test_brackets_are_printed_as_they_are(capsys: pytest.CaptureFixture[str]):
    output.console().print("[fe80::1] is no markup")
    assert capsys.readouterr().out == "[fe80::1] is no markup\n"
