"""The cards: complete, consistent, and in agreement with what a plan and the packet engine need."""

from __future__ import annotations

import dataclasses
import json

import pytest
from pydantic import TypeAdapter, ValidationError

from ackclock import algorithms
from ackclock.algorithms.kernel import Absent, Clock, Fixed, Knob, Word
from ackclock.errors import InputError
from ackclock.plan import TcpPlan
from ackclock.scaffold import contract

CARDS = algorithms.every()
READER = TypeAdapter(algorithms.Card)
IN_LINUX = [card for card in CARDS if card.linux]

#: Parameters from which functions of the engine linux compute another value.
COMPUTED = {
    "queue/ared": {"limit", "target", "floor", "avpkt", "probability", "ecn"},
    "queue/prio": {"limit"},
    "queue/tbf": {"latency"},
}


def names(cards):
    return [f"{card.family}/{card.name}" for card in cards]


def test_the_algorithms_of_this_version_have_cards():
    assert set(names(CARDS)) >= {
        "congestion/cubic",
        "congestion/reno",
        "queue/bfifo",
        "queue/pfifo",
        "stack/linux",
        "stack/rfc",
    }


@pytest.mark.parametrize("card", CARDS, ids=names(CARDS))
def test_a_card_is_complete_and_its_defaults_and_variants_are_within_their_ranges(card):
    assert card.name in algorithms.names(card.family)
    assert not [*contract.spec_errors(card)]


@pytest.mark.parametrize("card", CARDS, ids=names(CARDS))
def test_a_cards_own_values_are_read_as_any_others_are(card):
    values = [(parameter, parameter.default) for parameter in card.parameters.values() if parameter.default is not None]
    for variant in card.variants.values():
        values += [(card.parameters[name], value) for name, value in variant.parameters.items()]
    for parameter, value in values:
        found, read = parameter.of_card(value), parameter.read(value)
        assert (found, type(found)) == (read, type(read))


@pytest.mark.parametrize("card", CARDS, ids=names(CARDS))
def test_the_table_accepts_exactly_the_parameters_of_the_spec(card):
    required = {name: "1p" if p.kind == "packets" else "64KB" for name, p in card.parameters.items() if p.required}
    card.table.model_validate({algorithms.NAME_KEYS[card.family]: card.name, **required})
    with pytest.raises(ValidationError, match="an unknown key"):
        card.table.model_validate({**required, "no_such_parameter": 1})


def test_stacks_have_the_same_parameters_and_they_are_those_of_a_plan():
    stacks = [algorithms.card("stack", name) for name in algorithms.names("stack")]
    fields = {field.name for field in dataclasses.fields(TcpPlan)} - {"header_bytes"}
    for card in stacks:
        keys = {card.key(name) for name in card.parameters}
        assert keys - {"mtu_bytes"} == fields
        for name, parameter in card.parameters.items():
            other = stacks[0].parameters[name]
            same = ("kind", "minimum", "maximum", "choices", "unlimited")
            assert [getattr(parameter, key) for key in same] == [getattr(other, key) for key in same]


def test_defaults_of_the_stacks():
    linux = algorithms.card("stack", "linux").complete({})
    assert (linux["min_rto"], linux["initial_rto"], linux["max_rto"]) == (0.2, 1.0, 120.0)
    assert (linux["delayed_ack"], linux["delayed_ack_timeout"]) == ("quick", 0.04)
    assert (linux["loss_detection"], linux["recovery_reduction"], linux["tail_loss_probe"]) == ("rack", "prr", True)
    rfc = algorithms.card("stack", "rfc").complete({})
    assert (rfc["min_rto"], rfc["rto_floor_on_variance"]) == (1.0, False)
    assert (rfc["loss_detection"], rfc["recovery_reduction"], rfc["tail_loss_probe"]) == (
        "duplicate_acks",
        "immediate",
        False,
    )
    assert linux["initial_window"] == rfc["initial_window"] == 10


def test_what_is_given_goes_before_the_variant_and_the_variant_before_the_default():
    cubic = algorithms.card("congestion", "cubic")
    assert cubic.complete({})["beta"] == 0.7
    assert cubic.complete({}, "2008")["beta"] == 0.8
    assert cubic.complete({}, "2008")["hystart"] is False
    assert cubic.complete({"beta": 0.5}, "2008")["beta"] == 0.5
    assert cubic.complete({}, "rfc9438")["reno_catch_up"] is True


