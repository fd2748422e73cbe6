"""How the values of one annotation travel: the `Form`, and the ways in which something does not fit.

Nothing knows its own path: a `Misfit` is raised where it is found, and each container on the way out adds its step.
A call that fits pays nothing for the path that an error would show.
"""

from __future__ import annotations

import reprlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from jobq.errors import ArgsError

STEPS_SHOWN = 8
REPR = reprlib.Repr()
REPR.maxstring = REPR.maxother = 60  # a UUID or a datetime whole
NOTHING: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Form:
    """What an annotation takes and how it looks in JSON.

    `shapes` are the JSON types that `decode` takes (string, number, boolean, null, array, object).
    `nests` is true where the annotation sets no bound to the depth of a value (Any, recursive types, models).
    `python` is the type of the values, for a Literal they themselves; None where a value has parts or several types.
    """

    name: str
    shapes: frozenset[str]
    encode: Callable[[Any], Any]
    decode: Callable[[Any], Any]
    nests: bool = False
    python: Any = None


class Misfit(Exception):
    """A value does not fit its annotation, or has no JSON form."""

    def __init__(self, problem: str) -> None:
        super().__init__(problem)
        self.steps: list[str] = []  # from the inside out

    @property
    def problem(self) -> str:
        return str(self.args[0])

    @property
    def is_specific(self) -> bool:
        """Says more than "not this type": the value's own type was right, or the fault lies inside of it."""
        return True

    def error(self) -> ArgsError:
        return ArgsError("args" + "".join(shortened(self.steps[::-1])), self.problem)


class Mismatch(Misfit):
    """A value of another type. The text is made late: a union tries its arms and drops most of these."""

    def __init__(self, expected: str, value: object, hint: str = "") -> None:
        super().__init__(expected)
        self.value = value
        self.hint = hint

    @property
    def problem(self) -> str:
        return f"expected {self.args[0]}, got {describe(self.value)}{self.hint}"

    @property
    def is_specific(self) -> bool:
        return bool(self.steps)


class Unfit(Exception):
    """An annotation that no handler can have; the text is the reason."""


class Unresolved(Exception):
    """An annotation uses a name that is not known (yet); the text is the reason."""


def describe(value: object) -> str:
    """The type and a short repr, for an error."""
    return "None" if value is None else f"{type(value).__name__} {short(value)}"


def short(value: object) -> str:
    """A repr of bounded length that never raises; that of an int of 5 000 digits is a ValueError."""
    try:
        return REPR.repr(value)
    except Exception:
        return "(no repr)"


def step(name: object) -> str:
    """The step into a field or a key: `.name`, or `['any text']` where it is not a name."""
    return f".{name}" if isinstance(name, str) and name.isidentifier() and len(name) < 64 else f"[{short(name)}]"


def shortened(steps: list[str]) -> list[str]:
    if len(steps) <= STEPS_SHOWN:
        return steps
    return [*steps[: STEPS_SHOWN - 3], "...", *steps[-3:]]


def spell(annotation: object) -> str:
    """An annotation as its author wrote it, more or less."""
    if isinstance(annotation, type) and not hasattr(annotation, "__args__"):
        return "None" if annotation is type(None) else annotation.__qualname__.rpartition("<locals>.")[2]
    return str(annotation).replace("typing.", "").replace("collections.abc.", "")


class Compiles(Protocol):
    """What a form that is made of others needs: the compiler, in the scope of the function or of a class."""

    def evaluate(self, annotation: Any) -> Any:
        """What an annotation written as text stands for; anything else as it is."""
        ...

    def form(self, annotation: Any) -> Form: ...

    def inside(self, cls: type[Any]) -> Compiles:
        """The same compiler, with the names that the body of `cls` sees."""
        ...
