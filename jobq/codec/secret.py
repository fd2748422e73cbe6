"""`jobq.Secret[...]`: a parameter whose value is in no error, and is kept out of whatever jobq writes and shows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Annotated, Any, TypeVar

from jobq import masking
from jobq.codec.form import Form, Misfit, Mismatch

T = TypeVar("T")


class _Mark:
    def __repr__(self) -> str:
        return "jobq.Secret"


SECRET = _Mark()
Secret = Annotated[T, SECRET]
"""`token: jobq.Secret[str]`: for type checkers, and in the handler, a plain str.

Its value is stored in the job's row as it is (the worker needs it), which is no encryption. It is not shown: not in
errors, logs, `jobq show`, the kept history of errors, traces or events for Sentry.
"""


class Hidden(Misfit):
    """A secret does not fit: which type was expected and given, and no more."""

    def __init__(self, name: str, value: object, misfit: Misfit) -> None:
        got = f"expected {name}, got {'None' if value is None else type(value).__name__}"
        is_other_type = isinstance(misfit, Mismatch) and not misfit.steps
        super().__init__(f"{got if is_other_type else f'does not fit {name}'} (a secret: the value is not shown)")
        self._is_specific = misfit.is_specific

    @property
    def is_specific(self) -> bool:
        return self._is_specific


def secret_form(form: Form, *, numbers: bool = True) -> Form:
    """The form with its values kept secret. `numbers`: those too, and not only texts."""

    def decode(value: Any) -> Any:
        masking.note(value, numbers=numbers)
        return form.decode(value)

    return replace(form, encode=_hiding(form.name, form.encode), decode=_hiding(form.name, decode))


def _hiding(name: str, convert: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def hiding(value: Any) -> Any:
        try:
            return convert(value)
        except Misfit as misfit:
            hidden = Hidden(name, value, misfit)
        raise hidden  # outside of the block: the other's text is not even its context

    return hiding
