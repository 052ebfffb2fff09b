"""The building blocks of what users write: tables of known keys, quantities with units, and what is said of mistakes.

Every mistake becomes a *fault*: what was found and what is expected. Pydantic collects the faults of a whole file with
their places; `ackclock.scenario.scenario` adds the lines.
"""

from __future__ import annotations

import difflib
import json
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, TypeAlias

from pydantic import (
    BaseModel,
    ConfigDict,
    ModelWrapValidatorHandler,
    PlainValidator,
    ValidationError,
    WithJsonSchema,
    model_validator,
)
from pydantic_core import ErrorDetails, InitErrorDetails, PydanticCustomError, core_schema

from ackclock.input.units import OVER_SQRT_N, Size, SizeUnit, UnitError

Loc: TypeAlias = tuple[int | str, ...]

#: Longest excerpt of a user's value in a message, in characters.
EXCERPT = 60

#: Up to so many known words are listed beside the nearest one, and up to so many where none is near.
FEW, MAX_LISTED = 6, 12

#: The maximum number of words that are suggested for an unknown one.
SUGGESTIONS = 3

#: Likeness (`difflib`) of a word that is misspelt, and of one that may be: above two of three letters ("bdp", "udp").
MISSPELT, ALIKE = 0.8, 0.7

_DELAY = ("queue_delay_p95_s", "queue_delay_mean_s", "rtt_mean_s", "delay", "codel")
_LOSS = ("loss_rate", "retransmission_rate", "loss")
_QUEUE = ("queue_mean_p", "queue", "limit", "codel", "pfifo")
_RATE = ("goodput_bps", "throughput_bps", "rate", "utilisation")
_COMPLETION = ("fct_mean_s", "fct_p95_s", "slowdown_p99")

#: Names that are meant by other words of the field, the likeliest first: those that are known where the word is found.
SYNONYMS: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("delay", "latency", "bufferbloat", "lag", "sojourn"), _DELAY),
    **dict.fromkeys(("ping", "rtt"), ("rtt_mean_s", "rtt_p95_s", "rtt")),
    **dict.fromkeys(("fair", "fairness"), ("jain", "max_min_fairness", "cov_goodput")),
    "share": ("efficiency", "min_group_share", "jain"),
    **dict.fromkeys(("loss", "losses", "lost", "drop", "drops", "dropped"), _LOSS),
    **dict.fromkeys(("retransmit", "retransmits", "retransmission"), ("retransmission_rate", "timeouts")),
    **dict.fromkeys(("throughput", "bandwidth", "bw", "speed", "capacity"), _RATE),
    **dict.fromkeys(("utilization", "usage", "load"), ("utilisation", "load")),
    **dict.fromkeys(("fct", "completion", "duration", "slowdown"), _COMPLETION),
    **dict.fromkeys(("rto", "timeout"), ("timeouts", "min_rto", "initial_rto")),
    **dict.fromkeys(("queue", "buffer", "backlog", "occupancy"), _QUEUE),
    **dict.fromkeys(("aqm", "qdisc"), ("codel", "fq_codel", "cake", "pie", "discipline", "queue")),
    **dict.fromkeys(("sqm", "fq"), ("fq_codel", "cake", "fq_pie", "sfq")),
    **dict.fromkeys(("droptail", "drop_tail", "taildrop", "tail_drop", "fifo"), ("pfifo", "bfifo")),
    **dict.fromkeys(("ecn", "marks", "marking", "ce"), ("mark_rate", "ecn", "dctcp")),
    **dict.fromkeys(("bbr2", "bbrv2", "bbrv3"), ("bbr3", "bbr")),
    **dict.fromkeys(("newreno", "new_reno", "aimd"), ("reno",)),
    **dict.fromkeys(("cca", "cc", "control", "algorithm"), ("congestion", "cubic", "bbr")),
    **dict.fromkeys(("window", "cwnd"), ("cwnd_mean", "cwnd_peak", "cwnd")),
    **dict.fromkeys(("sack", "dsack"), ("sack", "stack")),
    **dict.fromkeys(("ef", "diffserv", "tos", "codepoint", "voice"), ("dscp", "diffserv", "prio", "cake")),
    **dict.fromkeys(("tin", "tins", "cobalt"), ("cake", "diffserv")),
    **dict.fromkeys(("video", "call", "voip", "rtp", "webrtc", "freeze"), ("media", "udp", "freezes")),
    **dict.fromkeys(("home", "router", "gateway", "dsl", "adsl"), ("asymmetric", "cake", "fq_codel")),
    **dict.fromkeys(("noq", "quinn", "http3"), ("quic",)),
    **dict.fromkeys(("l4s", "prague"), ("dualpi2", "dctcp")),
    **dict.fromkeys(("kernel", "uml", "netns"), ("linux", "kernel")),
    **dict.fromkeys(("simulation", "simulator", "des"), ("packet", "run")),
    **dict.fromkeys(("appenzeller", "stanford", "sizing"), ("buffer", "limit")),
    **dict.fromkeys(("simulate", "start", "exec"), ("run",)),
    **dict.fromkeys(("analyse", "analyze", "pcap", "wireshark", "inspect"), ("capture", "doctor")),
    **dict.fromkeys(("diagnose", "debug", "health"), ("doctor",)),
    **dict.fromkeys(("list", "ls", "info", "describe", "help", "explain"), ("show",)),
    **dict.fromkeys(("optimise", "optimize", "tune", "search", "recommend", "size"), ("find",)),
    **dict.fromkeys(("diff", "versus", "vs"), ("compare",)),
    **dict.fromkeys(("graph", "chart", "draw", "figure"), ("plot",)),
    **dict.fromkeys(("grid", "scan", "campaign"), ("sweep",)),
    **dict.fromkeys(("verify", "validate", "test"), ("check",)),
    **dict.fromkeys(("anova", "sensitivity"), ("effects",)),
    **dict.fromkeys(("replicate", "paper", "gallery"), ("reproduce",)),
    **dict.fromkeys(("create", "add", "scaffold"), ("new",)),
    **dict.fromkeys(("pack", "archive", "zip"), ("bundle",)),
}

