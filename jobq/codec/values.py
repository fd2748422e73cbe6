"""A JSON value of a handler's own making as text: what it reports or returns, exactly and within a bound."""

from __future__ import annotations

from typing import Any

from jobq.codec.exact import Exact
from jobq.codec.form import Misfit, shortened
from jobq.codec.text import dump
from jobq.errors import ArgsError

PLAIN = Exact("give plain JSON values: str, int, float, bool, None, list, tuple, dict", tuples=True)


def json_text(value: Any, *, path: str, most_bytes: int) -> str:
    """The text of a JSON value that jsonb gives back equal. A tuple is an array.

    Raises: ArgsError, which names the place (`path` is its beginning), for what has no such form or is longer.
    """
    try:
        text = dump(PLAIN.encode(value), nests=True)
    except Misfit as misfit:
        raise ArgsError(path + "".join(shortened(misfit.steps[::-1])), misfit.problem) from misfit.__cause__
    except ArgsError as error:
        raise ArgsError(path, error.problem) from None
    size = len(text.encode())
    if size > most_bytes:
        raise ArgsError(path, f"{size:,} bytes of JSON, the limit is {most_bytes:,}: store the data, keep its key here")
    return text
