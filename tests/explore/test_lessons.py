"""Lessons: every one runs, and what their texts state holds."""

from __future__ import annotations

import pytest

import ackclock as ac
from ackclock import metrics
from ackclock.explore import runs
from ackclock.explore.lessons import lessons

LESSONS = {lesson.name: lesson for lesson in lessons()}


def parts(text: str) -> dict[str, dict]:
    """Return the last part of each kind."""
    return {part["part"]: part for part in runs.parts(runs.prepared(text))}


def values(text: str) -> dict[str, float]:
    return parts(text)["numbers"]["values"]


def rates_bps(text: str) -> dict[str, float]:
    """Mean goodput of a flow, by group."""
    return {name: group["goodput_mean_bps"].mean for name, group in metrics.by_group(ac.run(text)).items()}


def test_the_course_has_twelve_lessons_of_three_questions():
    assert len(LESSONS) == 12
    for lesson in LESSONS.values():
        assert len(lesson.questions) == 3
        assert all(
            (question.endswith(("?", ".")) and "?" in question) or "Compare" in question
            for question in lesson.questions
        )
        assert lesson.title
        assert lesson.text
        assert lesson.watch


@pytest.mark.parametrize("name", LESSONS)
def test_a_lesson_runs_and_draws_every_panel(name):
    lesson = LESSONS[name]
    for text in filter(None, (lesson.scenario, lesson.compare)):
        picture = parts(text)["picture"]
        assert all(picture[panel] for panel in ("cwnd", "goodput", "queue", "events", "phase"))


def both(name: str) -> tuple[str, str]:
    return LESSONS[name].scenario, LESSONS[name].compare


def test_a_large_buffer_never_drains():
    a, b = map(values, both("standing-queue"))
    assert a["queue_empty_share"] == 0 < b["queue_empty_share"]


def test_the_buffer_decides_between_bbr_and_cubic():
    a, b = map(rates_bps, both("two-bbr-and-a-cubic"))
    assert a["bbr"] > 2 * a["cubic"]
    assert b["cubic"] > 2 * b["bbr"]
    assert any("Starved" in warning for warning in parts(both("two-bbr-and-a-cubic")[0])["numbers"]["warnings"])


def test_a_policer_drops_and_a_shaper_delays():
    a, b = map(values, both("policer"))
    assert a["queue_delay_mean_s"] < 0.005
    assert b["queue_delay_mean_s"] > 0.05
    assert a["loss_rate"] > b["loss_rate"]
    assert max(a["goodput_bps"], b["goodput_bps"]) < 5e6


def test_codel_keeps_near_its_target():
    a, b = map(values, both("codel-law"))
    assert 0.0025 < a["queue_delay_mean_s"] < 0.01 < b["queue_delay_mean_s"]


def test_incast_waits_for_timeouts():
    a, b = map(values, both("incast"))
    assert a["timeouts"] > 0 == b["timeouts"]
    late, prompt = (metrics.by_group(ac.run(text))["answers"]["fct_p95_s"].mean for text in both("incast"))
    assert late > 0.2
    assert prompt < 0.02


def test_between_the_rounds_of_an_incast_is_nothing():
    """Four rounds of 160 answers in all, each over within a quarter of a second: between them nothing is delivered."""
    picture = parts(LESSONS["incast"].compare)["picture"]
    for panel, y in (("goodput", picture["goodput"]["groups"][0]["y"]), ("queue", picture["queue"]["y"])):
        between = [value for t, value in zip(picture[panel]["t"], y, strict=True) if t % 0.5 > 0.25]
        assert between == [0] * len(between) != []
        assert max(y) > 1


def test_four_times_the_losses_halve_renos_rate():
    """RFC 5348 and Mathis et al. 1997: the rate is proportional to 1/√p."""
    a, b = (values(text)["goodput_bps"] for text in both("reno-and-loss"))
    assert a / b == pytest.approx(2, rel=0.2)


def test_the_short_path_gets_more():
    rates = rates_bps(LESSONS["short-and-long-paths"].scenario)
    assert rates["short"] > 3 * rates["long"]


def test_hystart_loses_less_in_the_first_second():
    first = []
    for text in both("slow-start"):
        events = parts(text)["picture"]["events"]
        first.append(sum(drops for t, drops in zip(events["t"], events["drop"], strict=True) if t < 1))
    assert first[0] > 5 * first[1]


def test_fair_queueing_protects_the_call():
    a, b = (metrics.by_group(ac.run(text))["call"]["rtt_mean_s"].mean for text in both("protecting-a-thin-flow"))
    assert a > 1.5 * b


def test_marks_instead_of_drops():
    pictures = [parts(text)["picture"]["events"] for text in both("marks-instead-of-drops")]
    for events in pictures:
        assert sum(events["mark"]) > 0 == sum(events["drop"])
    a, b = map(values, both("marks-instead-of-drops"))
    assert a["utilisation"] > b["utilisation"]


def test_many_flows_use_a_small_buffer_better():
    a, b = map(values, both("many-flows-small-buffer"))
    assert b["utilisation"] > a["utilisation"] + 0.05


def test_the_long_flow_gets_less_than_half():
    rates = rates_bps(LESSONS["parking-lot"].scenario)
    assert rates["long"] < 0.25 * 20e6
    assert min(rate for name, rate in rates.items() if name != "long") > 0.5 * 20e6
