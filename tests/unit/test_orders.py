"""An order, performed where it was sent: what any executor can use whose functions run elsewhere."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable
from typing import Any

import pytest
from worker_values import claimed

import jobq
from jobq.executors import Ended, Place, end_of, order_of, perform
from jobq.executors.elsewhere import kinds_at
from jobq.executors.process.place import place_of

app = jobq.App()


class Sent:
    """An attempt, as far as an order is about it."""

    def __init__(self, **values: Any) -> None:
        self.job = claimed(**values)


def performed(kind: str, args: str = "{}", **options: Any) -> Ended:
    order = order_of(Sent(kind=kind, args=args), Place(__name__, "app"))  # type: ignore[arg-type]
    return end_of(perform(order, **options))


@app.handler("adds")
def adds(a: int, b: int) -> str:
    return str(a + b)


@app.handler("waits_async")
async def waits_async() -> None:
    import anyio

    await anyio.sleep_forever()


@app.handler("looks")
def looks() -> str:
    return f"{jobq.current().cancelled} {threading.current_thread() is threading.main_thread()}"


@app.handler("reports")
def reports() -> None:
    jobq.current().progress(0.5)


def test_a_plain_function_runs_in_the_thread_that_performs() -> None:
    assert performed("adds", '{"a": 1, "b": 2}') == Ended("3")
    assert performed("looks") == Ended("False True")


def test_args_that_do_not_fit_and_kinds_that_are_not_there_are_ends() -> None:
    assert isinstance(performed("adds", '{"a": "one"}').error, jobq.ArgsError)
    assert isinstance(performed("unknown").error, jobq.UnknownKindError)


def test_an_application_that_cannot_be_imported_is_an_end_with_the_reason() -> None:
    order = order_of(Sent(kind="adds"), Place("nowhere", "app"))  # type: ignore[arg-type]

    error = end_of(perform(order)).error

    assert isinstance(error, jobq.WorkerError)
    assert "nowhere:app cannot be imported" in str(error)
    with pytest.raises(jobq.WorkerError, match="nowhere:app"):
        kinds_at(Place("nowhere", "app"))


def test_an_async_function_is_cancelled_from_any_thread() -> None:
    def cancel_soon(cancel: Callable[[], None]) -> None:
        threading.Timer(0.01, cancel).start()

    assert performed("waits_async", on_begin=cancel_soon).error is not None


def test_a_function_is_told_to_stop_by_what_on_begin_is_given() -> None:
    assert performed("looks", on_begin=lambda cancel: cancel()) == Ended("True True")


def test_nothing_runs_when_on_begin_raises() -> None:
    def refuse(_: object) -> None:
        raise OSError("nobody hears of it")

    with pytest.raises(OSError, match="nobody hears"):
        performed("adds", '{"a": 1, "b": 2}', on_begin=refuse)


def test_reports_are_handed_on_with_their_names() -> None:
    said: list[tuple[str, str]] = []

    performed("reports", on_report=lambda name, text: said.append((name, text)))

    assert [(name, json.loads(text)["fraction"]) for name, text in said] == [("progress", 0.5)]


def test_what_crosses_is_json() -> None:
    order = json.loads(order_of(Sent(kind="adds", args='{"a": 1}'), Place("shop.jobs", "app", ("shop.more",))))  # type: ignore[arg-type]

    assert order["place"] == {"module": "shop.jobs", "attribute": "app", "others": ["shop.more"]}
    assert (order["job"]["kind"], order["job"]["args"]) == ("adds", '{"a": 1}')


@pytest.mark.parametrize("name", ["__main__", "__mp_main__"])  # multiprocessing gives the script the second one
def test_an_app_of_the_script_itself_is_refused(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    app = jobq.App()
    monkeypatch.setitem(sys.modules, name, sys.modules["__main__"])
    monkeypatch.setattr(sys.modules["__main__"], "app", app, raising=False)

    with pytest.raises(jobq.WorkerError, match="not in __main__"):
        place_of(app, None)
