"""Differences between committed and fresh results are seen."""

import pytest
from committed import differences


@pytest.mark.parametrize(
    ("one", "other", "gaps"),
    [
        ({"a": [1.0, 2.0]}, {"a": [1.0, 2.0 + 1e-11]}, []),
        ({"a": [1.0, 2.0]}, {"a": [1.0, 2.0 + 1e-7]}, ["/a/1"]),
        ({"a": 1.0}, {"b": 1.0}, [""]),
        ([1.0], [1.0, 2.0], [""]),
        ({"a": [0.0, "x"]}, {"a": [1e-9, "y"]}, ["/a/0", "/a/1"]),
        (1, 1.0, []),
        (None, 0.0, [""]),
    ],
)
def test_differences_are_seen(one, other, gaps):
    assert differences(one, other, 1e-9, 1e-10) == gaps