#: Pydantic's error types, and what they expect in a user's words.
EXPECTED = {
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "finite_number": "a finite number",
    "bool_type": "true or false",
    "string_type": "a text in quotes",
    "list_type": "a list",
    "model_type": "a table of keys and values",
    "model_attributes_type": "a table of keys and values",
    "dict_type": "a table of keys and values",
    "greater_than_equal": "at least {ge}",
    "greater_than": "more than {gt}",
    "less_than_equal": "at most {le}",
    "less_than": "less than {lt}",
    "too_short": "at least {min_length} of them",
    "string_too_short": "at least {min_length} character",
    "string_too_long": "at most {max_length} characters",
    "too_long": "at most {max_length} of them",
}


class Table(BaseModel):
    """A table of known keys; its mistakes are faults."""

    # Most tables are not in a scenario: what checks one is made when it is first needed.
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, defer_build=True)

    #: Keys that are not accepted here but deserve a sentence of their own.
    hints: ClassVar[Mapping[str, str]] = {}

    #: The algorithm whose parameters the keys are, if they are.
    algorithm: ClassVar[str] = ""

    @classmethod
    def keys(cls) -> list[str]:
        """The keys as a user writes them."""
        return [field.alias or name for name, field in cls.model_fields.items()]

    @model_validator(mode="wrap")
    @classmethod
    def _explain(cls, value: Any, handler: ModelWrapValidatorHandler[Any]) -> Any:
        try:
            return handler(value)
        except ValidationError as error:
            details = _without_misspelt(cls, error.errors(include_url=False))
            found = [_explained(cls, d) for d in details]
            more = cls.joint_mistakes(value) if isinstance(value, dict) else ()
            places = {each.get("loc") for each in found}
            found += [each for each in more if each.get("loc") not in places]
            raise ValidationError.from_exception_data(error.title, found) from None

    @classmethod
    def joint_mistakes(cls, given: Mapping[str, Any]) -> Iterator[InitErrorDetails]:
        """Yield what keys lack together: validators check it only of tables without other mistakes."""
        return iter(())


class PlannedTable(Table):
    """A table that a plan has as well, in SI units."""

    #: Keys that have other names there, mostly with a unit.
    plan_keys: ClassVar[Mapping[str, str]] = {}

    def planned(self) -> dict[str, Any]:
        """Complete JSON-ready values in SI units, as the plan has them."""
        values = self.model_dump(mode="json", by_alias=True)
        return {self.plan_keys.get(key, key): value for key, value in values.items()}


def fault(found: str, expected: str) -> PydanticCustomError:
    """A mistake in a value, to be raised by a validator."""
    return PydanticCustomError("fault", "found {found}; expected {expected}", {"found": found, "expected": expected})


def fault_at(loc: Loc, value: object, expected: str, found: str | None = None) -> InitErrorDetails:
    """A mistake at a place below the validated value; give them to `faults`."""
    return InitErrorDetails(type=fault(found or shown(value), expected), loc=loc, input=value)


