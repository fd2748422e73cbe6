from __future__ import annotations

from datetime import timedelta

import pytest
import typer

from jobq_cli.durations import parse_duration


@pytest.mark.parametrize(
    ("text", "span"),
    [
        ("90s", timedelta(seconds=90)),
        ("0.5s", timedelta(seconds=0.5)),
        ("5m", timedelta(minutes=5)),
        ("1h", timedelta(hours=1)),
        ("2d", timedelta(days=2)),
        ("1h30m", timedelta(minutes=90)),
        (" 1D2H3M4S ", timedelta(days=1, hours=2, minutes=3, seconds=4)),
    ],
)
def test_a_span_is_read_as_it_is_written(text: str, span: timedelta) -> None:
    assert parse_duration(text) == span


@pytest.mark.parametrize("text", ["", "5", "m", "-5m", "5 m", "30m1h", "1h1h", "1.5h", "٥m", "0s", "9999999d", "nan"])
def test_what_is_no_span_is_refused_in_one_line(text: str) -> None:
    with pytest.raises(typer.BadParameter) as refused:
        parse_duration(text)

    assert "\n" not in refused.value.message
