"""Which of what was found is a fault."""

from __future__ import annotations

import sys
from datetime import UTC, datetime, timedelta
from textwrap import dedent
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

import jobq
from jobq.checking import Report, find_calls, judge, named
from jobq.checking.live import scheduled_faults

app = jobq.App()
AWARE = datetime(2026, 1, 2, tzinfo=UTC)


@app.handler("email.send")
async def send(to: str, subject: str = "Hello") -> None: ...


@app.handler("at")
def at(when: datetime, n: int = 0) -> None: ...


@app.handler("nothing")
def nothing() -> None: ...


REMIND = jobq.kind("at", queue="q")


class Jobs:
    send = send


HEAD = f"import jobq\nfrom {__name__} import send, at, nothing, REMIND, Jobs\n"


def judged(*sources: str) -> Report:
    """What is said of these modules: shop/a.py, shop/b.py ..."""
    found = [each for n, source in enumerate(sources) for each in find_calls(dedent(source), f"shop/{'abc'[n]}.py")]
    return judge(found, app.handlers, named({__name__: sys.modules[__name__]}, app.handlers.values()))


def problems(*sources: str) -> list[str]:
    return [fault.problem for fault in judged(*sources).faults]


@pytest.mark.parametrize(
    "call",
    [
        "jobq.enqueue(s, send, 'a')",
        "jobq.enqueue(s, send, x, subject=y)",
        "jobq.enqueue(s, send, **rest)",
        "jobq.enqueue(s, send, *rest, subject='a')",
        "jobq.enqueue(s, at, now(), n=3)",
        "jobq.enqueue(s, REMIND, when='2026-01-02T00:00:00+00:00')",
        "jobq.enqueue(s, jobq.kind('email.send', queue='q'), to='a')",
        "jobq.enqueue(s, Jobs.send, to='a')",
        "jobq.enqueue(s, nothing)",
        "jobq.enqueue_many(s, send, rows)",
        "jobq.enqueue_many(s, send, [{'to': 'a'}, send.args('b')])",
        "jobq.enqueue(s, handlers[0], 1, 2, 3)",
        "parser.args(1, 2, 3)",
    ],
)
def test_right_calls_are_no_faults(call: str) -> None:
    assert problems(HEAD + call) == []


@pytest.mark.parametrize(
    ("call", "problem"),
    [
        ("jobq.enqueue(s, send)", "email.send: args.to: missing"),
        ("jobq.enqueue(s, send, 'a', sbject='b')", "email.send: args.sbject: unknown argument (known: to, subject)"),
        ("jobq.enqueue(s, send, 'a', 'b', 'c')", "email.send: args: takes 2 positional arguments, got 3"),
        ("jobq.enqueue(s, send, 'a', to='b')", "email.send: args.to: given twice, by position and by name"),
        ("jobq.enqueue(s, send, 5)", "email.send: args.to: expected str, got int 5"),
        ("jobq.enqueue(s, nothing, 1)", "nothing: args: takes 0 positional arguments, got 1"),
        ("jobq.enqueue(s, send, no=1, **rest)", "email.send: args.no: unknown argument (known: to, subject)"),
        ("jobq.enqueue(s, at, when=x, n=True)", "at: args.n: expected int, got bool True"),
        ("jobq.enqueue(s, REMIND, when='tomorrow')", None),
        ("jobq.enqueue(s, REMIND, '2026-01-02')", "at: args: jobq.kind() takes arguments by name only"),
        ("jobq.enqueue(s, jobq.kind('att', queue='q'))", "no handler for kind 'att': is it 'at'?"),
        ("x = jobq.kind('zzz', queue='q')", "no handler for kind 'zzz'"),
        ("jobq.enqueue_many(s, send, [{'too': 'a', 'to': 'b'}])", None),
        ("x = send.args()", "email.send: args.to: missing"),
        ("s.execute(\"SELECT jobq.enqueue('gone')\")", "no handler for kind 'gone'"),
        ("s.execute(\"SELECT jobq.enqueue('email.send', '{}')\")", "email.send: args.to: missing"),
    ],
)  # fmt: skip
def test_wrong_calls_are_faults_in_the_words_of_the_call_itself(call: str, problem: str | None) -> None:
    said = problems(HEAD + call)

    assert len(said) == 1
    assert problem is None or said == [problem]


