"""What is found in Python sources: calls, however the functions and the handlers were imported."""

from __future__ import annotations

import ast
from textwrap import dedent

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobq.checking import UNKNOWN, Arguments, Found, find_calls
from jobq.checking.found import What

SHOP = "shop.jobs.send"
HEAD = "import jobq\nfrom .jobs import send\n"


def found(source: str, *whats: What, path: str = "shop/orders.py") -> list[Found]:
    """What is found of these, aliases and definitions aside."""
    wanted = whats or (What.ENQUEUE, What.ARGS, What.KIND, What.SCHEDULE, What.SQL)
    return [each for each in find_calls(dedent(source), path) if each.what in wanted]


def only(source: str, *whats: What, path: str = "shop/orders.py") -> Found:
    (each,) = found(source, *whats, path=path)
    return each


@pytest.mark.parametrize(
    "source",
    [
        pytest.param("import jobq\nfrom shop.jobs import send\njobq.enqueue(s, send, 1)", id="import jobq"),
        pytest.param("import jobq as q\nfrom shop.jobs import send\nq.enqueue(s, send, 1)", id="import as"),
        pytest.param("from jobq import enqueue as e\nfrom shop.jobs import send\ne(s, send, 1)", id="from jobq"),
        pytest.param("from jobq.producer import enqueue\nfrom .jobs import send\nenqueue(s, send, 1)", id="its module"),
        pytest.param("import jobq, shop.jobs\njobq.enqueue(s, shop.jobs.send, 1)", id="dotted"),
        pytest.param("import jobq\nfrom shop import jobs as j\njobq.enqueue(s, j.send, 1)", id="of a module"),
        pytest.param("import jobq\nfrom .jobs import send as post\njobq.enqueue(s, post, 1)", id="relative"),
        pytest.param("import jobq\nfrom .jobs import *\njobq.enqueue(s, send, 1)", id="star"),
        pytest.param("import jobq\nfrom .jobs import send\njobq.enqueue(s, send.options(delay=d), 1)", id="options"),
        pytest.param(f"{HEAD}x = send\ndef f():\n  y = x\n  jobq.enqueue(s, y, 1)", id="names"),
        pytest.param(f"{HEAD}async def f():\n  await jobq.enqueue_async(s, send, 1)", id="async"),
        pytest.param(f"{HEAD}waits = s.run_sync(jobq.enqueue, send, 1)", id="run_sync"),
        pytest.param("def f():\n  import jobq, shop.jobs\n  jobq.enqueue(s, shop.jobs.send, 1)", id="in a function"),
        pytest.param(f"{HEAD}class A:\n  def f(self):\n    jobq.enqueue(s, send, 1)", id="in a method"),
        pytest.param(f"{HEAD}f = lambda s: jobq.enqueue(s, send, 1)", id="in a lambda"),
        pytest.param(f"{HEAD}@d(jobq.enqueue(s, send, 1))\ndef f(): ...", id="in a decorator"),
    ],
)  # fmt: skip
def test_an_enqueue_is_found_with_its_handler(source: str) -> None:
    each = only(source, What.ENQUEUE)

    assert SHOP in each.names
    assert each.args == Arguments((1,))


@pytest.mark.parametrize(
    "source",
    [
        pytest.param("import jobq\ndef f(send):\n  jobq.enqueue(s, send)", id="a parameter"),
        pytest.param("import jobq\ndef f():\n  for send in all:\n    jobq.enqueue(s, send)", id="of a loop"),
        pytest.param("import jobq\ndef f():\n  send = a\n  send = b\n  jobq.enqueue(s, send)", id="assigned twice"),
        pytest.param("import jobq\njobq.enqueue(s, handlers['send'])", id="of a dict"),
        pytest.param("import jobq\njobq.enqueue(*both)", id="starred"),
        pytest.param("import jobq\nx = y\ny = x\ndef f(y):\n  jobq.enqueue(s, y.options())", id="in a circle"),
    ],
)
def test_a_handler_that_only_a_run_would_tell_is_unknown(source: str) -> None:
    each = only(source, What.ENQUEUE)

    assert (each.names, each.kind) == ((), None)


