"""Scenario files of the evaluation: those of the package, and a user's own with their mistakes."""

from __future__ import annotations

import os
import re

import numpy as np
import pytest
from small_networks import dumbbell

import ackclock as ac
from ackclock.errors import InputError, ScenarioError
from ackclock.evaluate import NOT_COVERED, SECTIONS, cases, in_section, page

SCENARIO = f"""\
duration = "4s"

{dumbbell("5Mbit", "20ms")}

[[flows]]
name = "tested"
congestion = "cubic"

[[flows]]
name = "other"
congestion = "reno"

[evaluate]
section = "5.2.1"
why = "A test."
victim = "other"
harm = ["goodput_bps"]
"""


@pytest.fixture(scope="module")
def ours() -> list[cases.Case]:
    return cases.read([cases.FOLDER], ac.load)


def test_each_section_has_a_scenario_or_a_reason(ours):
    covered = {case.judged.section for case in ours}
    assert covered | NOT_COVERED.keys() == SECTIONS.keys()
    assert not covered & NOT_COVERED.keys()


def test_files_are_named_after_their_sections_and_in_their_order(ours):
    assert all(case.name.startswith(f"{case.judged.section}-") for case in ours)
    order = list(SECTIONS)
    assert [order.index(case.judged.section) for case in ours] == sorted(
        order.index(case.judged.section) for case in ours
    )


def test_every_figure_of_the_dossier_has_a_scenario(ours):
    assert {case.judged.figure for case in ours} == {None, "harm", "share", "trade-off", "convergence"}


def test_victims_and_the_tested_are_different_groups(ours):
    for case in ours:
        if case.judged.victim:
            alone = case.isolated_victim()
            assert alone is not None
            content = alone.source.toml()
            groups = [*content.get("flows", []), *content.get("traffic", [])]
            kept = [group.get("name") for group in groups if group.get("size") != "1p" and group.get("stop") != "1us"]
            assert case.judged.victim in kept
            assert "tested" not in kept


def test_sections_contain_their_own():
    assert in_section("5.2.1", "5.2")
    assert in_section("5.2", "5.2")
    assert not in_section("7.11", "7.1")
    assert not in_section("5.2", "5.2.1")


def read(folder, text, **options):
    (folder / "own.toml").write_text(text)
    return cases.read([folder], ac.load, **options)


def test_variants_replace_the_tested_algorithm_only(tmp_path):
    (case,) = read(tmp_path, SCENARIO)
    plans = [point.plan for point in case.variants(["cubic", {"kind": "aimd", "beta": 0.9}]).points()]
    assert [[group.congestion.kind for group in plan.groups] for plan in plans] == [["cubic", "reno"], ["aimd", "reno"]]
    alone = case.isolated_victim()
    assert alone is not None
    tested, victim = alone.plan().flows
    assert tested.size_bytes == alone.plan().groups[0].tcp.mss_bytes
    assert victim.size_bytes is None


def test_an_ordinary_command_ignores_the_table(tmp_path):
    (case,) = read(tmp_path, SCENARIO)
    without = re.sub(r"\[evaluate\].*", "", SCENARIO, flags=re.DOTALL)
    own, plain = case.loaded.plan().to_dict(), ac.loads(without, "own.toml").plan().to_dict()
    assert {**own, "scenario_text": "", "name": ""} == {**plain, "scenario_text": "", "name": ""}


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ('"5.2.1"', '"5.9"', r'own.toml:\d+: evaluate.section: found "5.9"; expected '),
        ('"5.2.1"', '"two"', r'own.toml:\d+: evaluate.section: found "two"; expected a section of RFC 9743'),
        ('victim = "other"', 'victim = "others"', 'evaluate.victim: found "others"; expected "other"'),
        ('["goodput_bps"]', '["goodput"]', r"evaluate.harm\[0\]: found"),
        ('["goodput_bps"]', '["utilisation"]', r"evaluate.harm\[0\]: found"),
        ('["goodput_bps"]', "[]", "evaluate: found neither harm nor performance"),
        ('why = "A test."', "", r"evaluate.why: found nothing"),
        ('victim = "other"', 'tested = "flows[2]"', r'evaluate.tested: found "flows\[2\]"; expected a table'),
        ("[evaluate]", "[evaluation]", "evaluation: found"),
    ],
)
def test_mistakes_are_one_line_with_the_key(tmp_path, before, after, expected):
    with pytest.raises(ScenarioError) as error:
        read(tmp_path, SCENARIO.replace(before, after))
    assert re.search(expected, str(error.value)), str(error.value)
    assert str(error.value).count("\n") == 0


