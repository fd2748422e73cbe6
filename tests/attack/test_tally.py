"""How attacks write down what they did, and what is made of it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from lengths import length
from table import table
from tally import tally


def test_a_tally_is_a_line_of_json_in_the_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    report = tmp_path / "report"
    monkeypatch.setenv("JOBQ_CHAOS_REPORT", str(report))

    tally("A2 freezes", frozen=3)
    tally("A2 against: no fence", guarantees="G4", caught=1)

    lines = [json.loads(line) for line in report.read_text().splitlines()]
    assert [line["guarantees"] for line in lines] == [["G3", "G4", "G5", "G11", "G13"], ["G4"]]
    assert [(line["counts"], line["violations"], line["caught"]) for line in lines] == [
        ({"frozen": 3}, 0, 0),
        ({}, 0, 1),
    ]


def test_without_a_report_a_tally_is_only_printed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("JOBQ_CHAOS_REPORT", raising=False)

    tally("A1 kills", kills=3, violations=1)
    tally("A1 twin", caught=1)

    assert capsys.readouterr().out == "A1 kills: 3 kills, 1 violations\nA1 twin: 1 planted faults seen\n"


@pytest.mark.parametrize(("asked", "expected"), [(None, 1), ("ci", 1), ("chaos", 2), ("long", 3)])
def test_the_length_is_the_one_that_is_asked_for(
    monkeypatch: pytest.MonkeyPatch, asked: str | None, expected: int
) -> None:
    monkeypatch.delenv("JOBQ_CHAOS", raising=False)
    if asked is not None:
        monkeypatch.setenv("JOBQ_CHAOS", asked)

    assert length(ci=1, chaos=2, long=3) == expected


def line(attacker: str, guarantees: str, *, caught: int = 0, violations: int = 0, **counts: int) -> dict[str, object]:
    names = guarantees.split()
    return {"attacker": attacker, "guarantees": names, "counts": counts, "caught": caught, "violations": violations}


def test_the_table_sums_by_guarantee_and_by_attack() -> None:
    made = table(
        [
            line("A10 payloads", "G1", values=10_000),
            line("A1 kills", "G1 G10", kills=30, jobs=1_000),
            line("A1 kills", "G1 G10", kills=1, violations=2),
            line("A2 against: no fence", "G4", caught=1),
        ]
    )

    assert made.splitlines() == [
        "| guarantee | attackers | what they did | planted faults seen | violations |",
        "| --- | --- | --- | --- | --- |",
        "| G1 | A1 A10 | 10 000 values, 31 kills, 1 000 jobs | 0 | 2 |",
        "| G4 | A2 |  | 1 | 0 |",
        "| G10 | A1 | 31 kills, 1 000 jobs | 0 | 2 |",
        "",
        "| attack | guarantees | what they did | planted faults seen | violations |",
        "| --- | --- | --- | --- | --- |",
        "| A1 kills | G1 G10 | 31 kills, 1 000 jobs | 0 | 2 |",
        "| A2 against: no fence | G4 |  | 1 | 0 |",
        "| A10 payloads | G1 | 10 000 values | 0 | 0 |",
    ]


def test_the_table_is_printed_by_its_command(tmp_path: Path) -> None:
    report = tmp_path / "report"
    report.write_text(json.dumps(line("A1 kills", "G1", kills=30)) + "\n")

    done = subprocess.run(
        [sys.executable, Path(__file__).with_name("table.py"), report], capture_output=True, text=True, check=True
    )

    assert "| G1 | A1 | 30 kills | 0 | 0 |" in done.stdout