def test_names_that_lead_back_to_themselves_end() -> None:
    assert only("import jobq\nx = y\ny = x\njobq.enqueue(s, x)", What.ENQUEUE).kind is None


@pytest.mark.parametrize("source", ["enqueue(s, send)", "self.enqueue(s, send)", "import jobq\njobq.retry(s, send)"])
def test_a_call_of_something_else_is_none_of_ours(source: str) -> None:
    assert found(source) == []


def test_an_enqueue_of_another_module_may_be_handed_on() -> None:
    assert only("from .compat import enqueue\nenqueue(s, send)").function == ("shop.compat.enqueue",)
    assert only("import jobq\njobq.enqueue(s, send)").function == ()


def test_a_local_name_hides_the_import() -> None:
    source = """
        import jobq
        from shop.jobs import send
        def f(jobq): jobq.enqueue(s, send)
        def g(s, send): jobq.enqueue(s, send)
    """

    assert [each.names for each in found(source)] == [()]


def test_literal_arguments_are_kept_and_others_are_unknown() -> None:
    source = "import jobq\njobq.enqueue(s, h, 1, x, to='a', at=now(), tags=['a', {'b': None}], n=-1)"

    args = only(source, What.ENQUEUE).args

    assert args == Arguments((1, UNKNOWN), {"to": "a", "at": UNKNOWN, "tags": ["a", {"b": None}], "n": -1})


@pytest.mark.parametrize("call", ["h, *rest", "h, **rest", "h, 1, *rest, 2", "h, a=1, **rest"])
def test_with_a_star_it_is_said_that_there_may_be_more(call: str) -> None:
    args = only(f"import jobq\njobq.enqueue(s, {call})", What.ENQUEUE).args

    assert args is not None
    assert not args.is_whole


def test_rows_of_enqueue_many_are_found_one_by_one() -> None:
    source = """
        import jobq
        from shop.jobs import send
        jobq.enqueue_many(s, send, [{"to": "a"}, {"to": x, **more}])
        jobq.enqueue_many(s, send, [{"to": x} for x in all])
        jobq.enqueue_many(s, send, [send.args("a"), send.options(delay=d).args(to=x)])
        jobq.enqueue_select(s, send, query)
    """

    assert [each.line for each in found(source, What.ENQUEUE)] == [4, 5, 6, 7]
    rows = found(source, What.ARGS)
    assert [(each.line, each.args) for each in rows] == [
        (4, Arguments((), {"to": "a"})),
        (4, Arguments((), {"to": UNKNOWN}, is_whole=False)),
        (5, Arguments((), {"to": UNKNOWN})),
        (6, Arguments(("a",))),
        (6, Arguments((), {"to": UNKNOWN})),
    ]
    assert all(SHOP in each.names for each in rows)


def test_a_kind_that_is_written_out_is_found_where_it_is_written_and_where_it_is_used() -> None:
    source = """
        import jobq
        MAIL = jobq.kind("email.send", queue="mail")
        jobq.enqueue(s, MAIL, to="a")
        jobq.enqueue(s, jobq.kind(name, queue="mail"))
    """

    written, used, by_name, unknown = found(source)

    assert (written.what, written.kind, written.line) == (What.KIND, "email.send", 3)
    assert (used.what, used.kind, used.as_json) == (What.ENQUEUE, "email.send", True)
    assert [by_name.kind, unknown.kind] == [None, None]


def test_a_kind_is_read_through_a_name_that_is_assigned_once() -> None:
    source = """
        import jobq
        NAME: str = "email.send"
        twice = "a"
        twice = "b"
        def f(s, name):
            jobq.enqueue(s, jobq.kind(NAME, queue="mail"), to="a")
            jobq.enqueue(s, jobq.kind(twice, queue="mail"), to="a")
            jobq.enqueue(s, jobq.kind(name, queue="mail"), to="a")
    """

    assert [each.kind for each in found(source, What.ENQUEUE)] == ["email.send", None, None]


