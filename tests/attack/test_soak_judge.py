"""The judgement of a soak, by series that are known to grow or not."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest
from soak_judge import MIB, Sample, growing

RANDOM = Random(7)
FLAT: dict[str, tuple[str, Callable[[int], float]]] = {
    "constant": ("memory", lambda n: 90 * MIB),
    "noise": ("memory", lambda n: 90 * MIB + RANDOM.randint(-5, 5) * MIB),
    "grows while it warms up": ("memory", lambda n: 90 * MIB + min(n, 30) * MIB),
    "one outlier": ("memory", lambda n: 90 * MIB + (400 * MIB if n == 45 else 0)),
    "shrinks": ("memory", lambda n: (200 - n) * MIB),
    "a little": ("memory", lambda n: 90 * MIB + n * MIB / 20),
    "teeth": ("size", lambda n: (n % 10) * MIB),
    "half as much again": ("size", lambda n: 40 * MIB + n * MIB / 6),
    "a connection more": ("connections", lambda n: 5 + (n > 45)),
    "threads come and go": ("threads", lambda n: 4 + n % 3),
}
GROWING: dict[str, tuple[str, Callable[[int], float]]] = {
    "a MiB each second": ("memory", lambda n: 90 * MIB + n * MIB),
    "with noise": ("memory", lambda n: 90 * MIB + n * MIB + RANDOM.randint(-3, 3) * MIB),
    "in steps": ("memory", lambda n: 90 * MIB + n // 10 * 10 * MIB),
    "a table": ("size", lambda n: n * MIB / 5),
    "a large table": ("size", lambda n: 40 * MIB + n * 2 * MIB),
    "a connection each five seconds": ("connections", lambda n: 5 + n // 5),
    "descriptors": ("descriptors", lambda n: 20 + n // 5),
    "threads": ("threads", lambda n: 4 + n // 10),
}


def series(what: str, of: Callable[[int], float], seconds: int = 60) -> list[Sample]:
    return [Sample(float(n), {f"it: {what}": of(n), "other: size": 5.0 * MIB}) for n in range(seconds)]


@pytest.mark.parametrize(("what", "of"), FLAT.values(), ids=FLAT)
def test_what_is_flat_is_let_pass(what: str, of: Callable[[int], float]) -> None:
    assert growing(series(what, of), warm_up=30) == {}


@pytest.mark.parametrize(("what", "of"), GROWING.values(), ids=GROWING)
def test_what_grows_is_named_with_how_much(what: str, of: Callable[[int], float]) -> None:
    found = growing(series(what, of), warm_up=30)

    assert list(found) == [f"it: {what}"]
    assert found[f"it: {what}"] == pytest.approx(of(59) - of(30), rel=0.5)


def test_too_few_samples_are_no_verdict() -> None:
    with pytest.raises(ValueError, match="8 samples after 52 s"):
        growing(series("memory", lambda n: 1.0), warm_up=52)
