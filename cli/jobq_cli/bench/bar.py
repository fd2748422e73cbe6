"""What a run says while it goes on: a bar where somebody watches, else a line for each step."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count

from jobq_cli.bench.bench import Tell
from jobq_cli.failures import say


@contextmanager
def bar(steps: int) -> Iterator[Tell]:
    """What is yielded is told of each step as it begins."""
    if not sys.stderr.isatty():
        yield say
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("", total=steps)
        begun = count()

        def tell(words: str) -> None:
            progress.update(task, description=words, completed=next(begun))  # of those before this one

        yield tell
