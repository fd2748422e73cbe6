from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

import pytest

ID = UUID("0b5a8d4e-52b5-4f43-9d2b-0a6a5e3c2f10")
NOON = datetime(2026, 3, 1, 12, 0, 0, 500_000, tzinfo=UTC)
DAY = timedelta(days=1)


class OtherUUID(UUID):
    """As the one of asyncpg."""


@pytest.mark.parametrize(
    ("annotation", "value", "sent"),
    [
        (Decimal, Decimal("1.10"), "1.10"),
        (Decimal, Decimal("-1E+30"), "-1E+30"),
        (UUID, ID, str(ID)),
        (UUID, OtherUUID(str(ID)), str(ID)),
        (date, date(1, 2, 3), "0001-02-03"),
        (datetime, NOON, "2026-03-01T12:00:00.500000+00:00"),
        (datetime, NOON.astimezone(ZoneInfo("Europe/Paris")), "2026-03-01T13:00:00.500000+01:00"),
        (datetime, NOON.replace(tzinfo=timezone(timedelta(seconds=561))), "2026-03-01T12:00:00.500000+00:09:21"),
        (timedelta, timedelta(hours=1), 3600),
        (timedelta, timedelta(milliseconds=-1), -0.001),
        (timedelta, timedelta(days=365, microseconds=1), 31536000.000001),
        (timedelta, timedelta.max.days * DAY, 86399999913600),
    ],
)
def test_a_value_of_the_standard_library_travels_as_text_or_number(
    trial: Any, annotation: Any, value: Any, sent: Any
) -> None:
    assert trial(annotation).send(value) == sent
    assert trial(annotation).round_trip(value) == value


@pytest.mark.parametrize(
    ("annotation", "value", "error"),
    [
        (Decimal, Decimal("NaN"), "args.x: NaN has no JSON form"),
        (Decimal, Decimal("-Infinity"), "args.x: -Infinity has no JSON form"),
        (Decimal, 1.5, "args.x: expected Decimal, got float 1.5"),
        (UUID, str(ID), f"args.x: expected UUID, got str '{ID}'"),
        (
            date,
            NOON,
            "args.x: expected date, got datetime datetime.datetime(2026, 3, 1...tzinfo=datetime.timezone.utc)",
        ),
        (datetime, date(2026, 3, 1), "args.x: expected datetime, got date datetime.date(2026, 3, 1)"),
        (datetime, datetime(2026, 3, 1), "args.x: naive datetime, give it a time zone"),
        (timedelta, 5, "args.x: expected timedelta, got int 5"),
    ],
)
def test_another_type_is_refused_at_enqueue(trial: Any, annotation: Any, value: Any, error: str) -> None:
    assert trial(annotation).send_error(value) == error


def test_a_timedelta_beyond_35_years_is_of_whole_seconds(trial: Any) -> None:
    century = 36_525 * DAY

    assert trial(timedelta).round_trip(century) == century
    assert "whole seconds" in trial(timedelta).send_error(century + timedelta(microseconds=1))


@pytest.mark.parametrize(
    ("annotation", "tree"),
    [
        (Decimal, 1.5),
        (Decimal, True),
        (Decimal, "NaN"),
        (Decimal, "Infinity"),
        (Decimal, " 1"),
        (Decimal, "1_0"),
        (Decimal, "1E+99999999999999999999"),
        (UUID, "{" + str(ID) + "}"),
        (UUID, ID.hex),
        (UUID, "no"),
        (UUID, 5),
        (date, "20260301"),
        (date, "2026-03-01T00:00:00+00:00"),
        (date, "2026-02-30"),
        (date, 5),
        (datetime, "2026-03-01T12:00:00"),
        (datetime, "infinity"),
        (datetime, 1_700_000_000),
        (timedelta, "1 day"),
        (timedelta, True),
        (timedelta, 10**30),
        (timedelta, 1e300),
    ],
)
def test_only_the_one_json_form_is_taken_at_claim(trial: Any, annotation: Any, tree: Any) -> None:
    assert trial(annotation).receive_error(tree).startswith("args.x: ")


@pytest.mark.parametrize(
    ("annotation", "tree", "value"),
    [
        (Decimal, 10**30, Decimal(10**30)),
        (Decimal, "0.10", Decimal("0.10")),
        (datetime, "2026-03-01T12:00:00.5Z", NOON),
        (datetime, "2026-03-01T13:00:00.5+01", NOON),
        (timedelta, 90.0, timedelta(seconds=90)),
        (timedelta, -0.000001, timedelta(microseconds=-1)),
    ],
)
def test_what_sql_makes_of_a_value_is_taken_at_claim(trial: Any, annotation: Any, tree: Any, value: Any) -> None:
    assert trial(annotation).receive(tree) == value
