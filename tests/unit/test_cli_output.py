from __future__ import annotations

import io
import re
from collections.abc import Iterator

import pytest

from jobq_cli import output

COLUMNS: list[output.Column[tuple[str, int]]] = [
    output.Column("name", lambda record: record[0], shrinks=True),
    output.Column("n", lambda record: str(record[1]), right=True),
]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def open_terminal(monkeypatch: pytest.MonkeyPatch, kind: str) -> Terminal:
    """Called in the test's own body: pytest sets sys.stdout anew after its fixtures."""
    screen = Terminal()
    monkeypatch.setattr("sys.stdout", screen)
    monkeypatch.setenv("COLUMNS", "30")
    monkeypatch.setenv("TERM", kind)
    return screen


def test_in_a_pipe_a_table_is_aligned_text(capsys: pytest.CaptureFixture[str]) -> None:
    output.print_table([("email", 7), ("a", 12_345)], COLUMNS, title="Queues")

    assert capsys.readouterr().out.splitlines() == ["Queues", "name       n", "email      7", "a      12345"]


def test_a_long_listing_is_printed_while_it_is_read(capsys: pytest.CaptureFixture[str]) -> None:
    printed: list[int] = []

    def records() -> Iterator[tuple[str, int]]:
        for n in range(output.SAMPLE * 3):
            printed.append(len(capsys.readouterr().out))
            yield "x", n

    output.print_table(records(), COLUMNS)

    assert sum(printed[: output.SAMPLE - 1]) == 0
    assert all(printed[output.SAMPLE + 1 :])


def test_no_records_are_no_table(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    output.print_table([], COLUMNS, title="Queues")
    terminal = open_terminal(monkeypatch, "dumb")
    output.print_table([], COLUMNS, title="Queues")

    assert capsys.readouterr().out == terminal.getvalue() == ""


def test_on_a_terminal_what_may_shrink_is_cut_to_its_width(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    terminal = open_terminal(monkeypatch, "xterm")

    output.print_table([("a-very-long-name-of-a-queue-indeed", 7)], COLUMNS)

    lines = re.sub(r"\x1b\[[0-9;]*m", "", terminal.getvalue()).splitlines()
    assert max(map(len, lines)) <= 30
    assert lines[-1].startswith("a-very-long-name")
    assert lines[-1].rstrip().endswith("…  7")


def test_on_a_terminal_what_wraps_is_continued_and_not_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    terminal = open_terminal(monkeypatch, "xterm")
    words = "one two three four five six seven eight"
    name: output.Column[str] = output.Column("name", str, shrinks=True, wraps=True)
    number: output.Column[str] = output.Column("n", lambda _: "12345678")

    output.print_table([words], [name, number])

    lines = re.sub(r"\x1b\[[0-9;]*m", "", terminal.getvalue()).splitlines()
    assert max(map(len, lines)) <= 30
    assert " ".join(" ".join(lines[2:]).replace("12345678", "").split()) == words


def test_a_terminal_obeys_neither_control_characters_nor_markup(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = open_terminal(monkeypatch, "dumb")

    output.print_table([("[bold]\x1b[31m:smile:", 1)], COLUMNS)
    output.print_lines([("[red]x[/red]\x1b", "")])

    assert "[bold]\\x1b[31m:smile:" in terminal.getvalue()
    assert "[red]x[/red]\\x1b" in terminal.getvalue()
    assert "\x1b" not in terminal.getvalue()


@pytest.mark.parametrize(
    ("natural", "shrinks", "space", "widths"),
    [
        pytest.param([5, 5], [True, True], 10, [5, 5], id="fits"),
        pytest.param([20, 10, 5], [True, True, False], 25, [10, 10, 5], id="the widest gives way"),
        pytest.param([20, 20], [True, False], 20, [8, 20], id="never below eight"),
        pytest.param([20, 20], [False, False], 20, [20, 20], id="nothing shrinks"),
    ],
)
def test_columns_are_fitted(natural: list[int], shrinks: list[bool], space: int, widths: list[int]) -> None:
    assert output.fitted(natural, shrinks, space) == widths
