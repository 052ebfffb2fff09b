"""The guides against what they describe: tables of keys against the specs."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from ackclock import algorithms
from ackclock.metrics.summary import student_quantile

DOCS = Path(__file__).parents[2] / "docs"
ROW = re.compile(r"^\| `(\w+)` \| (.*?) \| (.*?) \| (.*?) \| (.*?) \|$", re.MULTILINE)


def test_the_table_of_tcp_has_the_descriptions_of_the_specs():
    specs = {spec.name: spec for spec in algorithms.every() if spec.family == "stack"}
    text = (DOCS / "guides" / "scenario-file.md").read_text("utf-8")
    rows = [match for match in ROW.findall(text) if match[0] in specs["linux"].parameters]
    assert {name for name, *_ in rows} == set(specs["linux"].parameters)
    for name, *_, meaning in rows:
        parameter = specs["linux"].parameters[name]
        assert meaning.removesuffix(f" ({parameter.unit})") == parameter.description


def test_the_factors_of_half_widths_are_students():
    text = (DOCS / "guides" / "seeds.md").read_text("utf-8")
    rows = re.findall(r"^\| (\d+) \| ([\d.]+) \| ([\d.]+) \|$", text, re.MULTILINE)
    assert len(rows) == 7
    for n, quantile, factor in ((int(n), float(t), float(factor)) for n, t, factor in rows):
        assert quantile == pytest.approx(student_quantile(n - 1), abs=0.006)
        assert factor == pytest.approx(student_quantile(n - 1) / math.sqrt(n), rel=0.004)


def test_the_readme_links_to_files_of_a_checkout():
    """Pages that `make docs` makes are not there before: git ignores them."""
    ignored = [line.strip("/\n") for line in (DOCS.parent / ".gitignore").read_text("utf-8").splitlines()]
    links = re.findall(r"\]\(([^)#:]+)", (DOCS.parent / "README.md").read_text("utf-8"))
    assert len(links) > 20
    for link in links:
        assert (DOCS.parent / link).exists(), link
        assert not any(pattern and link.startswith(pattern.rstrip("*")) for pattern in ignored), link


#: Words that people search for.
SEARCHED = """
    bufferbloat, AQM, incast, zero window, retransmission, fairness, QUIC, latency, jitter, throughput, goodput,
    packet loss, congestion, buffer size, shaper, policer, token bucket, tc, netem, qdisc, ECN, L4S, BBR, CUBIC, Reno,
    slow start, RTO, SACK, handshake, SYN, MTU, pcap, tcpdump, Wireshark, iperf, ping, bandwidth, RTT, datacenter,
    multipath
"""


@pytest.mark.parametrize("word", re.split(r",\s+", SEARCHED.strip()))
def test_a_search_leads_to_a_page(word):
    pages = [*DOCS.glob("guides/*.md"), *DOCS.glob("concepts/*.md"), *DOCS.glob("reference/*.md")]
    pattern = re.compile(rf"\b{re.escape(word)}\b".replace(r"\ ", r"\s+"), re.IGNORECASE)
    assert any(pattern.search(page.read_text("utf-8")) for page in pages)
    glossary = (DOCS / "reference" / "glossary.md").read_text("utf-8")
    assert pattern.search(glossary), "a term of the glossary, or another word for one"


def levels(entries: list[object]) -> Iterator[list[object]]:
    """Yield the entries of each level of the navigation."""
    yield entries
    for entry in entries:
        for below in entry.values() if isinstance(entry, dict) else ():
            if isinstance(below, list):
                yield from levels(below)


def test_no_level_of_the_navigation_has_more_than_eight_entries():
    text = (DOCS.parent / "mkdocs.yml").read_text("utf-8")
    navigation = yaml.safe_load(text[text.index("nav:") : text.index("plugins:")])["nav"]
    assert max(map(len, levels(navigation))) <= 8
