"""`ackclock find` as somebody types it."""

import json
import re
import subprocess
import sys

import pytest
from small_networks import dumbbell

SMALL = ("--rate", "10Mbit", "--rtt", "20ms", "--flows", "3", "--duration", "8s")


def call(here, *arguments):
    command = [sys.executable, "-m", "ackclock", "find", *arguments]
    return subprocess.run(command, cwd=here, capture_output=True, text=True, check=False)


def test_a_dumbbell_of_options_is_searched_and_kept(tmp_path):
    asked = (*SMALL, "--require", "utilisation >= 95%", "--vary", "limit=2p..40p")
    first = call(tmp_path, *asked)
    assert first.returncode == 0, first.stderr
    assert first.stdout.startswith("The smallest setting that meets all requirements is network.queue.limit = ")
    assert "tc qdisc add dev eth0 parent 1:1 handle 10: pfifo limit" in first.stdout
    again = call(tmp_path, *asked, "--json")
    found = json.loads(again.stdout)
    keys = ["verdict", "answer", "metrics", "points", "frontier", "runs", "cpu_s", "confirmed", "warnings"]
    assert list(found) == keys
    assert list(found["metrics"]["utilisation"]) == ["mean", "ci95_low", "ci95_high", "n"]
    assert found["verdict"] == "holds"
    assert list(found["answer"]) == ["network.queue.limit"]
    assert found["confirmed"] == {"linux": None}
    assert {point["verdict"] for point in found["points"]} <= {"holds", "fails", "undecided"}
    (place,) = (tmp_path / "results").iterdir()
    assert re.fullmatch(r"question-find-limit-[0-9a-f]{6}", place.name)
    assert (place / "find.png").stat().st_size > 10_000
    assert "0 of them by this command" in call(tmp_path, *asked).stderr


def test_a_table_is_a_value(tmp_path):
    queues = 'network.queue={discipline="pie",limit="1bdp"},{discipline="codel",limit="1bdp"}'
    done = call(tmp_path, *SMALL, "--require", "utilisation >= 50%", "--best", "max:utilisation", "--vary", queues)
    assert done.returncode == 0, done.stderr
    assert [line.split()[0] for line in done.stdout.splitlines() if line.split()[-1:] == ["holds"]] == ["pie", "codel"]
    (place,) = (tmp_path / "results").iterdir()
    answer = json.loads((place / "answer.json").read_text())["answer"]
    assert answer["network.queue"] in ({"discipline": name, "limit": "1bdp"} for name in ("pie", "codel"))
    assert (place / "find.png").stat().st_size > 10_000


def test_two_queues_that_vary_have_the_commands_of_both(tmp_path):
    queue = '{ discipline = "pfifo", limit = "100p" }'
    (tmp_path / "dsl.toml").write_text(
        'name = "DSL"\nduration = "4s"\n[[flows]]\n[network]\ntopology = "asymmetric"\n'
        f'down = {{ rate = "20Mbit", delay = "15ms", queue = {queue} }}\n'
        f'up = {{ rate = "2Mbit", delay = "15ms", queue = {queue} }}\n'
    )
    ask = ("dsl.toml", "--require", "queue_delay_p95 <= 1s", "--vary", "network.up.queue.limit=30p,40p")
    one = call(tmp_path, *ask)
    assert one.returncode == 0, one.stderr
    assert [line for line in one.stdout.splitlines() if "pfifo" in line] == [
        "tc qdisc add dev eth0 parent 1:1 handle 10: pfifo limit 30"
    ]
    assert "rate 2000000bit" in one.stdout
    both = call(tmp_path, *ask, "--vary", "network.down.queue.limit=50p,60p")
    limits = [
        line.rpartition(" ")[2] for line in both.stdout.splitlines() if line.startswith(("#", "tc")) and "limit" in line
    ]
    assert limits == ["50", "30"]
    assert "# up, at the device before it:" in both.stdout


def test_questions_have_folders_and_share_runs(tmp_path):
    settings = (*SMALL, "--vary", "limit=4p,40p", "--best", "max:jain", "--repeats", "4")
    first = call(tmp_path, *settings, "--require", "utilisation >= 50%")
    assert first.returncode == 0, first.stderr
    (place,) = (tmp_path / "results").iterdir()
    kept = (place / "answer.json").read_bytes()
    second = call(tmp_path, *settings, "--require", "utilisation >= 60%")
    assert "0 of them by this command" in second.stderr
    other = call(
        tmp_path, *settings[:-4], "--require", "utilisation >= 50%", "--vary", "rate=5Mbit,10Mbit", "--best", "max:jain"
    )
    assert "0 of them by this command" not in other.stderr
    assert len(list((tmp_path / "results").iterdir())) == 3
    assert (place / "answer.json").read_bytes() == kept


