"""The public names of the package: what Tab offers, functions that have the name of a package, and what reprs show."""

from __future__ import annotations

import inspect
from pathlib import Path

import polars as pl
import pytest
from small_networks import dumbbell

import ackclock as ac
import ackclock.capture
import ackclock.doctor
import ackclock.scenario
from ackclock.dataset import lazy_frame
from ackclock.errors import InputError
from ackclock.gallery.result import Judged, Result

SCENARIO = f"""\
name = "two"
duration = "4s"
repeats = 1
{dumbbell("10Mbit", "20ms", "20p")}
[[flows]]
count = 2
congestion = "cubic"
[record]
pcap = true
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[ac.Dataset, Path]:
    place = tmp_path_factory.mktemp("made") / "captures"
    data = ac.run(ac.loads(SCENARIO).plan(), captures=place)
    (pcap,) = place.iterdir()
    return data, pcap


def test_tab_offers_public_names_only():
    assert dir(ac) == sorted(ac.__all__)
    assert all(getattr(ac, name) is not None for name in ac.__all__)
    assert {"capture", "compare", "doctor", "find", "read", "report", "reproduce"} <= set(ac.__all__)


def test_packages_can_be_called_and_remain_packages(made):
    _, pcap = made
    assert ac.capture is ackclock.capture
    assert inspect.signature(ac.capture) == inspect.signature(ackclock.capture.read)
    assert "rate" in inspect.signature(ac.scenario).parameters
    one, listed = ac.capture(pcap), ac.capture([str(pcap)], segments=True)
    assert one.analysis["connections"] == listed.analysis["connections"] == 2
    assert ac.doctor(pcap).verdict is ackclock.doctor.diagnose([pcap]).verdict
    with pytest.raises(TypeError):
        ac.capture(3)


def test_a_diagnosis_of_a_folder_is_that_of_its_captures(made, tmp_path):
    _, pcap = made
    folder = ac.capture(pcap).data.write(tmp_path / "captured")
    assert repr(ac.doctor(folder)) == repr(ac.doctor(pcap))
    with pytest.raises(InputError, match="expression: found .*, a result; expected captures"):
        ac.doctor(folder, "tcp")


def test_reprs_are_short_and_have_units(made):
    data, pcap = made
    captured, diagnosis = ac.capture(pcap), ac.doctor(pcap)
    assert repr(diagnosis).startswith(f"Verdict: {diagnosis.verdict.label}.\n")
    assert len(repr(captured)) < 300
    for shown in (data, captured, diagnosis):
        assert shown._repr_html_().startswith("<div>")
    assert "Mb/s</td>" in captured._repr_html_()
    utilisation = data.metrics()["summary"]["utilisation"]["mean"]
    assert f"<td>Utilisation</td><td>{100 * utilisation:.1f}" in data._repr_html_()


def test_a_reproduction_counts_its_verdicts():
    row = Judged("packet", "c", "", 1.5, 1.0, 2.0, 3, "agrees", "within", counts=True, scale="quick")
    result = Result("X1", [row, row])
    assert repr(result) == "Reproduction X1, at the quick scale, with packet\n2 agrees"
    assert "<td>1.00 – 2.00</td><td>agrees</td>" in result._repr_html_()
    with pytest.raises(InputError, match="nothing-like-it"):
        ac.reproduce("nothing-like-it")


def test_samples_are_a_grid_in_xarray(made):
    pytest.importorskip("xarray")
    data, _ = made
    grid = data.to_xarray()
    rows = data.flow_samples
    assert dict(grid.sizes) == {"run": 1, "flow": 2, "time_s": rows["time_s"].n_unique()}
    some = rows.row(rows.height // 2, named=True)
    here = grid["cwnd"].sel(run=some["run"], flow=some["flow"], time_s=some["time_s"])
    assert float(here) == some["cwnd"]
    assert grid["srtt_s"].attrs["units"] == "s"
    assert data.to_xarray("events").sizes["row"] == data.events.height
    assert dict(data.to_xarray("links").sizes) == {"run": 1, "link": data.links.height}  # two columns are lists
    with pytest.raises(InputError, match="table: found"):
        data.to_xarray("nothing")


def test_a_grid_that_would_be_mostly_empty_is_rejected():
    pytest.importorskip("xarray")
    table = pl.DataFrame({"run": [0] * 100, "flow": range(100), "time_s": [float(at) for at in range(100)]})
    with pytest.raises(InputError, match=r"found 1 × 100 × 100 values of run, flow, time_s for 100 rows"):
        lazy_frame.xarray_dataset("flow_samples", table)
