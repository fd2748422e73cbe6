"""One table of two runs, beside what has to be: `python tests/bench/page.py .bench/compare.jsonl .bench/bench.json`."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from comparing.figures import TARGETS, reached
from comparing.table import thousands

LARGE = 1_000  # from here on without a fraction


def rows(compared: list[dict[str, Any]], bench: dict[str, Any]) -> Iterator[tuple[str, float, float, float, bool]]:
    """Words, value, must, aim, and whether more is better: first those beside other queues."""
    for target in TARGETS:
        value = reached(target, compared)
        if value is not None:
            yield target.words, value, target.must, target.aim, target.least
    for figure in bench["figures"]:
        if figure["must"] is not None:
            words = f"{figure['measure']}: {figure['name']}, {figure['unit']}"
            yield words, figure["value"], figure["must"], figure["aim"], figure["more_is_better"]


def main(compared: str, bench: str) -> None:
    lines = [json.loads(line) for line in Path(compared).read_text().splitlines()]
    print("| measure | measured | must | aim |\n|---|--:|--:|--:|")
    for words, value, must, aim, least in rows(lines, json.loads(Path(bench).read_text())):
        is_met = value >= must if least else value <= must
        shown = thousands(value) if value >= LARGE else f"{value:.3g}"
        print(f"| {words} | {shown}{'' if is_met else ' (missed)'} | {must:g} | {'' if aim is None else f'{aim:g}'} |")


if __name__ == "__main__":
    main(*sys.argv[1:])
