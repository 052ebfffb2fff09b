"""Summary sentence of captures."""

from typing import Any

from ackclock.capture.analysis import sentence


def analysis(*shared: float) -> dict[str, Any]:
    """Flows behind a queue, each with this part of its time at a shared link."""
    flows = [{"bytes": 1_000_000, "segments_lost": 0, "limited": {"shared_bottleneck": share}} for share in shared]
    path = {"limiter": "queue", "rate_bps": 6e6, "depth_bytes": None}
    return {
        "flows": flows,
        "vantage": "sender",
        "connections": len(flows),
        "capture_loss": {"packets": 0},
        "path": path,
    }


def test_a_full_link_has_its_rate_whoever_shares_it():
    for of_all in (analysis(0.1), analysis(0.9), analysis(0.9, 0.9)):
        assert sentence(of_all, 1_000_000, 0).endswith("A queue before a link of 6.00 Mb/s.")


def test_a_capture_without_a_connection_reports_so():
    def without(**file: int) -> str:
        return sentence({"connections": 0, "files": [{"packets": 464, **file}]}, 0, 0)

    assert without(filtered=464) == "None of 464 packets matches the filter."
    assert without(filtered=400, not_tcp=64) == "No TCP among 64 packets."
    assert without(not_tcp=464) == "No TCP among 464 packets."
    assert without(not_tcp=20) == "No connection among 464 packets."