def faults(details: Collection[InitErrorDetails]) -> ValidationError:
    """An error to raise in a validator for mistakes at several places."""
    return ValidationError.from_exception_data("scenario", list(details))


def details(error: ValidationError) -> list[InitErrorDetails]:
    """Return the mistakes of a table, to be given to `faults` with others of the same one."""
    return [_explained(Table, detail) for detail in error.errors(include_url=False)]


def shown(value: object) -> str:
    """A value as the user wrote it, short and on one line."""
    if isinstance(value, dict):
        return "a table"
    if isinstance(value, (list, tuple)):
        return f"a list of {len(value)}"
    text = json.dumps(value, ensure_ascii=False) if isinstance(value, (str, bool)) else str(value)
    return _printable(text)


def dotted(loc: Loc) -> str:
    """A place as a dotted key: `network.queue.limit`, `flows[1].congestion`."""
    key = ""
    for item in loc:
        key += f"[{item}]" if isinstance(item, int) else f".{_printable(item)}" if key else _printable(item)
    return key


def nearest(word: object, known: Collection[object]) -> str:
    """Return the expectation for an unknown word: the nearest known ones, all if they are few, or some of many."""
    names = [name if isinstance(name, str) else shown(name) for name in known]
    listed = ", ".join(shown(name) for name in known)
    if close := suggestions(word, names):
        *others, last = map(shown, close)
        either = f"{', '.join(others)} or {last}" if others else last
        return f"{either} (known: {listed})" if len(close) < len(names) <= FEW else either
    if len(names) <= MAX_LISTED:
        return f"one of {listed}" if len(names) > 1 else listed
    some = _alike(_lower(word), names, 0.0)
    return f"one of {len(names)}, such as {', '.join(map(shown, some))}"


def suggestions(word: object, names: Collection[str]) -> list[str]:
    """Return the known names that an unknown word may mean, the likeliest first.

    The one that has all of its words, in another order or among others, else those that it is another word for, else
    the one that it misspells, else those that share words with it, else the one that it is like.
    """
    text = _lower(word)
    parts = _parts(text)
    whole = [name for name in names if len(parts) > 1 and set(parts) <= set(_parts(name.lower()))]
    meant = [name for key in ("_".join(parts), *parts) for name in SYNONYMS.get(key, ()) if name in names]
    shared = {name: sum(_is_in(part, name) for part in parts) for name in names}
    return (
        sorted(whole, key=len)[:1]
        or list(dict.fromkeys(meant))[:SUGGESTIONS]
        or _alike(text, names, MISSPELT)[:1]
        or sorted((name for name in names if shared[name]), key=lambda name: -shared[name])[:SUGGESTIONS]
        or _alike(text, names, ALIKE)[:1]
    )


def closest(word: object, names: Collection[str]) -> str | None:
    """The known word that may have been meant."""
    return next(iter(suggestions(word, names)), None)


def _alike(text: str, names: Collection[str], cutoff: float) -> list[str]:
    """Return the names that are most like a text in lower case."""
    lowered = {name.lower(): name for name in names}
    return [lowered[name] for name in difflib.get_close_matches(text, lowered, n=SUGGESTIONS, cutoff=cutoff)]


def _lower(word: object) -> str:
    return str(word)[:EXCERPT].lower()


def _parts(text: str) -> list[str]:
    return re.findall(r"[^\W_]+", text)


def _is_in(part: str, name: str) -> bool:
    """Return True if a word of a name begins with a part of another, or the part with it; neither may be short."""
    return any(
        min(len(part), len(other)) > 2 and (other.startswith(part) or part.startswith(other))
        for other in _parts(name.lower())
    )


def check_one_given(expected: str = "", **values: object) -> None:
    """Raise a fault unless one of two keys has a value; a key that is a word of Python ends in an underscore."""
    first, second = (key.removesuffix("_") for key in values)
    given = [value for value in values.values() if value is not None]
    if len(given) != 1:
        found = f"both {first} and {second}" if given else f"neither {first} nor {second}"
        raise fault(found, expected or f"one of {first} and {second}")


class Reader(ABC):
    """An annotation whose `read` checks a value and returns it as the scenario has it."""

    __slots__ = ()

    @abstractmethod
    def read(self, value: object) -> Any:
        """Return the value as the scenario has it. Raises a fault."""

    @abstractmethod
    def json_schema(self) -> dict[str, Any]:
        """The JSON Schema of what may be written."""

    def __get_pydantic_core_schema__(self, source: object, handler: object) -> core_schema.CoreSchema:
        return core_schema.no_info_plain_validator_function(self.read)

    def __get_pydantic_json_schema__(self, schema: object, handler: object) -> dict[str, Any]:
        return self.json_schema()


