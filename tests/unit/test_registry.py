from __future__ import annotations

import asyncio
import functools
import inspect
import runpy
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, nullcontext
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from jobq.backoff import Exponential
from jobq.errors import ArgsError, OptionError, OptionTypeError, RegistrationError
from jobq.handlers import Handler, Kind, kind
from jobq.options import Settings
from jobq.registry import App, QueueSettings, Registry


@pytest.fixture
def app() -> App:
    return App()


def greet(name: str, times: int = 1) -> str:
    """Say hello."""
    return f"hello {name}" * times


async def fetch(url: str) -> None:
    raise AssertionError("only registered")


def plain_wrapper(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return wrapper


def test_a_handler_is_still_the_function(app: App) -> None:
    handler = app.handler("greet")(greet)

    assert handler("Ada", times=2) == "hello Adahello Ada"
    assert getattr(handler, "__name__", None) == "greet"
    assert handler.__doc__ == "Say hello."
    assert inspect.unwrap(handler) is greet
    assert repr(handler) == "<Handler greet>"


def test_an_async_handler_gives_its_coroutine(app: App) -> None:
    @app.handler("double")
    async def double(n: int) -> str:
        return str(2 * n)

    assert asyncio.run(double(4)) == "8"


def test_a_handler_carries_what_its_registration_says(app: App) -> None:
    handler = app.handler("greet", queue="email", max_attempts=8, timeout=timedelta(seconds=30), priority=0)(greet)

    assert handler.settings == Settings(
        queue="email", max_attempts=8, timeout=timedelta(seconds=30), priority=0, retry=Exponential()
    )
    assert app.handlers == {"greet": handler}


def test_a_copy_with_options_is_the_same_handler_otherwise(app: App) -> None:
    handler = app.handler("greet")(greet)
    copy = handler.options(priority=0)

    assert copy is not handler
    assert copy("Ada") == "hello Ada"
    assert copy.is_same(handler)
    assert app.handlers["greet"] is handler


def test_the_queue_is_the_handlers_else_the_registrys_else_default(app: App) -> None:
    billing = Registry(queue="billing")

    assert app.handler("a")(greet).settings.queue == "default"
    assert billing.handler("b")(greet).settings.queue == "billing"
    assert billing.handler("c", queue="own")(greet).settings.queue == "own"


class Callables:
    def bound(self, to: str) -> None: ...

    @staticmethod
    def static(to: str) -> None: ...

    def __call__(self, to: str) -> None: ...


def base(client: object, to: str) -> None: ...


@pytest.mark.parametrize(
    "function",
    [Callables().bound, Callables.static, Callables(), functools.partial(base, object()), plain_wrapper(base)],
    ids=["bound method", "static method", "callable object", "partial", "wrapped"],
)
def test_any_callable_can_be_a_handler(app: App, function: Callable[..., None]) -> None:
    handler = app.handler("k")(function)

    assert "to" in handler.codec.parameters
    assert handler.executor == "thread"


def test_a_static_method_may_be_decorated_in_its_class(app: App) -> None:
    class Mailer:
        @staticmethod
        @app.handler("mail")
        def send(to: str) -> str:
            return to

    assert Mailer.send("a") == "a"
    assert Mailer().send.args(to="a").text == '{"to":"a"}'


@pytest.mark.parametrize(
    ("function", "executor"),
    [(greet, "thread"), (fetch, "async"), (plain_wrapper(fetch), "async"), (functools.partial(fetch, "x"), "async")],
    ids=["plain", "async", "async under a plain wrapper", "partial of async"],
)
def test_the_executor_follows_the_function(app: App, function: Callable[..., Any], executor: str) -> None:
    handler = app.handler("k")(function)

    assert handler.executor == executor
    assert handler.is_async == (executor == "async")


@pytest.mark.parametrize(("function", "executor"), [(fetch, "thread"), (greet, "async")])
def test_an_executor_that_cannot_run_the_function_is_refused(
    app: App, function: Callable[..., Any], executor: str
) -> None:
    with pytest.raises(RegistrationError, match=f'cannot run with executor="{executor}"'):
        app.handler("k", executor=executor)(function)
    assert not app.handlers


def test_an_executor_of_somebody_else_is_kept_by_its_name(app: App) -> None:
    assert app.handler("k", executor="processes")(greet).executor == "processes"


def test_a_function_that_cannot_be_a_handler_is_refused_by_its_kind(app: App) -> None:
    with pytest.raises(RegistrationError, match=r"handler 'k': parameter '\*names'"):
        app.handler("k")(lambda *names: None)


def test_a_kind_registered_twice_is_an_error_that_names_both_places(app: App) -> None:
    app.handler("k")(greet)
    with pytest.raises(RegistrationError) as caught:
        app.handler("k")(fetch)

    here = str(Path(__file__))
    assert str(caught.value).count(f"{here}:") == 2
    assert app.handlers["k"].function is greet


def test_a_decorator_without_a_kind_says_what_is_missing(app: App) -> None:
    wrong: Any = app.handler
    with pytest.raises(OptionTypeError, match=r'@app.handler\("email.send"\)'):
        wrong(greet)


def test_an_app_has_the_handlers_of_the_registries_it_includes_also_later_ones(app: App) -> None:
    billing = Registry()
    first = billing.handler("first")(greet)
    app.include(billing)
    second = billing.handler("second")(greet)
    app.include(billing)

    assert app.handlers == {"first": first, "second": second}


def test_including_a_kind_that_is_taken_is_refused(app: App) -> None:
    billing = Registry()
    app.handler("k")(greet)
    billing.handler("k")(greet)

    with pytest.raises(RegistrationError, match="'k' is registered twice"):
        app.include(billing)


def test_a_later_handler_that_an_including_app_has_already_is_refused_by_both(app: App) -> None:
    billing = Registry()
    app.include(billing)
    app.handler("k")(greet)

    with pytest.raises(RegistrationError, match="'k' is registered twice"):
        billing.handler("k")(greet)
    assert not billing.handlers


@pytest.mark.parametrize("wrong", [App(), greet, "billing"], ids=["an app", "a function", "a str"])
def test_only_registries_are_included(app: App, wrong: Any) -> None:
    with pytest.raises(OptionTypeError, match="include"):
        app.include(wrong)


def test_types_that_cannot_be_found_are_told_by_kind(app: App) -> None:
    def lost(x: Nowhere) -> None: ...  # type: ignore[name-defined]  # noqa: F821

    billing = Registry()
    billing.handler("lost")(lost)
    with pytest.raises(RegistrationError, match="handler 'lost': parameter 'x': name 'Nowhere'"):
        app.include(billing)

    app.handler("lost")(lost)
    with pytest.raises(RegistrationError, match="handler 'lost'"):
        app.resolve()


def test_unique_names_arguments_of_the_function(app: App) -> None:
    app.handler("ok", unique=("name",))(greet)
    with pytest.raises(OptionError, match=r"no argument 'nam' \(known: name, times\)"):
        app.handler("typo", unique=("nam",))(greet)
    with pytest.raises(OptionError, match="no argument 'nam'"):
        app.handlers["ok"].options(unique=("nam",))


def test_a_key_given_to_a_handler_that_derives_its_own_is_refused(app: App) -> None:
    handler = app.handler("k", unique=True)(greet)

    with pytest.raises(OptionError, match="unique=False"):
        handler.options(unique_key="mine")
    assert handler.options(unique_key="mine", unique=False).effective().unique_key == "mine"


def test_args_are_checked_when_they_are_made_and_never_shown(app: App) -> None:
    handler = app.handler("greet")(greet)

    assert repr(handler.args("hunter2")) == "<Args of greet>"
    with pytest.raises(ArgsError, match=r"args\.nam: unknown argument"):
        handler.args(nam="Ada")  # type: ignore[call-arg]


def test_a_bare_kind_leaves_to_the_handler_what_it_does_not_say() -> None:
    bare: Kind[...] = kind("email.send", queue="email")

    assert bare.effective().max_attempts is None
    assert bare.args(to="a", n=[1, None]).text == '{"n":[1,null],"to":"a"}'
    with pytest.raises(ArgsError):
        bare.args(to=b"a")


def test_rows_are_of_the_same_handler_when_kind_and_function_are(app: App) -> None:
    handler = app.handler("greet")(greet)
    other: Handler[Any, Any] = Registry().handler("greet")(greet)
    bare = kind("greet", queue="q")

    assert handler.is_same(handler.options(priority=0))
    assert not handler.is_same(other)
    assert not handler.is_same(bare)
    assert not bare.is_same(handler)
    assert bare.is_same(kind("greet", queue="other"))


def test_f71_the_kind_is_the_same_in_a_script_and_in_its_module(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = tmp_path / "scripted_app.py"
    script.write_text("import jobq.registry\napp = jobq.registry.App()\n@app.handler('say')\ndef say(): ...\n")
    monkeypatch.syspath_prepend(tmp_path)

    as_script = runpy.run_path(str(script), run_name="__main__")["app"]
    as_module = runpy.run_module("scripted_app")["app"]

    assert list(as_script.handlers) == list(as_module.handlers) == ["say"]


def test_queues_are_declared_once(app: App) -> None:
    app.queue("email", weight=3)
    app.queue("email", weight=3)

    assert app.queues == {"email": QueueSettings(weight=3)}
    with pytest.raises(OptionError, match="declared twice: weight 3 and 4"):
        app.queue("email", weight=4)


@pytest.mark.parametrize("weight", [0, -1, 1001])
def test_a_weight_is_from_1_to_1000(app: App, weight: int) -> None:
    with pytest.raises(OptionError, match="weight: from 1 to 1000"):
        app.queue("email", weight=weight)


def test_what_is_around_jobs_is_kept_in_order(app: App) -> None:
    def first() -> nullcontext[None]:
        return nullcontext()

    def second() -> nullcontext[None]:
        return nullcontext()

    def report(event: object) -> None: ...

    assert app.around(first) is first
    app.around(second)
    app.on_error(report)

    assert app.around_factories == (first, second)
    assert app.error_callbacks == (report,)


def test_a_lifespan_may_be_a_generator_or_a_context_manager() -> None:
    async def opened() -> AsyncIterator[str]:
        yield "state"

    async def state_of(app: App) -> Any:
        assert app.lifespan_function is not None
        async with app.lifespan_function() as state:
            return state

    for function in (opened, asynccontextmanager(opened)):
        app = App()
        assert app.lifespan(function) is function
        assert asyncio.run(state_of(app)) == "state"


def test_an_app_has_one_lifespan(app: App) -> None:
    async def opened() -> AsyncIterator[None]:
        yield

    app.lifespan(opened)
    with pytest.raises(RegistrationError, match="one already"):
        app.lifespan(opened)


@pytest.mark.parametrize("decorate", ["around", "lifespan", "on_error"])
def test_hooks_can_be_called(app: App, decorate: str) -> None:
    with pytest.raises(OptionTypeError, match=decorate):
        getattr(app, decorate)("not callable")


def test_f53_registering_and_enqueuing_import_no_asyncio_part_of_sqlalchemy() -> None:
    code = (
        "import sys, jobq.registry, jobq.producer;"
        "print([m for m in ('sqlalchemy.ext.asyncio', 'typer', 'alembic') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
