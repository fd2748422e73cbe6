from __future__ import annotations

import functools
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import pytest

from jobq.codec import Codec, is_async
from jobq.errors import RegistrationError

T = TypeVar("T")


def plain_decorator(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return wrapper


async def work(to: str) -> None: ...


def plain_work(to: str) -> None: ...


class Mailer:
    async def send(self, to: str) -> None: ...

    def plain_send(self, to: str) -> None: ...

    @staticmethod
    async def static(to: str) -> None: ...

    @classmethod
    async def of_class(cls, to: str) -> None: ...

    async def __call__(self, to: str) -> None: ...


class PlainCallable:
    def __call__(self, to: str) -> None: ...


HANDLERS = [
    pytest.param(work, True, id="function"),
    pytest.param(plain_work, False, id="plain function"),
    pytest.param(plain_decorator(work), True, id="async under a plain decorator"),
    pytest.param(plain_decorator(plain_decorator(work)), True, id="async under two"),
    pytest.param(plain_decorator(plain_work), False, id="plain under a decorator"),
    pytest.param(functools.partial(work), True, id="partial"),
    pytest.param(functools.partial(plain_decorator(Mailer().send)), True, id="partial of a decorated method"),
    pytest.param(functools.partial(plain_work), False, id="plain partial"),
    pytest.param(Mailer().send, True, id="bound method"),
    pytest.param(Mailer().plain_send, False, id="plain bound method"),
    pytest.param(Mailer.static, True, id="static method"),
    pytest.param(vars(Mailer)["static"], True, id="static method, in its class"),
    pytest.param(Mailer.of_class, True, id="class method"),
    pytest.param(Mailer(), True, id="callable object"),
    pytest.param(PlainCallable(), False, id="plain callable object"),
]


@pytest.mark.parametrize(("function", "expected"), HANDLERS)
def test_async_is_decided_behind_wrappers_too(function: Any, expected: bool) -> None:
    assert is_async(function) is expected


@pytest.mark.parametrize(("function", "_"), HANDLERS)
def test_every_callable_with_a_signature_can_be_a_handler(function: Any, _: bool) -> None:
    codec = Codec.of(function)

    assert codec.parameters == ("to",)
    assert codec.encode(("a",), {}) == '{"to":"a"}'


def test_a_proxy_without_an_end_is_not_followed_for_ever() -> None:
    class Proxy:
        def __getattr__(self, name: str) -> Any:
            return self

    assert not is_async(Proxy())  # type: ignore[arg-type]


def variadic(*names: str) -> None: ...


def keywords(**names: str) -> None: ...


def positional_only(a: int, /, b: int) -> None: ...


def generic(x: T) -> T:
    return x


def generator(x: int) -> Iterator[int]:
    yield x


async def async_generator(x: int) -> AsyncIterator[int]:
    yield x


class WithGenerator:
    def __call__(self) -> Iterator[int]:
        yield 1


@pytest.mark.parametrize(
    ("function", "error"),
    [
        (variadic, "parameter '*names': arguments are kept by name: take a list"),
        (keywords, "parameter '**names': the signature is the schema of the args: name them, or take a dict"),
        (positional_only, "parameter 'a': arguments are kept by name: remove the '/'"),
        (generic, "parameter 'x': ~T is a type variable, a worker needs the type itself"),
        (generator, "generator is a generator: calling it would not run it; drop the yield"),
        (async_generator, "async_generator is a generator: calling it would not run it; drop the yield"),
        (contextmanager(generator), "generator is a generator: calling it would not run it; drop the yield"),
        (functools.partial(generator, 1), "is a generator: calling it would not run it; drop the yield"),
        (WithGenerator(), "is a generator: calling it would not run it; drop the yield"),
        (
            Mailer.send,
            "parameter 'self': Mailer.send is a method without its object; register the bound method of an object,"
            " or make it a staticmethod",
        ),
        (plain_decorator(Mailer.send), "parameter 'self': Mailer.send is a method without its object"),
        (Mailer, "is not a function; a class has to be called by one"),
        (5, "5 is not a function"),
        (dict.get, "parameter"),
        (min, "has no signature that could be read"),
    ],
)
def test_what_cannot_work_is_refused_with_the_reason(function: Any, error: str) -> None:
    with pytest.raises(RegistrationError) as caught:
        Codec.of(function)

    assert error in str(caught.value)


def test_a_function_inside_a_method_may_call_its_parameter_self() -> None:
    def handler(self: int) -> None: ...

    assert Codec.of(handler).parameters == ("self",)
