"""The drains of a run as a picture: bars that read on a white page and on a dark one. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape

from comparing.figures import Line, infos_of, medians
from comparing.table import thousands

WIDTH, LEFT, RIGHT = 760, 150, 90
BAR, GAP, TOP = 18, 26, 64
SMALL, LEADING = 11, 15  # below the bars
SERIES = {"drain1": ("#2f7ed8", "empty tables"), "history": ("#9fc5f0", "beside finished and scheduled jobs")}
TEXT = "#7a7f87"  # between the two pages' own colours


def chart(lines: Sequence[Line], about: Mapping[str, str], rounds: int) -> str:
    """Jobs a second of one worker process, of each queue, with both kinds of tables where both were measured."""
    found, infos = medians(lines), infos_of(lines)
    queues = list(infos)
    shown = [series for series in SERIES if any(measure == series for _, measure in found)]
    pairs = [(queue, series) for queue in queues for series in shown if (queue, series) in found]
    rates = {pair: found[pair]["rate"] for pair in pairs}
    most = max(rates.values(), default=1.0)
    rows = [queue for queue in queues if any(name == queue for name, _ in rates)]
    step = BAR * len(shown) + GAP
    foot = [_conditions(about, rounds), *(_kind(queue, infos[queue]) for queue in rows)]
    below = TOP + step * len(rows)
    height = below + LEADING * len(foot) + 10
    parts = [*_head(shown, about)]
    for row, queue in enumerate(rows):
        top = TOP + row * step
        parts.append(_text(LEFT - 10, top + BAR * len(shown) / 2 + 5, queue, anchor="end", weight="bold"))
        for number, series in enumerate(shown):
            parts += _bar(top + BAR * number, rates.get((queue, series)), most, SERIES[series][0])
    parts += [_text(10, below + LEADING * number, words, size=SMALL) for number, words in enumerate(foot)]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}"'
        f' font-family="sans-serif" font-size="13" role="img">\n' + "\n".join(parts) + "\n</svg>\n"
    )


def _head(shown: list[str], about: Mapping[str, str]) -> Iterator[str]:
    yield _text(10, 20, "No-op jobs drained per second by one worker process", weight="bold", size=15)
    server = f"PostgreSQL {about['server_version'].split()[0]}, fsync {about['fsync']}"
    yield _text(WIDTH - 10, 20, f"{about['date']}, {about['cores']} cores, {server}", anchor="end")
    at = LEFT
    for series in shown:
        colour, words = SERIES[series]
        yield f'<rect x="{at}" y="34" width="12" height="12" fill="{colour}"/>'
        yield _text(at + 18, 45, words)
        at += 60 + 7 * len(words)


def _conditions(about: Mapping[str, str], rounds: int) -> str:
    return f"Python {about['python']}; medians of {rounds} rounds that take turns"


def _kind(queue: str, info: Line) -> str:
    version = f"{info['version']}" if info["package"] == queue else f"({info['package']} {info['version']})"
    return f"{queue} {version}: {info['loop']}, {info['at_once']}"


def _bar(top: float, rate: float | None, most: float, colour: str) -> Iterator[str]:
    if rate is None:
        return
    width = max(1.0, rate / most * (WIDTH - LEFT - RIGHT))
    yield f'<rect x="{LEFT}" y="{top}" width="{width:.1f}" height="{BAR - 3}" fill="{colour}"/>'
    yield _text(LEFT + width + 6, top + BAR - 6, thousands(rate))


def _text(x: float, y: float, words: str, *, anchor: str = "start", weight: str = "normal", size: int = 13) -> str:
    style = f'text-anchor="{anchor}" font-weight="{weight}" font-size="{size}" fill="{TEXT}"'
    return f'<text x="{x:.1f}" y="{y:.1f}" {style}>{escape(words)}</text>'