@dataclass(frozen=True, slots=True)
class Quantity(Reader):
    """An annotation: a text with a unit becomes a float in SI units, within bounds that are texts as well."""

    parse: Callable[[object], float]
    low: str
    high: str
    unlimited: bool = False

    def read(self, value: object) -> float | None:
        """The quantity in SI units; None if it may be, and is, "unlimited"."""
        if self.unlimited and value == "unlimited":
            return None
        try:
            amount = self.parse(value)
        except UnitError as error:
            raise fault(shown(value), error.expected + self._or_word()) from error
        if not self.parse(self.low) <= amount <= self.parse(self.high):
            raise fault(shown(value), f"{self.low} to {self.high}{self._or_word()}")
        return amount

    def _or_word(self) -> str:
        return ', or "unlimited"' if self.unlimited else ""

    def json_schema(self) -> dict[str, Any]:  # noqa: D102
        from ackclock.input import patterns

        text = {"type": "string", "pattern": patterns.quantity(self.parse)}
        about = {"description": f"{self.low} to {self.high}{self._or_word()}"}
        return {"anyOf": [text, {"const": "unlimited"}], **about} if self.unlimited else {**text, **about}


@dataclass(frozen=True, slots=True)
class SizeQuantity(Reader):
    """An annotation: a size in one of the accepted units becomes a `Size`, within bounds per unit."""

    parse: Callable[[object], Size]
    bounds: tuple[tuple[SizeUnit, float, float], ...]

    def read(self, value: object) -> Size:
        """The size, its unit kept."""
        try:
            size = self.parse(value)
        except UnitError as error:
            raise fault(shown(value), self._accepted()) from error
        if not any(_same(unit, size) and low <= size.value <= high for unit, low, high in self.bounds):
            raise fault(shown(value), self._accepted())
        if size.unit == "p" and size.value != int(size.value):
            raise fault(shown(value), f"whole packets: {self._accepted()}")
        return size

    def _accepted(self) -> str:
        every = " or ".join(f"{low:.16g}{unit} to {high:.16g}{unit}" for unit, low, high in self.bounds)
        return f"{every}, or a rule such as {OVER_SQRT_N}" if self.bounds[-1][0] == "bdp" else every

    def json_schema(self) -> dict[str, Any]:  # noqa: D102
        from ackclock.input import patterns

        kinds = tuple(unit for unit in ("B", "p", "bdp") if any(unit == own for own, _, _ in self.bounds))
        return {"type": "string", "pattern": patterns.size(kinds), "description": self._accepted()}


def word_reader(choices: tuple[str | bool, ...]) -> PlainValidator:
    """An annotation: one of a few words or booleans, exactly."""

    def read(value: object) -> str | bool:
        for choice in choices:
            if type(value) is type(choice) and value == choice:
                return choice
        raise fault(shown(value), nearest(value, choices))

    return PlainValidator(read, json_schema_input_type=Annotated[Any, WithJsonSchema({"enum": list(choices)})])


def text_reader(pattern: str, expected: str) -> PlainValidator:
    """An annotation: a text that matches a regular expression from its beginning to its end."""

    def read(value: object) -> str:
        if isinstance(value, str) and re.fullmatch(pattern, value):
            return value
        raise fault(shown(value), expected)

    form = Annotated[str, WithJsonSchema({"type": "string", "pattern": f"^({pattern})$"})]
    return PlainValidator(read, json_schema_input_type=form)


@dataclass(frozen=True, slots=True)
class Spread:
    """A value for each of several flows: one for all, a list taken in turn, or evenly from one end to the other."""

    values: tuple[Any, ...]
    evenly: bool = False

    def at(self, flow: int, flows: int) -> Any:
        """The value of one of so many flows. A range over one flow is its beginning."""
        if not self.evenly:
            return self.values[flow % len(self.values)]
        first, last = self.values
        return first + (last - first) * flow / max(flows - 1, 1)

    def over(self, flows: int) -> list[Any]:
        """The value of each flow."""
        return [self.at(flow, flows) for flow in range(flows)]


