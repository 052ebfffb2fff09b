"""A pytest fixture for tests of programs on a scenario's network (`ackclock.shell`); pytest finds it by itself.

def test_a_download_survives_a_slow_link(ackclock_shell):
    net = ackclock_shell("slow.toml", peer="python3 -m http.server 80")
    net.run(["curl", "-sfo", "/dev/null", "http://peer/"], check=True, timeout=60)
    assert net.dataset().flows["delivered_bytes"].sum() > 0
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from ackclock.shell.session import Network


@pytest.fixture
def ackclock_shell() -> Iterator[Callable[..., Network]]:
    """`ackclock.shell`, whose networks have begun and end with the test.

    Arguments and errors are those of `ackclock.shell`; without namespaces the test fails, with the reason.
    """
    from ackclock.shell.session import shell

    with ExitStack() as networks:
        yield lambda *given, **named: networks.enter_context(shell(*given, **named))
