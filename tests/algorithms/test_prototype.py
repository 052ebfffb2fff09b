"""Congestion control algorithms in Python: the same results as in Rust, and their mistakes as one line."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from small_networks import dumbbell

import ackclock as ac
from ackclock import InputError, algorithms
from ackclock.algorithms import prototype


def scenario(limit, loss, congestion):
    return f"""
duration = "20s"
{dumbbell("10Mbit", "40ms", limit)}
loss = {{ probability = {loss} }}
[[flows]]
count = 2
congestion = "{congestion}"
"""


class PythonReno:
    """Reno as in `crates/ackclock-congestion/src/reno.rs`: whole segments and Linux's credit."""

    def __init__(self, initial_window: float) -> None:
        self.cwnd, self.ssthresh = initial_window, float("inf")
        self.credit = 0
        self.recovering = False

    def on_ack(self, ack: Any) -> None:
        self.recovering = ack.recovering
        if not ack.may_grow:
            return
        left = ack.newly_acked
        if self.cwnd < self.ssthresh:
            reached = min(self.cwnd + left, self.ssthresh)
            left -= reached - self.cwnd
            self.cwnd = reached
        if left:
            if self.credit >= self.cwnd:
                self.credit, self.cwnd = 0, self.cwnd + 1
            self.credit += left
            if self.credit >= self.cwnd:
                self.credit, self.cwnd = self.credit % self.cwnd, self.cwnd + self.credit // self.cwnd

    def on_loss(self, loss: Any) -> None:
        self.ssthresh = self.cwnd = max(self.cwnd // 2, 2)
        self.credit, self.recovering = 0, True

    def on_timeout(self, now_s: float, in_flight: int) -> None:
        if not self.recovering:
            self.ssthresh = max(self.cwnd // 2, 2)
        self.cwnd, self.credit, self.recovering = 1, 0, False


@pytest.fixture(autouse=True)
def registry() -> Iterator[None]:
    """Other tests count the algorithms that there are."""
    before = dict(algorithms._USER_SUPPLIED)
    ac.congestion_control(PythonReno)
    yield
    algorithms._USER_SUPPLIED.clear()
    algorithms._USER_SUPPLIED.update(before)
    prototype._PROTOTYPES.clear()
    algorithms.names.cache_clear()
    algorithms.spec.cache_clear()


@pytest.mark.parametrize(("limit", "loss"), [("1bdp", 0.0), ("8p", 0.0), ("1bdp", 0.02), ("1bdp", 0.2)])
def test_reno_in_python_is_reno(limit: str, loss: float) -> None:
    rows = {
        name: ac.run(scenario(limit=limit, loss=loss, congestion=name), seeds=[1]) for name in ("reno", "python_reno")
    }
    for table in ("flow_samples", "queue_samples", "events"):
        assert getattr(rows["python_reno"], table).equals(getattr(rows["reno"], table)), table


def test_parameters_are_a_scenarios() -> None:
    @ac.congestion_control(name="a_share")
    class _Share(PythonReno):
        def __init__(self, initial_window: float, *, kept: float = 0.5, whole: bool = True) -> None:
            super().__init__(initial_window)
            self.kept = kept

        def on_loss(self, loss: Any) -> None:
            self.ssthresh = self.cwnd = max(2, int(self.cwnd * self.kept))

    def mean_queue_p(kept: str) -> float:
        text = scenario(limit="1bdp", loss=0.0, congestion="X")
        text = text.replace('"X"', f'{{ kind = "a_share"{kept} }}')
        return float(ac.run(text, seeds=[1]).queue_samples["backlog_p"].mean())

    assert mean_queue_p(", kept = 0.9") > mean_queue_p(", kept = 0.5") == mean_queue_p("")
    with pytest.raises(ac.ScenarioError, match="kept"):
        mean_queue_p(', kept = "half"')


def _written(tmp_path: Path, body: str, head: str = "class Tried:") -> Path:
    path = tmp_path / "mine.py"
    text = f"import ackclock as ac\n\n@ac.congestion_control\n{head}\n{textwrap.indent(textwrap.dedent(body), '    ')}"
    path.write_text(text)
    return path


WORKING = """
def __init__(self, initial_window):
    self.cwnd, self.ssthresh = initial_window, float("inf")

def on_ack(self, ack):
    pass

def on_loss(self, loss):
    self.ssthresh = self.cwnd = {after_loss}

def on_timeout(self, now_s, in_flight):
    self.cwnd = 1
"""


@pytest.mark.parametrize(
    ("after_loss", "message"),
    [
        ("1 / 0", r"mine\.py:13: in on_loss: ZeroDivisionError: division by zero"),
        ("0", r"mine\.py: ValueError: cwnd after on_loss: found 0.0; expected 1 to 10,000,000 segments"),
        ("1e300", r"cwnd after on_loss: found 1e300; expected 1 to 10,000,000 segments"),
        ("float('nan')", r"mine\.py: ValueError: cwnd after on_loss: found NaN; expected 1 to 10,000,000 segments"),
        ("'ten'", r"mine\.py: TypeError: cwnd after on_loss: found 'ten'; expected a number"),
        ("exit(3)", r"mine\.py:13: in on_loss: SystemExit: 3"),
        ("int('y' * 1000)", r"mine\.py:13: in on_loss: ValueError: .{201}$"),
    ],
)
def test_a_mistake_in_a_run_is_one_line(tmp_path: Path, after_loss: str, message: str) -> None:
    path = _written(tmp_path, WORKING.replace("{after_loss}", after_loss))
    assert prototype.load(path)[0] == "tried"
    with pytest.raises(InputError, match=message) as caught:
        ac.run(scenario(limit="1bdp", loss=0.02, congestion="tried"), seeds=[1])
    assert "\n" not in str(caught.value)


def test_an_exception_with_a_failing_text_is_reported(tmp_path: Path) -> None:
    body = (
        WORKING.replace("{after_loss}", "1")
        + "\nclass Silent(Exception):\n    def __str__(self):\n        return 1 / 0\n"
    )
    prototype.load(_written(tmp_path, body.replace("pass", "raise self.Silent", 1)))
    with pytest.raises(InputError, match=r"mine\.py:10: in on_ack: Silent: no message$"):
        ac.run(scenario(limit="1bdp", loss=0.0, congestion="tried"), seeds=[1])


def test_a_constructor_that_fails_is_reported_with_its_line(tmp_path: Path) -> None:
    body = WORKING.replace("{after_loss}", "1").replace("self.cwnd, self", "self.slow = open('a\\nb'); self.cwnd, self")
    prototype.load(_written(tmp_path, body))
    with pytest.raises(ac.ScenarioError, match=r"mine\.py:7: in __init__: FileNotFoundError: .*a.*b") as caught:
        ac.run(scenario(limit="1bdp", loss=0.0, congestion="tried"), seeds=[1])
    assert "\n" not in str(caught.value)


def test_a_module_that_exits_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text("raise SystemExit(3)")
    with pytest.raises(InputError, match=r"mine\.py:1: in <module>: SystemExit: 3"):
        prototype.load(path)


def test_a_class_of_a_notebook_runs_and_is_named_in_mistakes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(sys.modules["__main__"], "__file__", raising=False)  # as in a notebook's kernel

    class _Cell(PythonReno):
        def on_loss(self, loss: Any) -> None:
            raise ZeroDivisionError("division by zero")

    _Cell.__module__ = "__main__"
    ac.congestion_control(name="of_a_cell")(_Cell)
    ac.run(scenario(limit="100bdp", loss=0.0, congestion="of_a_cell").replace("20s", "1s"), seeds=[1])
    with pytest.raises(InputError, match="in on_loss: ZeroDivisionError: division by zero"):
        ac.run(scenario(limit="1bdp", loss=0.02, congestion="of_a_cell"), seeds=[1])


def test_a_sweep_rejects_a_class_without_a_file() -> None:
    text = scenario(limit="1bdp", loss=0.0, congestion="reno")
    with pytest.raises(InputError, match='"python_reno", a class of this process; expected .*--module FILE.py'):
        ac.sweep(text + '[sweep]\n"flows[0].congestion" = ["reno", "python_reno"]\n')


@pytest.mark.parametrize(
    ("head", "message"),
    [
        ("class Cubic:", 'found "cubic", which is CUBIC; expected a name that is not taken'),
        ("class ANameThatIsTooLong:", "expected up to 15"),
        ("class Tried:\n    x = undefined", r"mine\.py:5: in Tried: NameError"),
        ("class Tried(", r"mine\.py:4: '\(' was never closed"),
    ],
)
def test_a_file_that_has_no_algorithm(tmp_path: Path, head: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        prototype.load(_written(tmp_path, WORKING, head))


def test_methods_and_parameters_are_checked(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="found no method on_loss; expected on_ack, on_loss, on_timeout"):
        prototype.load(_written(tmp_path, "def on_ack(self, ack): ..."))
    with pytest.raises(InputError, match="beta: found no default; expected a bool, int or float"):
        prototype.load(_written(tmp_path, WORKING.replace("initial_window)", "initial_window, *, beta)", 1)))
    with pytest.raises(InputError, match="found none; expected one class"):
        (tmp_path / "mine.py").write_text("x = 3")
        prototype.load(tmp_path / "mine.py")


def test_connections_have_objects_of_their_own() -> None:
    @ac.congestion_control(name="own_list")
    class _Listing(PythonReno):
        def __init__(self, initial_window: float) -> None:
            super().__init__(initial_window)
            self.seen: list[int] = []

        def on_ack(self, ack: Any) -> None:
            assert not self.seen or self.seen[-1] <= ack.delivered, "ACKs of another connection"
            self.seen.append(ack.delivered)
            super().on_ack(ack)

    data = ac.run(scenario(limit="1bdp", loss=0.0, congestion="own_list"), seeds=[1, 2], jobs=2)
    assert data.flows["delivered_bytes"].min() > 0


def test_events_reach_the_optional_methods() -> None:
    called: dict[str, int] = {}

    @ac.congestion_control(name="all_methods", ecn="dctcp")
    class _All(PythonReno):
        def _count(self, name: str) -> None:
            called[name] = called.get(name, 0) + 1

        def on_established(self, now_s: float, srtt_s: float, mss_bytes: int, seed: int) -> None:
            assert mss_bytes == 1448
            self._count("on_established")

        def on_ecn_feedback(self, delivered: int, marked: int) -> None:
            assert marked <= delivered
            self._count("on_ecn_feedback")

        def on_recovered(self, now_s: float, rtt_s: float | None) -> None:
            self._count("on_recovered")

    text = scenario(limit="1bdp", loss=0.01, congestion="all_methods")
    text = text.replace('discipline = "pfifo", limit = "1bdp"', 'discipline = "codel", ecn = true')
    ac.run(text, seeds=[1])
    assert called["on_established"] == 2
    assert called["on_ecn_feedback"] > 100
    assert called["on_recovered"] > 2