def test_handlers_and_schedules_are_found_in_all_their_forms() -> None:
    source = """
        import jobq
        app = jobq.App()
        @app.every(span)
        @app.handler("night")
        async def nightly(): ...
        weekly = jobq.cron("@weekly", name="w")
        app.schedule(weekly, nightly)
        app.schedule(jobq.when(f), jobq.kind("other", queue="q"), n=1)
        calendar.schedule(meeting, room)
        by_call = app.handler("call")(function)
        jobq.enqueue(s, by_call)
        class Jobs:
            @staticmethod
            @app.handler("static")
            def run(): ...
        jobq.enqueue(s, Jobs.run)
    """

    schedules = found(source, What.SCHEDULE)
    assert [(each.line, each.kind) for each in schedules] == [(4, "night"), (8, None), (9, "other")]
    assert "shop.orders.nightly" in schedules[1].names
    assert [(each.kind, each.names) for each in found(source, What.HANDLER)] == [
        ("night", ("shop.orders.nightly",)),
        ("static", ("shop.orders.Jobs.run",)),
    ]
    by_call, static = found(source, What.ENQUEUE)
    assert by_call.kind == "call"
    assert static.names == ("shop.orders.Jobs.run",)


def test_inserts_through_the_table_are_found() -> None:
    source = """
        import jobq, sqlalchemy as sa
        from jobq.tables import jobs
        s.execute(sa.insert(jobs).values(kind="a", queue="q"))
        s.execute(jobq.tables.jobs.insert().values(kind=x))
        s.execute(sa.insert(orders).values(kind="b"))
    """

    assert [(each.line, each.kind) for each in found(source)] == [(4, "a"), (5, None)]


def test_sql_in_strings_is_found_with_the_line_of_the_statement() -> None:
    source = '''
        """SELECT jobq.enqueue('docstring')"""
        one = "SELECT jobq.enqueue('one')"
        two = text("""
            -- a comment
            INSERT INTO jobq.jobs (queue, kind) VALUES ('q', 'two')
        """)
        three = f"INSERT INTO jobq.jobs (queue, kind) VALUES ('{q}', '{kind}')"
        four = f"INSERT INTO jobq.jobs (queue, kind) VALUES ({q}, 'four')"
    '''

    assert [(each.line, each.kind) for each in found(source)] == [(3, "one"), (6, "two"), (8, None), (9, "four")]


def test_an_alias_says_what_other_names_stand_for() -> None:
    aliases = found("from shop.jobs import send\npost = send", What.ALIAS, path="shop/__init__.py")

    assert [each.names for each in aliases] == [("shop.send", "shop.jobs.send"), ("shop.post", "shop.jobs.send")]


names = st.sampled_from(["jobq", "q", "queue_"])
functions = st.sampled_from(["enqueue", "enqueue_async", "enqueue_many", "enqueue_select"])
handlers = st.sampled_from(["send", "jobs.send", "send.options(priority=0)", "jobq_kind"])
blocks = st.sampled_from(
    [
        "{}",
        "if x:\n    {}",
        "def f(s):\n    {}",
        "class A:\n    y = {}",
        "z = [{} for _ in x]",
        "with x:\n    y = {}",
        "async def f(s):\n    await {}",
        "try:\n    {}\nfinally:\n    pass",
        "def f(s):\n    def g():\n        return {}",
        "f(x, y={})",
        "x = {} if y else None",
        "match x:\n    case 1:\n        {}",
    ]
)


@given(st.lists(st.tuples(blocks, functions, handlers), max_size=12), names)
def test_every_call_that_is_written_into_a_module_is_found(calls: list[tuple[str, str, str]], name: str) -> None:
    head = [f"import jobq as {name}", "from shop.jobs import send", "from shop import jobs"]
    head += [f"jobq_kind = {name}.kind('send', queue='q')"]
    parts = [block.format(f"{name}.{function}(s, {handler}, rows)") for block, function, handler in calls]
    source = "\n".join(head + parts) + "\n"
    ast.parse(source)

    each = found(source, What.ENQUEUE)

    assert len(each) == len(calls)
    assert all(one.kind == "send" or SHOP in one.names for one in each)
    lines = source.splitlines()
    assert all(f"{name}.enqueue" in lines[one.line - 1] for one in each)
