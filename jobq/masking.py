"""What must not be shown: values of `jobq.Secret[...]` parameters, and what stands under keys such as `password`.

Two ways, since a value can be met in two places. In a structure (args, a result) it is known by its key. In a text (an
error's message, a log line) it is known by itself: while a job runs, and for the last 1 000 that ran, the process
remembers the secret values of its args.
"""

from __future__ import annotations

import json
import os
import re
import threading
import weakref
from collections import deque
from collections.abc import Collection, Iterator
from functools import cache
from typing import Any
from urllib.parse import quote, quote_plus

from jobq.errors import OptionError

MASK = "***"
SHORTEST = 4  # characters: of a shorter value every other text would be full
REMEMBERED = 1_000
VARIABLE = "JOBQ_SECRET_KEYS"
KEYS = r"pass(word|wd|phrase|code)|secret|token|authorization|api[_-]?key|private[_-]?key|credentials?"
META = "secret"  # the key of a row's meta that names the parameters

_HUMP = re.compile("([a-z0-9])([A-Z])")
_lock = threading.Lock()
_live: dict[int, tuple[str, ...]] = {}  # by the identity of a call's arguments
_recent: deque[tuple[str, ...]] = deque(maxlen=REMEMBERED)
_noted = threading.local()


class Arguments(dict[str, Any]):
    """The arguments of one call: as long as they are there, their secrets are in no text."""

    __slots__ = ("__weakref__",)


def is_secret(key: str) -> bool:
    """Whether what stands under this key is not to be shown, by its name alone. Raises: OptionError."""
    return _pattern(os.environ.get(VARIABLE, "")).search(_HUMP.sub(r"\1_\2", key).lower()) is not None


def masked(value: Any, names: Collection[str] = ()) -> Any:
    """A copy of a JSON value for showing: *** under secret keys at any depth, and under `names` at the top."""
    if isinstance(value, dict):
        return {key: MASK if key in names or is_secret(str(key)) else masked(each) for key, each in value.items()}
    return [masked(each) for each in value] if isinstance(value, list | tuple) else value


def mask(text: str) -> str:
    """The text with *** in place of each secret value that this process remembers."""
    if not _live and not _recent:
        return text
    for secret in sorted(_known(), key=len, reverse=True):
        text = text.replace(secret, MASK)
    return text


def mask_all(value: Any, within: frozenset[int] = frozenset()) -> Any:
    """`mask` over every text of a structure; one that contains itself has *** there."""
    if not _live and not _recent:
        return value
    if isinstance(value, str):
        return mask(value)
    if not isinstance(value, dict | list | tuple):
        return value
    if id(value) in within:
        return MASK
    deeper = within | {id(value)}
    if isinstance(value, dict):
        return {mask(key) if isinstance(key, str) else key: mask_all(each, deeper) for key, each in value.items()}
    return [mask_all(each, deeper) for each in value]


def note(tree: Any, *, numbers: bool = True) -> None:
    """Take the leaves of a JSON value for secret, from here to the next `remember` of this thread."""
    _of_this_thread().extend(_leaves(tree, numbers))


def begin() -> None:
    """Forget what was noted for a call that came to nothing."""
    _of_this_thread().clear()


def remember(arguments: dict[str, Any]) -> Arguments:
    """The same arguments; what was noted is kept out of texts while they are there, and a while longer."""
    kept, key = Arguments(arguments), None
    values = tuple({form for value in _of_this_thread() for form in _forms(value) if len(form) >= SHORTEST})
    begin()
    if values:
        key = id(kept)
        with _lock:
            _live[key] = values
        weakref.finalize(kept, _release, key).atexit = False
    return kept


def _release(key: int) -> None:
    with _lock:
        _recent.append(_live.pop(key))


def _known() -> set[str]:
    with _lock:
        return {value for values in (*_live.values(), *_recent) for value in values}


def _of_this_thread() -> list[str]:
    if not hasattr(_noted, "values"):
        _noted.values = []
    found: list[str] = _noted.values
    return found


def _leaves(tree: Any, numbers: bool) -> Iterator[str]:
    if isinstance(tree, str):
        yield tree
    elif isinstance(tree, dict | list):
        for each in tree.values() if isinstance(tree, dict) else tree:
            yield from _leaves(each, numbers)
    elif numbers and isinstance(tree, int | float) and not isinstance(tree, bool):
        yield json.dumps(tree)


def _forms(value: str) -> Iterator[str]:
    """As it is, and as it stands inside of a repr, of JSON and of a URL."""
    yield value
    yield repr(value)[1:-1]
    yield json.dumps(value)[1:-1]
    yield json.dumps(value, ensure_ascii=False)[1:-1]
    yield quote(value, errors="replace")
    yield quote(value, safe="", errors="replace")
    yield quote_plus(value, errors="replace")


@cache
def _pattern(chosen: str) -> re.Pattern[str]:
    try:
        return re.compile(chosen or rf"(?<![a-z])({KEYS})(?![a-z])")
    except re.error as error:
        raise OptionError(f"{VARIABLE} is no regular expression: {error}") from None
