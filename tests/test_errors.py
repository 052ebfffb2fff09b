"""Messages of errors."""

from __future__ import annotations

import pytest

from ackclock.errors import Unsupported


@pytest.mark.parametrize(
    ("what", "said"),
    [
        ("a minimum timeout of 0 ms", "minimum timeout of 0 ms"),
        ("an initial timeout of 3000 ms", "initial timeout of 3000 ms"),
        ("jitter", "jitter"),
    ],
)
def test_an_unsupported_feature_is_named_without_an_article(what, said):
    words = f'Unsupported: engine "ns2" has no {said}; available in "packet"'
    assert str(Unsupported(what, "ns2", ("packet",))) == words
