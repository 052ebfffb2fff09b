"""The table `[linux]` of a scenario: what only the engine of the real Linux kernel has."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BeforeValidator, Field

from ackclock.input.fields import Quantity, fault, shown
from ackclock.input.units import bytes_of, time_s
from ackclock.scenario.options.options import Options

#: A kernel's version, or one of the words.
KERNEL = r"[A-Za-z0-9][A-Za-z0-9._+~-]*"

#: A sysctl of a network namespace, as sysctl(8) writes it.
SYSCTL = re.compile(r"net\.[a-z0-9_]+(\.[A-Za-z0-9_-]+)+")

Memory: TypeAlias = Annotated[float, Quantity(bytes_of, "96MiB", "64GiB")]
AppInterval: TypeAlias = Annotated[float, Quantity(time_s, "10us", "1s")]


def _sysctls(value: object) -> object:
    """Names of the network's sysctls, and what they are set to: a number, or words."""
    if not isinstance(value, dict):
        raise fault(shown(value), 'a table such as { "net.ipv4.tcp_limit_output_bytes" = 262144 }')
    for name, setting in value.items():
        if not SYSCTL.fullmatch(str(name)):
            raise fault(shown(name), 'the name of a sysctl of the network, such as "net.ipv4.tcp_recovery"')
        if isinstance(setting, bool) or not isinstance(setting, (int, str)) or "\n" in str(setting):
            raise fault(shown(setting), f"a whole number or a text for {name}")
        if isinstance(setting, str) and not re.fullmatch(r"[\w .,:/+-]+", setting):
            raise fault(shown(setting), f"a whole number, or words without quotes, for {name}")
    return value


def _kernel(value: object) -> object:
    """No file: a scenario comes by mail too, and would name a program to run."""
    expected = '"guest", "live", or the version of a guest kernel such as "6.1.192"'
    if not isinstance(value, str) or not value:
        raise fault(shown(value), expected)
    if not re.fullmatch(KERNEL, value):
        raise fault(shown(value), f"{expected}; a file is for --kernel alone")
    return value


class Linux(Options):
    """Options of the engine of the real Linux kernel."""

    kernel: Annotated[str, BeforeValidator(_kernel), Field(pattern=f"^{KERNEL}$")] = Field(
        "guest",
        description='which kernel: "guest", a User-Mode Linux in virtual time; its version, if there are '
        'several; "live", the one that this machine runs; "hosts", those of a testbed (absent there: "hosts")',
    )
    memory: Memory = Field(
        "512MiB",
        validate_default=True,
        description="what a guest may use; Linux sizes the memory of its sockets by it",
    )
    app_interval: AppInterval = Field(
        "5ms", validate_default=True, description="how often the applications read and write"
    )
    reader: Literal["immediate", "periodic"] = Field(
        "immediate",
        description='"immediate": the application reads at once, so ACKs are not delayed by it; "periodic": it reads '
        'every "app_interval"',
    )
    writer: Literal["immediate", "periodic"] = Field(
        "immediate",
        description='"immediate": the application writes whenever there is room; "periodic": every "app_interval", '
        "before it reads",
    )
    offloads: bool = Field(
        False, description="whether batches of segments stay together through the network, as one large packet"
    )
    sysctls: Annotated[dict[str, int | str], BeforeValidator(_sysctls)] = Field(
        {}, description='settings of all hosts, such as { "net.ipv4.tcp_limit_output_bytes" = 262144 }'
    )

    def planned(self) -> dict[str, Any]:
        """Complete JSON-ready values in SI units, for `Plan.options`."""
        values = self.model_dump(mode="json")
        values["memory_bytes"] = int(values.pop("memory"))
        values["app_interval_s"] = values.pop("app_interval")
        return values
