"""Reading of other simulators' output, apart from plain counting."""

from __future__ import annotations

import numpy as np
import pytest

from ackclock.engines.external import tables


def test_a_transmission_may_go_on_in_the_next_interval():
    """Packets of 30 ms, counted as they begin, in intervals of 50 ms: busy throughout, then for what is left."""
    work_s = np.array([0.06, 0.03, 0.06, 0.0, 0.03])
    assert tables._busy_for(work_s, 0.05) == pytest.approx([0.05, 0.04, 0.05, 0.01, 0.03])


def test_a_missing_trace_has_no_packets(tmp_path):
    assert tables._traced(tmp_path / "losses").height == 0
    (tmp_path / "drops").write_text("link 3 0 1\nd 0.5 0 1 tcp 1500 ------- 7 0.0 1.0 2 3\n")
    assert tables._traced(tmp_path / "drops").rows() == [(0.5, 7, 3)]
