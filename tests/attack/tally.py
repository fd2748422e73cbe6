"""What the attackers did: a line of JSON each in the file JOBQ_CHAOS_REPORT, of which `nox -s chaos` makes a table."""

from __future__ import annotations

import json
import os

REPORT = "JOBQ_CHAOS_REPORT"
GUARANTEES = {  # what an attacker checks, where a call does not say it; A12 is about locks, and checks none of them
    "A1": "G1 G3 G5 G7 G11",
    "A2": "G3 G4 G5 G11 G13",
    "A3": "G1 G5 G11 G13",
    "A4": "G1 G5 G11 G13",
    "A5": "G1 G5 G11 G13",
    "A6": "G5 G6 G11",
    "A7": "G1 G3 G4 G5 G6 G7 G11",
    "A8": "G1 G3 G4 G7 G11",
    "A9": "G1 G2 G3 G6 G7 G8 G9 G12",
    "A10": "G1",
    "A11": "G1 G10",
}


def tally(attacker: str, *, guarantees: str | None = None, violations: int = 0, caught: int = 0, **counts: int) -> None:
    """Write down what one attack did: `tally("A1 kills", kills=100, violations=0)`.

    `guarantees` are those that it checked ("G1 G3", "": none), by default what the attacker of this number checks;
    `caught` says of how many seeded faults it has reported a violation. What it did is printed, too.
    """
    of_number = GUARANTEES.get(attacker.split()[0], "")
    checked = (of_number if guarantees is None else guarantees).split()
    line = {"attacker": attacker, "guarantees": checked, "counts": counts, "violations": violations, "caught": caught}
    more = {"planted faults seen": caught} if caught else {"violations": violations}
    print(f"{attacker}: {', '.join(f'{value} {name}' for name, value in {**counts, **more}.items())}")
    if path := os.environ.get(REPORT):
        with open(path, "a") as report:  # one short write: several processes append to it
            report.write(json.dumps(line) + "\n")