@dataclass(frozen=True, slots=True)
class Spreadable(Reader):
    """An annotation: a quantity, a list of them, or `{ from = …, to = … }` becomes a `Spread`."""

    quantity: Quantity | SizeQuantity

    def read(self, value: object) -> Spread:
        """The values, each checked as the quantity."""
        if isinstance(value, list):
            return Spread(self._each({(number,): item for number, item in enumerate(value)}, value))
        if not isinstance(value, dict):
            return Spread((self.quantity.read(value),))
        if set(value) != {"from", "to"} or not isinstance(self.quantity, Quantity):
            raise fault(shown(value), 'one value, a list of them, or { from = "…", to = "…" }')
        return Spread(self._each({("from",): value["from"], ("to",): value["to"]}, value), evenly=True)

    def _each(self, items: Mapping[Loc, object], value: object) -> tuple[Any, ...]:
        if not items:
            raise fault(shown(value), "at least one value")
        amounts, mistakes = [], []
        for loc, item in items.items():
            try:
                amounts.append(self.quantity.read(item))
            except ValueError as error:
                mistakes.append(InitErrorDetails(type=error, loc=loc, input=item))  # type: ignore[typeddict-item]
        if mistakes:
            raise faults(mistakes)
        return tuple(amounts)

    def json_schema(self) -> dict[str, Any]:  # noqa: D102
        one = self.quantity.json_schema()
        several = [one, {"type": "array", "items": one, "minItems": 1}]
        if not isinstance(self.quantity, Quantity):
            return {"anyOf": several}
        ends = {"properties": {"from": one, "to": one}, "required": ["from", "to"], "additionalProperties": False}
        return {"anyOf": [*several, {"type": "object", **ends}]}


def _same(unit: SizeUnit, size: Size) -> bool:
    """Return True if bounds in a unit are those of a size; sizes over √n have the bounds of bdp."""
    return unit == ("bdp" if size.in_bdp else size.unit)


def _printable(text: str) -> str:
    short = text if len(text) <= EXCERPT else f"{text[: EXCERPT - 1]}…"
    return "".join(letter if letter.isprintable() else f"\\u{ord(letter):04x}" for letter in short)


def _without_misspelt(table: type[Table], details: list[ErrorDetails]) -> list[ErrorDetails]:
    """Leaves out keys that are missing only because they are misspelt."""
    unknown = [str(detail["loc"][-1]) for detail in details if detail["type"] == "extra_forbidden"]
    meant = {closest(key, table.keys()) for key in unknown}
    return [detail for detail in details if detail["type"] != "missing" or detail["loc"][-1] not in meant]


def _explained(table: type[Table], detail: ErrorDetails) -> InitErrorDetails:
    loc, value = detail["loc"], detail["input"]
    if detail["type"] == "fault":
        context = detail["ctx"]
        return fault_at(loc, value, context["expected"], context["found"])
    if detail["type"] == "extra_forbidden":
        return _unknown_key(table, loc, value)
    if detail["type"] == "missing":
        return fault_at(loc, value, _missing(table, str(loc[-1])), "nothing")
    if detail["type"] == "literal_error":
        return fault_at(loc, value, detail["ctx"]["expected"].replace("'", '"'))
    if detail["type"] == "list_type" and isinstance(value, dict):
        return fault_at(loc, value, f"a list of tables: write [[{loc[-1]}]]" if loc else "a list")
    template = EXPECTED.get(detail["type"])
    expected = template.format(**detail.get("ctx", {})) if template else detail["msg"].replace("Input should be ", "")
    return fault_at(loc, value, expected)


def _unknown_key(table: type[Table], loc: Loc, value: object) -> InitErrorDetails:
    key, known = str(loc[-1]), sorted(table.keys())
    if key in table.hints:
        return fault_at(loc, value, table.hints[key], "a key that does not belong here")
    of = f" of {table.algorithm}" if table.algorithm else ""
    return fault_at(loc, value, nearest(key, known), f"an unknown key{of}")


def _missing(table: type[Table], key: str) -> str:
    descriptions = (field.description for field in table.model_fields.values())
    return dict(zip(table.keys(), descriptions, strict=True)).get(key) or "a value"


#: Most characters of a name that a person gave, in a text of another language: a script, a diagram, a title.
LONGEST = 100


def one_line(text: str) -> str:
    """A text of the scenario's in a comment or a label: on one line, without what ends one."""
    return re.sub(r"[^\w .,:;()/+−–×%=-]", " ", " ".join(text.split()))[:LONGEST].strip() or "scenario"


def word(text: str) -> str:
    """A name as a word of any language: letters, digits and underscores."""
    return re.sub(r"\W", "_", text, flags=re.ASCII)[:LONGEST] or "_"
