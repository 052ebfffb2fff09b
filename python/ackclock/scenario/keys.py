"""The types of the keys that several tables of a scenario share: quantities with their bounds, algorithms, choices."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pkgutil import resolve_name
from typing import Annotated, Any, TypeAlias

from pydantic import AfterValidator, Field, PlainValidator, WithJsonSchema
from typing_extensions import TypeAliasType

from ackclock.algorithms.selection import FromSpec, Given
from ackclock.input import units
from ackclock.input.fields import Quantity, SizeQuantity, Table, fault, fault_at, faults, nearest, shown
from ackclock.plan import AT_LINK, RECEIVERS, SENDERS
from ackclock.scenario.traces import Traceable

DEFAULT_STACK = "linux"

RATE_BOUNDS = units.rate_bps, "1kbit", "10Tbit"
DELAY_BOUNDS = units.time_s, "0s", "1h"

MOMENT = Quantity(units.time_s, "0s", "720h")
RATE = Quantity(*RATE_BOUNDS)
RTT = Quantity(units.time_s, "0.1us", "1h")
TRANSFER = SizeQuantity(units.size, (("B", 1, 1e15), ("p", 1, 1e12)))


#: Codepoints of the DS field by their names (RFC 2474, RFC 2597, RFC 3246, RFC 5865, RFC 8622).
CODEPOINTS: Mapping[str, int] = {
    **{f"cs{number}": 8 * number for number in range(8)},
    **{f"af{row}{column}": 8 * row + 2 * column for row in range(1, 5) for column in range(1, 4)},
    "ef": 46, "va": 44, "le": 1,
}  # fmt: skip


def codepoint_reader() -> PlainValidator:
    """An annotation: the name of a codepoint of the DS field."""

    def read(value: object) -> int:
        if isinstance(value, str) and value.lower() in CODEPOINTS:  # RFC 4594 writes EF, tc ef
            return CODEPOINTS[value.lower()]
        raise fault(shown(value), nearest(value, tuple(CODEPOINTS)))

    return PlainValidator(read, json_schema_input_type=Annotated[Any, WithJsonSchema({"enum": list(CODEPOINTS)})])


def _one_line(text: str) -> str:
    """A name goes into tables, figures and terminals."""
    if not text.isprintable():
        raise fault(shown(text), "one line without control characters")
    return text


def _vantages(value: object) -> bool | tuple[str, ...]:
    """True, false, or points from which packets are captured; an empty list is false."""
    one = f'"{SENDERS}", "{RECEIVERS}" or "{AT_LINK}NAME"'
    if isinstance(value, bool):
        return value
    if not isinstance(value, list):
        raise fault(shown(value), f'true, false, or a list of "{SENDERS}", "{RECEIVERS}" and "{AT_LINK}NAME"')
    if mistakes := [fault_at((n,), item, one) for n, item in enumerate(value) if not _is_vantage(item)]:
        raise faults(mistakes)
    return tuple(value) or False


def _is_vantage(item: object) -> bool:
    return isinstance(item, str) and (item in (SENDERS, RECEIVERS) or item.removeprefix(AT_LINK) not in ("", item))


Duration: TypeAlias = Annotated[float, Quantity(units.time_s, "1ms", "720h")]
Moment: TypeAlias = Annotated[float, MOMENT]
Interval: TypeAlias = Annotated[float, Quantity(units.time_s, "1us", "1h")]
Delay: TypeAlias = Annotated[float, Quantity(*DELAY_BOUNDS)]
Rate: TypeAlias = Annotated[float, RATE]
LinkRate: TypeAlias = Annotated[float, Traceable(RATE)]
EventRate: TypeAlias = Annotated[float, Quantity(units.count_rate_hz, "0.000001/s", "10000000/s")]
Burst: TypeAlias = Annotated[int, Quantity(units.bytes_of, "0B", "1GB"), AfterValidator(int)]
Overhead: TypeAlias = Annotated[int, Quantity(units.bytes_of, "0B", "1000B"), AfterValidator(int)]
Payload: TypeAlias = Annotated[float, Quantity(units.bytes_of, "1B", "65507B")]
Transfer: TypeAlias = Annotated[Any, TRANSFER]
Request: TypeAlias = Annotated[float, Quantity(units.bytes_of, "1B", "1GB")]
Seed: TypeAlias = Annotated[int, Field(ge=0, lt=2**63)]
Name: TypeAlias = Annotated[str, Field(min_length=1, max_length=200), AfterValidator(_one_line)]
Pcap: TypeAlias = Annotated[
    bool | tuple[str, ...],
    PlainValidator(_vantages),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "boolean"},
                {"type": "array", "items": {"type": "string", "pattern": f"^({SENDERS}|{RECEIVERS}|{AT_LINK}.+)$"}},
            ]
        }
    ),
]
# Types with names: the JSON Schema says their specs once, whatever the number of keys that have them.
Congestion = TypeAliasType("Congestion", Annotated[Given, FromSpec("congestion", short=True)])
RealtimeCongestion = TypeAliasType(
    "RealtimeCongestion", Annotated[Given, FromSpec("realtime", short=True, names_only=True)]
)
Dscp = TypeAliasType("Dscp", Annotated[int, codepoint_reader()])
Queue = TypeAliasType("Queue", Annotated[Given, FromSpec("queue", short=True)])
Tcp = TypeAliasType("Tcp", Annotated[Given, FromSpec("stack", default=DEFAULT_STACK)])


class Tables(Mapping[str, type[Table]]):
    """Tables of a package by the word for each; the module of one is imported when it is asked for."""

    def __init__(self, package: str, places: Mapping[str, str]) -> None:
        """`places`: word → `module:class` in the package."""
        self._package, self._places = package, places

    def __getitem__(self, word: str) -> type[Table]:
        table: type[Table] = resolve_name(f"{self._package}.{self._places[word]}")
        return table

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)
