"""The table of DESIGN.md, from what the attackers wrote down: `python tests/attack/table.py REPORT`."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

Line = Mapping[str, Any]  # as tally.py writes it
HEADS = ("attackers", "what they did", "planted faults seen", "violations")


def table(lines: Sequence[Line]) -> str:
    """By guarantee, then by attack; ready for DESIGN.md."""
    guarantees = sorted({name for line in lines for name in line["guarantees"]}, key=_number)
    by_guarantee = [_row(name, [line for line in lines if name in line["guarantees"]]) for name in guarantees]
    names = sorted({line["attacker"] for line in lines}, key=lambda name: (_number(name.split()[0]), name))
    attacks = [_attack(name, [line for line in lines if line["attacker"] == name]) for name in names]
    first = _markdown(("guarantee", *HEADS), by_guarantee)
    return f"{first}\n\n{_markdown(('attack', 'guarantees', *HEADS[1:]), attacks)}\n"


def _row(name: str, lines: Sequence[Line]) -> tuple[str, ...]:
    attackers = sorted({line["attacker"].split()[0] for line in lines}, key=_number)
    return (name, " ".join(attackers), *_sums(lines))


def _attack(name: str, lines: Sequence[Line]) -> tuple[str, ...]:
    guarantees = sorted({each for line in lines for each in line["guarantees"]}, key=_number)
    return (name, " ".join(guarantees), *_sums(lines))


def _sums(lines: Iterable[Line]) -> tuple[str, str, str]:
    counts: Counter[str] = Counter()
    caught = violations = 0
    for line in lines:
        counts.update(line["counts"])
        caught += line["caught"]
        violations += line["violations"]
    return (
        ", ".join(f"{number:_} {name}".replace("_", " ") for name, number in counts.items()),
        str(caught),
        str(violations),
    )


def _markdown(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _number(name: str) -> int:
    """G10 comes after G9."""
    return int("".join(filter(str.isdigit, name)) or 0)


def main(report: str) -> None:
    """Print the table of a report."""
    print(table([json.loads(line) for line in Path(report).read_text().splitlines()]), end="")


if __name__ == "__main__":
    main(sys.argv[1])
