"""The rule of R6.cap: response times of downloads beside an upload and small UDP packets, told from captures."""

from collections.abc import Mapping

from ackclock.gallery import Measured, Row, near, ratio
from ackclock.gallery.entry import Published
from ackclock.reproductions.transfers import captured_completion_of, completion_of

ENGINES = ("packet",)

#: Short ones: up to so many segments.
SHORT = 10

MEASURES = {"run short": completion_of(most=SHORT)}
CAPTURED = {"short": captured_completion_of(most=SHORT)}

UPLOADS, LOADS = ("reno", "cubic"), ("alone", "udp")

#: Tolerances of the capture analysis against the truth: within 2 %; within 10 %.
TRUE, NEARLY = 0.02, 0.1

#: “Divided by two”, read from curves; less.
A_HALF, LESS = (0.4, 0.6), (0.25, 0.8)

#: “Identical”: within a tenth; within a quarter.
SAME, ALIKE = 0.1, 0.25


def check(measured: Measured, published: Mapping[str, Published]) -> list[Row]:
    """Rows in the order of the claims."""
    cases = [f"{upload} {load}" for upload in UPLOADS for load in LOADS]
    true, nearly = near(1.0, TRUE), near(1.0, NEARLY)
    truth = [
        Row("truth", ratio(measured[case]["short"], measured[case]["run short"]), true, nearly, case) for case in cases
    ]
    short = {case: measured[case]["short"] for case in cases}
    half = [
        Row("half", ratio(short[f"{upload} udp"], short[f"{upload} alone"]), A_HALF, LESS, upload) for upload in UPLOADS
    ]
    alike = Row("alike", ratio(short["cubic alone"], short["reno alone"]), near(1.0, SAME), near(1.0, ALIKE))
    return [*truth, *half, alike]