def test_names_in_a_plan_carry_the_unit():
    assert algorithms.card("queue", "pfifo").key("limit") == "limit_packets"
    assert algorithms.card("queue", "bfifo").key("limit") == "limit_bytes"
    assert algorithms.card("stack", "linux").key("min_rto") == "min_rto_s"
    assert algorithms.card("congestion", "cubic").key("beta") == "beta"


@pytest.mark.parametrize("card", IN_LINUX, ids=names(IN_LINUX))
def test_every_parameter_reaches_the_kernel(card):
    """Every parameter that a scenario gives reaches the kernel."""
    told = set(card.linux.parameters)
    assert told <= set(card.parameters)
    made_of = algorithms.card("queue", card.linux.discipline).kernel_parameters(Word) if card.linux.discipline else {}
    computed = COMPUTED.get(f"{card.family}/{card.name}", set())
    assert not told & computed
    assert set(card.parameters) == told | computed | (set(made_of) & set(card.parameters))


@pytest.mark.parametrize("card", IN_LINUX, ids=names(IN_LINUX))
def test_parameters_reach_the_kernel_in_the_form_of_the_family(card):
    forms = {"congestion": (Knob, Fixed, Absent, Clock), "queue": (Word, Fixed, Absent)}[card.family]
    assert all(isinstance(told, forms) for told in card.linux.parameters.values())
    for knob in card.kernel_parameters(Knob).values():
        assert bool(card.linux.module) != (card.linux.ours or card.linux.user_supplied)
        assert (knob.default is None) != bool(card.linux.module), "the kernel's own modules have defaults"
    for name, word in card.kernel_parameters(Word).items():
        assert card.parameters[name].kind == "boolean" or not word.otherwise
    assert all(card.parameters[name].default is None for name in card.kernel_parameters(Absent))


def test_what_the_kernel_fixes_is_in_a_plans_units():
    assert algorithms.card("queue", "fq_pie").fixed == {"max_burst_s": 0.15, "derandomize": True, "mtu_bytes": 1514}
    assert algorithms.card("queue", "red").fixed == {"weight": None, "gentle": False, "bytes": True, "weighted": False}
    assert algorithms.card("congestion", "scalable").fixed == {"a": 0.01, "b": 0.125}
    assert algorithms.card("queue", "blue").fixed == {}


def test_a_form_that_the_kernel_has_not_is_an_error():
    content = {"name": "x", "title": "X", "summary": "x"}
    for told in ({"word": "limit", "scale": 2}, {"clock": True, "fixed": 1}, {}):
        with pytest.raises(TypeError):
            algorithms.made("queue", {**content, "linux": {"parameters": {"limit": told}}})


@pytest.mark.parametrize("wrong", [{"colour": "red"}, {"parameters": {"limit": {"kind": "time", "unit": "s"}}}])
def test_a_card_with_other_keys_is_an_error(wrong):
    content = {"name": "x", "title": "X", "summary": "x"}
    with pytest.raises(TypeError, match="colour|description"):
        algorithms.made("queue", {**content, **wrong})


@pytest.mark.parametrize("card", CARDS, ids=names(CARDS))
def test_values_of_a_spec_have_the_declared_types(card):
    """The types are checked here because reading a spec does not, for speed."""
    READER.validate_json(json.dumps(dataclasses.asdict(card)), strict=True)


def test_a_card_of_other_types_is_noticed():
    with pytest.raises(ValidationError):
        READER.validate_json(json.dumps(dataclasses.asdict(dataclasses.replace(CARDS[0], title=1))), strict=True)


@pytest.mark.parametrize("card", CARDS, ids=names(CARDS))
def test_the_head_of_a_card_has_its_title(card):
    assert algorithms.title(card.family, card.name) == card.title


def test_a_text_must_match_its_pattern():
    priomap = algorithms.card("queue", "prio").parameters["priomap"]
    assert priomap.read("0 1 2 2 1 2 0 0 1 1 1 1 1 1 1 15") == "0 1 2 2 1 2 0 0 1 1 1 1 1 1 1 15"
    for wrong in ["", "1 2 2", "1 2 2 2 1 2 0 0 1 1 1 1 1 1 1 16", "1 2 2 2 1 2 0 0 1 1 1 1 1 1 1 1\n", 1]:
        with pytest.raises(ValidationError):
            priomap.read(wrong)


def test_an_unknown_card_names_the_nearest():
    with pytest.raises(InputError, match='found "cubik"; expected "cubic"'):
        algorithms.card("congestion", "cubik")
    assert algorithms.find("cubik") == []
