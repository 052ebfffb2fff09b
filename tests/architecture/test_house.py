"""The rules themselves: a small sound house, and one violation of each kind, which must be found."""

from __future__ import annotations

import pytest
from architecture import house

FLOORS = (("lab",), ("views", "engines"), ("tables",), ("errors",))

#: A package without faults.
SOUND = {
    "lab": '_PUBLIC = {"run": "lab.engines.one"}\n',
    "lab.errors": "class Wrong(Exception): ...\n",
    "lab.tables": "import json\n\nfrom lab.errors import Wrong\n",
    "lab.engines": 'ENGINES = {"one": "lab.engines.one"}\n',
    "lab.engines.engine": "from lab.tables import Rows\n",
    "lab.engines.one": "from lab.engines import engine\n",
    "lab.engines.two": "from lab.engines.engine import Engine\n",
    "lab.engines.two.network": "import lab.engines.engine\nfrom pathlib import engines\n",
    "lab.views": '"""Of lab.engines."""\n',
    "lab.views.curves": "from lab import tables\n",
    "lab.views.figures": "from lab.views import curves\n",
}

#: Every way to name `lab.engines.two.network`.
WAYS = (
    "import lab.engines.two.network",
    "import lab.engines.two.network as cables",
    "from lab.engines import two",
    "from lab.engines.two import network",
    "from lab.engines.two.network import Cables",
    "from lab.engines.two.network import (\n    Cables,\n    Ways,\n)",
    "from lab.engines.two.network import *",
    "def later():\n    from lab.engines.two.network import Cables",
    "if TYPE_CHECKING:\n    from lab.engines.two.network import Cables",
    "class Lazy:\n    def get(self):\n        import lab.engines.two.network",
    "try:\n    import lab.engines.two.network\nexcept ImportError:\n    pass",
    'import_module("lab.engines.two.network")',
    'ENGINES = {"two": ("lab.engines.two.network", "Engine")}',
)


def spoilt(**texts: str) -> house.Package:
    """The sound house with other texts; `engines__one` is `lab.engines.one`."""
    return {**SOUND, **{".".join(("lab", *name.split("__"))): f"{text}\n" for name, text in texts.items()}}


def test_the_sound_house_is_sound():
    assert not house.homeless(SOUND, FLOORS)
    assert not house.upward(SOUND, FLOORS)
    assert not house.circles(SOUND)
    assert not house.neighbours(SOUND, "lab.engines", ("engine",))
    assert not house.forbidden_imports(SOUND, "lab.engines", "lab.views")
    assert not house.relative(SOUND)
    assert house.loose(SOUND) == ["lab", "lab.errors", "lab.tables"]


@pytest.mark.parametrize("way", WAYS)
def test_an_upward_import_is_reported(way):
    (found,) = house.upward(spoilt(tables=way), FLOORS)
    assert found.startswith("lab.tables imports lab.engines.two")


@pytest.mark.parametrize("way", WAYS)
def test_packages_of_one_layer_do_not_import_each_other(way):
    (found,) = house.upward(spoilt(views__curves=way), FLOORS)
    assert found.startswith("lab.views.curves imports lab.engines.two")
    assert house.forbidden_imports(spoilt(views__curves=way), "lab.views", "lab.engines") == [found]


@pytest.mark.parametrize("way", [*WAYS, "from . import two", "from .two.network import Cables"])
def test_an_engine_that_imports_another_is_reported(way):
    (found,) = house.neighbours(spoilt(engines__one=way), "lab.engines", ("engine",))
    assert found.startswith("lab.engines.one imports lab.engines.two")


def test_a_submodule_importing_another_engine_is_reported():
    way = {"engines__two__network": "from lab.engines.one import Engine"}
    assert house.neighbours(spoilt(**way), "lab.engines", ("engine",)) == [
        "lab.engines.two.network imports lab.engines.one"
    ]


def test_the_package_itself_is_above_all():
    assert house.upward(spoilt(tables="import lab"), FLOORS) == ["lab.tables imports lab"]
    assert house.upward(spoilt(tables="from lab import run"), FLOORS) == ["lab.tables imports lab"]
    assert house.upward(spoilt(tables="from . import run"), FLOORS) == ["lab.tables imports lab"]


@pytest.mark.parametrize("way", WAYS)
def test_an_import_cycle_is_reported(way):
    package = spoilt(engines__engine=way, engines__two__network="import lab.engines.engine")
    (found,) = house.circles(package)
    assert set(found.split(" ← ")) == {"lab.engines.engine", "lab.engines.two"}


def test_cycles_between_and_inside_packages_and_with_a_packages_init_are_reported():
    (found,) = house.circles(spoilt(errors="from lab.tables import Rows"))
    assert set(found.split(" ← ")) == {"lab.errors", "lab.tables"}
    (found,) = house.circles(spoilt(views__curves="from lab.views.figures import draw"))
    assert set(found.split(" ← ")) == {"lab.views.curves", "lab.views.figures"}
    (found,) = house.circles(spoilt(engines__one="from lab.engines import ENGINES"))
    assert set(found.split(" ← ")) == {"lab.engines", "lab.engines.one"}
    assert len(house.circles(spoilt(engines__one="import lab.views", views="import lab.engines.two"))) == 1


def test_a_package_without_a_layer_and_a_layer_without_a_package_are_reported():
    assert house.homeless({**SOUND, "lab.cellar": ""}, FLOORS) == ["cellar"]
    assert house.homeless(SOUND, (*FLOORS, ("attic",))) == ["attic"]


def test_an_additional_loose_module_is_reported():
    assert house.loose({**SOUND, "lab.odds": ""})[-1] == "lab.odds"


@pytest.mark.parametrize("text", ["from . import curves", "from .curves import draw", "from .. import tables"])
def test_a_relative_import_is_reported(text):
    assert house.relative(spoilt(views__figures=text)) == ["lab.views.figures"]


def test_long_files_and_functions_are_reported():
    long = "def f():\n" + "    pass\n" * 61
    package = {"short": "def f():\n    pass\n", "long": long}
    assert house.long_functions(package, 60) == ["long.f: 61"]
    inside = "class A:\n" + "".join(f"    {line}\n" for line in ("async def g(self):", *["    pass"] * 61))
    assert house.long_functions({"a": inside}, 60) == ["a.g: 61"]
    described = 'def f(\n    x,\n):\n    """Text.\n\n    More.\n    """\n    pass\n'
    assert house.long_functions({"a": described}, 1) == []
    assert house.long_files({"a": "\n" * 500, "b": "\n" * 501}, 500) == ["b: 501"]