def test_a_file_without_the_table_is_a_mistake(tmp_path):
    with pytest.raises(ScenarioError, match=r"evaluate: found no table \[evaluate\]"):
        read(tmp_path, SCENARIO.partition("[evaluate]")[0])


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"section": "9"}, '--section: found "9"; expected'),
        ({"section": "7.2"}, "--section: found no scenario for 7.2; expected one or more"),
        ({"quick": True}, r"found no scenario for any section in the short evaluation \(--quick\)"),
    ],
)
def test_a_selection_of_nothing_is_a_mistake(tmp_path, options, expected):
    with pytest.raises(InputError, match=expected):
        read(tmp_path, SCENARIO, **options)


def test_missing_folders_and_duplicate_names_are_reported(tmp_path):
    with pytest.raises(InputError, match="--scenarios: found no folder"):
        cases.read([tmp_path / "none"], ac.load)
    (tmp_path / "own.toml").write_text(SCENARIO)
    with pytest.raises(InputError, match=r"found own.toml twice"):
        cases.read([tmp_path, tmp_path], ac.load)


SWEEP = '[sweep]\n"network.rtt" = ["10ms", "20ms"]\n"network.rate" = ["5Mbit", "9Mbit"]\n\n[evaluate]'


@pytest.mark.parametrize(
    ("axis", "expected"),
    [
        ('"flows[0].congestion" = ["cubic", "bbr"]', r"sweep.flows\[0\].congestion: found a sweep of flows\[0\]"),
        ('"flows[0].congestion.beta" = [0.5, 0.7]', r"of the tested table is the one under test"),
        ('"flows[0].size" = ["10p", "20p"]', r"sets this one where it runs the victim by itself"),
        ('"flows[0]" = [{ name = "tested" }, { name = "mine" }]', r"sets this one where it runs the victim by itself"),
        ('"flows[1].name" = ["other", "another"]', r'found "other"; expected "another".*\(where flows\[1\].name = ano'),
        ('"flows[0].name" = ["tested", "other"]', r"a name of its own.*\(where flows\[0\].name = other\)"),
    ],
)
def test_a_sweep_of_keys_set_by_the_evaluation_is_a_mistake(tmp_path, axis, expected):
    text = SCENARIO.replace('congestion = "cubic"', 'congestion = { kind = "cubic", beta = 0.6 }')
    with pytest.raises(ScenarioError) as error:
        read(tmp_path, text.replace("[evaluate]", f"[sweep]\n{axis}\n\n[evaluate]"))
    assert re.search(rf"own.toml:\d+: .*{expected}", str(error.value)), str(error.value)


def test_a_sweep_of_other_flows_and_of_an_unjudged_size_is_accepted(tmp_path):
    axis = '[sweep]\n"flows[1].congestion" = ["cubic", "bbr"]\n\n[evaluate]'
    (case,) = read(tmp_path, SCENARIO.replace("[evaluate]", axis))
    assert case.variants(["cubic", "vegas"]).count == 4
    axis = '[sweep]\n"flows[0].size" = ["10p", "20p"]\n\n[evaluate]'
    (case,) = read(tmp_path, SCENARIO.replace("[evaluate]", axis).replace('victim = "other"\n', ""))
    assert case.isolated_victim() is None


@pytest.mark.parametrize(
    ("tested", "victim", "expected"),
    [
        ('name = "tested"\n', 'victim = "tested"', 'evaluate.victim: found "tested"; expected "other"'),
        ('name = "other"\n', 'victim = "other"', "evaluate.victim: .* a name of its own"),
        ("", 'victim = "reno"', "evaluate.victim: .* a name of its own"),  # the tested flows are "reno" as well, once
    ],
)
def test_the_victim_is_another_group_than_the_tested_one(tmp_path, tested, victim, expected):
    text = SCENARIO.replace('name = "tested"\n', tested).replace('victim = "other"', victim)
    with pytest.raises(ScenarioError, match=expected):
        read(tmp_path, text if tested else text.replace('name = "other"\n', ""))