def test_out_names_another_folder(tmp_path):
    asked = (
        *SMALL,
        "--require",
        "utilisation >= 50%",
        "--vary",
        "limit=4p,40p",
        "--best",
        "max:jain",
        "--repeats",
        "4",
    )
    assert call(tmp_path, *asked, "--out", "mine").returncode == 0
    assert "0 of them by this command" in call(tmp_path, *asked, "--out", "mine").stderr
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


def test_exit_status_4_if_no_setting_meets_the_requirements(tmp_path):
    found = call(tmp_path, *SMALL, "--require", "queue_delay_p95 <= 1us", "--vary", "limit=2p,40p", "--json")
    assert found.returncode == 4
    assert json.loads(found.stdout)["answer"] is None


def test_a_rate_may_follow_a_trace(tmp_path):
    (tmp_path / "lte.csv").write_text("time_s,rate_bps\n0,5e6\n1,2e6\n2,5e6\n")
    (tmp_path / "lte.toml").write_text(
        'duration = "4s"\n'
        + dumbbell("1Mbit", "20ms").replace('"1Mbit"', '{ trace = "lte.csv" }')
        + '\n[[flows]]\ncongestion = "reno"\n'
    )
    found = call(tmp_path, "lte.toml", "--require", "utilisation >= 0.1", "--candidates", "pfifo,codel")
    assert found.returncode == 0, found.stderr


def test_dry_run_prints_the_settings_and_runs_nothing(tmp_path):
    found = call(tmp_path, *SMALL, "--require", "jain >= 0.5", "--candidates", "codel,pie", "--dry-run")
    assert 'network.queue: { discipline = "codel" }, { discipline = "pie" }' in found.stdout
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--require", "jain >= 0.5"), "--rate: found nothing; expected a scenario file, or --rate and --rtt"),
        (("no.toml", "--rate", "1Mbit"), "--rate: found a scenario, too; expected one of them"),
        ((*SMALL, "--smallest", "--largest"), "--smallest: found --largest, too; expected one of them"),
        ((*SMALL[:-1], "8"), "--duration: found '8'; expected a time such as 20ms (a number needs its unit)"),
        ((*SMALL, "--budget", "soon"), '--budget: found "soon"; expected a time such as 60s'),
        ((*SMALL, "--require", "jain >= 1", "--vary", "lmit=1p,2p"), "--vary: lmit: found an unknown key"),
        (
            (*SMALL, "--require", "jain >= 1", "--candidates", "codel", "--confirm", "x"),
            'engine: found "x"; expected one of',
        ),
        (
            (*SMALL, "--best", "max:jain", "--candidates", "codel,pie", "--confirm", "linux"),
            "found linux and no requirement",
        ),
    ],
)
def test_errors_are_one_line(tmp_path, arguments, message):
    found = call(tmp_path, *arguments)
    assert (found.returncode, found.stdout) == (2, "")
    assert message in found.stderr
    assert found.stderr.count("\n") == 1


def test_perturb_compares_the_result_with_a_perturbed_run(tmp_path):
    """Dumbbells without access links are not in step, and the twin is another run of the same seeds."""
    asked = (*SMALL, "--require", "utilisation >= 50%", "--vary", "limit=20p,40p", "--repeats", "4", "--perturb")
    done = call(tmp_path, *asked, "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["phase"] == {"locked": False, "moved": {}}
    assert "Not phase-locked: noise in the hosts changes no main metric." in call(tmp_path, *asked).stdout
    assert "phase" not in json.loads(call(tmp_path, *asked[:-1], "--json").stdout)


@pytest.mark.parametrize(
    ("words", "found"),
    [(("--repeats", "1"), "found one run"), (("--engine", "fluid"), "found --engine fluid; expected packet or linux")],
)
def test_perturb_is_rejected_without_a_perturbed_run(tmp_path, words, found):
    done = call(tmp_path, *SMALL, "--require", "utilisation >= 50%", "--vary", "limit=2p,40p", "--perturb", *words)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert done.stderr.startswith(f"--perturb: {found}")
    assert list(tmp_path.iterdir()) == []