@pytest.mark.parametrize(
    ("args", "kwargs"),
    [((), {}), ((5,), {}), (("a", "b", "c"), {}), (("a",), {"to": "b"}), ((), {"to": "a", "x": 1}), (("a",), {})],
)
def test_what_the_check_says_is_what_the_call_would_have_said(args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    written = ", ".join([*map(repr, args), *[f"{name}={value!r}" for name, value in kwargs.items()]])
    said = problems(f"{HEAD}jobq.enqueue(s, send, {written})")

    if said:
        with pytest.raises(jobq.ArgsError) as refused:
            send.args(*args, **kwargs)
        assert said[0] == f"email.send: {refused.value}"
    else:
        send.args(*args, **kwargs)


@app.handler("many")
def many(a: int, b: str | None = None, c: Literal["x", 1] = 1, d: list[float] | None = None) -> None: ...


values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from("xyz"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("ab"), inner, max_size=2),
    max_leaves=5,
)


@given(st.lists(values, max_size=5), st.dictionaries(st.sampled_from("abcde"), values, max_size=5))
def test_a_call_is_a_fault_if_and_only_if_it_would_be_refused(args: list[Any], kwargs: dict[str, Any]) -> None:
    written = ", ".join([*map(repr, args), *[f"{name}={value!r}" for name, value in kwargs.items()]])

    said = problems(f"import jobq\nfrom {__name__} import many\njobq.enqueue(s, many, {written})")

    try:
        many.args(*args, **kwargs)
        refused = False
    except jobq.ArgsError:
        refused = True
    assert bool(said) == refused


def test_a_handler_of_a_module_that_the_app_does_not_import_is_named_with_its_place() -> None:
    said = problems(
        "import jobq\nfrom .b import resize\njobq.enqueue(s, resize, 1)",
        "import jobq\nregistry = jobq.Registry()\n@registry.handler('resize')\ndef resize(n): ...",
    )

    assert said == ["no handler for kind 'resize': shop/b.py:4 registers one, which the app does not import or include"]


def test_names_are_followed_through_modules() -> None:
    source = "import jobq\nfrom .b import post\njobq.enqueue(s, post)"
    between = f"from {__name__} import send\npost = send.options(priority=0)"

    assert problems(source, between) == ["email.send: args.to: missing"]


def test_an_enqueue_that_a_module_hands_on_is_one_and_any_other_is_none() -> None:
    call = f"from {__name__} import send\nfrom .b import enqueue\nenqueue(s, send, 5)"

    assert problems(call, "from jobq import enqueue") == ["email.send: args.to: expected str, got int 5"]
    assert judged(call, "from celery import enqueue").enqueues == 0
    assert judged(call, "from .a import enqueue").enqueues == 0


def test_names_that_lead_in_a_circle_are_not_checked() -> None:
    report = judged("import jobq\nfrom .b import x\njobq.enqueue(s, x)", "from .a import x")

    assert report.faults == []
    assert len(report.unchecked) == 1


def test_it_counts_what_it_has_seen_and_what_is_used() -> None:
    report = judged(
        HEAD + "jobq.enqueue(s, send, 'a')\njobq.enqueue(s, handler)\nx.schedule(jobq.every(d), at, when=y)",
        "s.execute(\"SELECT jobq.enqueue('nothing')\")",
    )

    assert (report.enqueues, report.schedules) == (3, 1)
    assert report.used == {"email.send", "at", "nothing"}
    assert [(each.path, each.line) for each in report.unchecked] == [("shop/a.py", 4)]


def test_the_schedules_of_the_app_are_judged_as_they_were_registered() -> None:
    other = jobq.App()
    other.include(registry := jobq.Registry())
    registry.handler("known")(lambda n: None)
    for name in ("gone", "known"):
        other.schedule(jobq.every(timedelta(days=1)), jobq.kind(name, queue="q"))

    faults = list(scheduled_faults(other.schedules, other.handlers))

    assert [fault.problem for fault in faults] == [
        "schedule 'gone': no handler for kind 'gone'",
        "schedule 'known': known: args.n: missing",
    ]
    assert all(fault.path == __file__ and fault.line for fault in faults)
