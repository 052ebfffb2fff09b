"""The page of a diagnosis: sentences, figures and pictures."""

from __future__ import annotations

import json
import re
from dataclasses import replace

from ackclock.capture import tables as capture_tables
from ackclock.capture.diagnosis import Diagnosis, diagnose
from ackclock.capture.findings import Cause, Finding
from ackclock.dataset import Spool
from ackclock.figures.report import diagnosis as diagnosis_page


def figures(page: str) -> dict:
    return json.loads(re.search(r'id="figures">(.*?)</script>', page, re.S)[1])


def test_each_finding_appears_with_its_pictures(result):
    diagnosis = diagnose(result.analysis)
    page = diagnosis_page.render(result.data, result.analysis, diagnosis)
    for finding in diagnosis.findings:
        assert finding.sentence in page.replace("&#39;", "'")
    drawn = figures(page)
    assert {key.split("-")[1] for key in drawn} == {kind for one in diagnosis.findings for kind in one.shown}
    assert all(f'id="{key}"' in page for key in drawn)
    assert all(spec["data"] for spec in drawn.values())
    assert f"<h1>{diagnosis.verdict.label.capitalize()}</h1>" in page


def test_a_picture_is_shown_one_time(result):
    twice = tuple(Finding(Cause.NETWORK, f"Sentence {number}.", {}, shown=("rtt",)) for number in range(2))
    page = diagnosis_page.render(result.data, result.analysis, Diagnosis(Cause.NETWORK, {Cause.NETWORK: 0.5}, twice))
    assert list(figures(page)) == ["finding0-rtt"]
    assert "50.0 %" in page


def test_a_stall_is_shown_from_near(result):
    stalls = {"time_s": [1.0, 2.0], "flow": [0, 0], "duration_s": [0.25, 0.75], "class": ["host", "timeout"]}
    spool = Spool(names=capture_tables.NAMES)
    spool.append("stalls", {**stalls, "confidence": [1.0, 1.0]})
    parts = spool.dataset({"runs": [{"run": 0}]}).parts
    data = replace(result.data, parts={**result.data.parts, "stalls": parts["stalls"]})
    finding = Finding(Cause.HOST, "It stood still.", {"class": "timeout"}, shown=("stalls", "sequence"))
    drawn = figures(diagnosis_page.render(data, result.analysis, Diagnosis(Cause.HOST, {}, (finding,))))
    assert drawn["finding0-sequence"]["layout"]["xaxis"]["range"] == [1.25, 3.5]
    assert drawn["finding0-stalls"]["layout"]["xaxis"]["range"][0] == 0.0


def test_names_of_files_are_text(result):
    answers = {**result.analysis, "summary": "<b>1 & 2</b>", "files": [{"path": "</script><script>alert(1)"}]}
    page = diagnosis_page.render(result.data, answers, Diagnosis(Cause.NOTHING, {}))
    assert "<script>alert" not in page
    assert "&lt;b&gt;1 &amp; 2" in page