@pytest.mark.parametrize(
    ("sweep", "judged", "expected"),
    [
        ("[evaluate]", 'figure = "harm"', 'evaluate.figure: found "harm" with no swept keys; expected 2 in'),
        (SWEEP, 'figure = "convergence"', 'evaluate.figure: found "convergence" with 2 swept keys; expected none in'),
        (SWEEP, 'figure = "share"', "evaluate.performance: found nothing; expected a rate, such as goodput_bps"),
        (
            SWEEP,
            'figure = "share"\nperformance = ["loss_rate"]',
            r'evaluate.performance\[0\]: found "loss_rate"; expected a rate',
        ),
        (
            SWEEP,
            'figure = "trade-off"\nperformance = ["efficiency"]',
            r'evaluate.harm\[0\]: found "goodput_bps"; expected a delay',
        ),
    ],
)
def test_a_figure_without_its_metrics_or_swept_keys_is_a_mistake(tmp_path, sweep, judged, expected):
    with pytest.raises(ScenarioError, match=expected):
        read(tmp_path, SCENARIO.replace("[evaluate]", sweep) + judged + "\n")


def test_a_map_of_harm_requires_a_victim_and_metrics_of_harm(tmp_path):
    text = SCENARIO.replace("[evaluate]", SWEEP) + 'figure = "harm"\n'
    assert read(tmp_path, text)
    with pytest.raises(ScenarioError, match="evaluate.victim: found nothing; expected the name of a group"):
        read(tmp_path, text.replace('victim = "other"\n', ""))
    with pytest.raises(ScenarioError, match="evaluate.harm: found nothing; expected a metric of what the victim has"):
        read(tmp_path, text.replace("harm = [", "performance = ["))


def test_each_figure_has_its_requirements():
    assert cases.FIGURES.keys() == page.DRAWN.keys()


def test_the_maps_of_all_pairs_have_the_harm_to_a_victim_and_the_share_that_is_left():
    (case,) = cases.read([cases.FOLDER], ac.load, section="5.2.1", quick=True)
    assert case.points[7] == {"congestion": "bbr", "limit": "1bdp"}
    victim, tested = "goodput_bps[victim]", "goodput_bps[tested]"
    rows = {(-1, 7, victim): {1: 8e6, 2: 8e6}, (0, 7, victim): {1: 6e6, 2: 4e6}, (0, 7, tested): {1: 2e6, 2: 6e6}}
    for draw, row, expected in ((page.harm_map, 3, (25 + 50) / 2), (page.own_share_map, 1, (25 + 60) / 2)):
        (panel,) = draw(None, "packet", case, ["mine", "cubic", "reno"], rows).panels
        (heat,) = panel.layers
        assert heat.values[row, 2] == pytest.approx(expected)  # of the second buffer, the third competitor
        assert np.isfinite(heat.values).sum() == 1


def test_the_share_that_is_left_requires_goodput(tmp_path):
    text = SCENARIO.replace("[evaluate]", SWEEP) + 'figure = "harm"\nperformance = ["loss_rate"]\n'
    with pytest.raises(InputError, match="found no goodput of both groups"):
        page.own_share_map(None, "packet", read(tmp_path, text)[0], ["mine"], {})


@pytest.mark.parametrize("key", ["harm", "performance"])
def test_a_metric_of_no_group_is_a_mistake_with_its_line(tmp_path, key):
    text = SCENARIO.replace('harm = ["goodput_bps"]', f'{key} = ["goodput_bps[nosuch]"]')
    expected = rf'own.toml:\d+: evaluate.{key}\[0\]: found "goodput_bps\[nosuch\]"; expected a group: .*"other"'
    with pytest.raises(ScenarioError, match=expected):
        read(tmp_path, text)


def test_pipes_and_devices_are_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe.toml")
    (tmp_path / "endless.toml").symlink_to("/dev/zero")
    with pytest.raises(ScenarioError) as error:
        cases.read([tmp_path], ac.load, section="5.2")
    assert {problem.found for problem in error.value.problems} == {"a pipe", "a device"}


@pytest.mark.parametrize("name", ["...toml", "..toml", ".hidden.toml", "two\nlines.toml"])
def test_a_file_name_unfit_for_a_folder_is_a_mistake(tmp_path, name):
    (tmp_path / name).write_text(SCENARIO)
    with pytest.raises(InputError, match="--scenarios: .*: found this name; expected one that can be printed"):
        cases.read([tmp_path], ac.load)


def test_a_folder_without_scenarios_is_blamed_on_its_option(tmp_path):
    with pytest.raises(InputError, match=f"--scenarios: found no scenario in {re.escape(str(tmp_path))}"):
        cases.read([cases.FOLDER, tmp_path], ac.load, section="5.1")
