"""The short form of the fuzzing: what was found once, and some changes that are the same every time."""

from __future__ import annotations

import sys
from pathlib import Path
from random import Random

import pytest

sys.path.insert(0, str(Path(__file__).parent))
import mutations
import recipes
import targets

CORPUS = Path(__file__).parent / "corpus"

#: Scenarios whose check takes more than some milliseconds wait for `make fuzz`.
SMALL = 1000

COUNTS = {"scenario": 120, "result": 40}


@pytest.mark.parametrize("case", sorted(CORPUS.glob("*/*")), ids=lambda case: case.stem)
def test_fixed_faults_stay_fixed(case):
    targets.TARGETS[case.parent.name](case.read_bytes())


@pytest.mark.parametrize("target", targets.TARGETS)
def test_mutated_input_is_processed_or_rejected_in_one_line(target):
    random = Random(1)
    seeds = [seed for seed in mutations.SEEDS[target]() if len(seed) < SMALL]
    for _ in range(COUNTS[target]):
        targets.TARGETS[target](mutations.CHANGED[target](random.choice(seeds), random))


def test_changes_reach_the_planning():
    """Most changes must leave a scenario that is more than a mistake of TOML."""
    random = Random(2)
    seeds = [seed for seed in mutations.SEEDS["scenario"]() if len(seed) < SMALL]
    planned = sum(_is_planned(mutations.scenario(random.choice(seeds), random)) for _ in range(300))
    assert planned > 30


def _is_planned(data: bytes) -> bool:
    from ackclock.errors import InputError
    from ackclock.scenario import planning

    try:
        planning.loads(data.decode()).plan()
    except InputError:
        return False
    return True


@pytest.mark.parametrize(
    ("failure", "name"),
    [
        (KeyError("x"), "KeyError at ?"),
        (targets.InputError("two\nlines"), "several lines"),
        (RecursionError(), "Recur"),
    ],
)
def test_a_fault_is_detected(failure, name):
    with pytest.raises(targets.Finding, match=name.replace("?", r"\?")), targets.understood():
        raise failure


def test_every_edit_of_a_recipe_changes_files():
    given = {
        "set": [["engine"], "x"],
        "del": [["engine"]],
        "flip": ["flows", 100, 1],
        "cut": ["flows", 100],
        "grow": ["flows", 4, "\0"],
        "swap": ["flows", "links"],
        "remove": ["flows"],
        "again": ["flows"],
        "cell": ["flows", "start_s", 0, 3.0],
        "fill": ["flows", "start_s", 3.0],
        "cast": ["flows", "flow", "f64"],
        "rename": ["flows", "flow", "x"],
        "drop": ["flows", "flow"],
        "head": ["flows", 1],
        "backwards": ["flows"],
    }
    assert given.keys() == recipes.EDITS.keys()
    for name, words in given.items():
        assert recipes.prepared(b'[0, ["%s", %s]]' % (name.encode(), _json(words))) != recipes.results()[0], name


def _json(words: list[object]) -> bytes:
    import json

    return json.dumps(words)[1:-1].encode()
