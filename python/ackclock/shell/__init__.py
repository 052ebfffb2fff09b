"""`ackclock shell`: programs whose packets cross a scenario's network in real time.

    import ackclock as ac

    with ac.shell("scenarios/dumbbell.toml", peer="python3 -m http.server 80") as net:
        net.run(["curl", "-so", "page", "http://peer/"], check=True)
    data = net.dataset()

The network is that of the packet engine, run by the clock (`crates/ackclock-shell`), and the scenario's own flows and
traffic are simulated in it as ever. `plans` adds flows for the programs' connections to a scenario, `namespaces` makes
the ends of the network, `session` runs programs there; the command and the package are the same code. `pytest_plugin`
has the fixture `ackclock_shell`.
"""

from __future__ import annotations

from ackclock.system.callable_package import make_callable

make_callable(__name__, f"{__name__}.session", "shell")
