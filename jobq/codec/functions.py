"""Functions as handlers: what is behind a callable, whether it is async, and which cannot work."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from types import FunctionType, MethodType
from typing import Any

from jobq.codec.annotations import signature_of
from jobq.errors import RegistrationError

LAYERS = 100  # a proxy that answers to every attribute, or wraps itself, has no end
KINDS_REFUSED = {
    inspect.Parameter.VAR_POSITIONAL: ("*", "arguments are kept by name: take a list"),
    inspect.Parameter.VAR_KEYWORD: ("**", "the signature is the schema of the args: name them, or take a dict"),
    inspect.Parameter.POSITIONAL_ONLY: ("", "arguments are kept by name: remove the '/'"),
}


def layers(function: Any) -> Iterator[Any]:
    """The callable and what is behind it: partials, bound methods, callable objects, functools.wraps."""
    for _ in range(LAYERS):
        yield function
        if isinstance(function, functools.partial):
            function = function.func
        elif isinstance(function, MethodType):
            function = function.__func__
        elif hasattr(function, "__wrapped__"):
            function = function.__wrapped__
        elif not isinstance(function, type | FunctionType) and isinstance(type(function).__call__, FunctionType):
            function = type(function).__call__
        else:
            return


def innermost(function: Any) -> Any:
    *_, last = layers(function)
    return last


def is_async(function: Callable[..., Any]) -> bool:
    """Whether calling it gives a coroutine: also when that is hidden under a plain `functools.wraps` decorator."""
    return any(inspect.iscoroutinefunction(layer) for layer in layers(function))


def parameters_of(function: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    """The parameters that are a job's args. Raises RegistrationError for a callable that cannot be a handler."""
    if not callable(function) or isinstance(function, type):
        raise RegistrationError(f"{function!r} is not a function; a class has to be called by one")
    try:
        parameters = signature_of(function).parameters
    except ValueError as error:
        raise RegistrationError(f"{function!r} has no signature that could be read: {error}") from error
    refuse_generators(function)
    refuse_open_method(function, parameters)
    fixed = function.keywords if isinstance(function, functools.partial) else {}
    return {name: usable(parameter) for name, parameter in parameters.items() if name not in fixed}


def usable(parameter: inspect.Parameter) -> inspect.Parameter:
    if parameter.kind in KINDS_REFUSED:
        stars, reason = KINDS_REFUSED[parameter.kind]
        raise RegistrationError(f"parameter '{stars}{parameter.name}': {reason}")
    return parameter


def refuse_generators(function: Callable[..., Any]) -> None:
    for layer in layers(function):
        if inspect.isgeneratorfunction(layer) or inspect.isasyncgenfunction(layer):
            raise RegistrationError(f"{name_of(function)} is a generator: calling it would not run it; drop the yield")


def refuse_open_method(function: Callable[..., Any], parameters: Any) -> None:
    """A method decorated in the body of its class: at that time there is no object to call it on."""
    first = next(iter(parameters), None)
    parent = getattr(innermost(function), "__qualname__", "").rpartition(".")[0]
    if first in {"self", "cls"} and parent and not parent.endswith("<locals>"):
        raise RegistrationError(
            f"parameter {first!r}: {name_of(function)} is a method without its object; register the bound method"
            " of an object, or make it a staticmethod"
        )


def name_of(function: Any) -> str:
    return getattr(function, "__qualname__", None) or repr(function)
