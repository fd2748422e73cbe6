"""The outcome of a run as Markdown. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from comparing.figures import TARGETS, Line, infos_of, medians, reached

LARGE = 1_000  # from here on without a fraction
ROWS = {
    "drain1": ("drain, 1 process, jobs/s", "rate"),
    "drain2": ("drain, 2 processes, jobs/s", "rate"),
    "onecore": ("drain, worker and server on one core, jobs/s", "rate"),
    "backlog": ("drain of a long backlog, jobs/s", "rate"),
    "history": ("drain beside many finished and scheduled jobs, jobs/s", "rate"),
    "one": ("enqueue, one transaction each, jobs/s", "rate"),
    "many": ("enqueue in bulk, jobs/s", "rate"),
    "latency": ("pick-up by an idle worker, p50 / p99, ms", "p50_ms"),
}


def report(lines: Sequence[Line], about: dict[str, str], sizes: Any, rounds: int) -> str:
    """Figures, ratios beside what they have to be, and all that they depend on."""
    infos = infos_of(lines)
    parts = [_head(about, sizes, rounds), *_figures(lines, infos), "", *_ratios(lines), "", *_settings(infos)]
    parts += _failures(lines)
    return "\n".join(parts) + "\n"


def _head(about: dict[str, str], sizes: Any, rounds: int) -> str:
    return (
        f"{about['date']}, {about['cores']} cores ({about['processor']}) for workers and server, {about['system']},"
        f" Python {about['python']}, PostgreSQL {about['server_version']}, fsync {about['fsync']}, synchronous_commit"
        f" {about['synchronous_commit']}. Medians of {rounds} rounds that take turns; handlers that do nothing; a drain"
        f" is of {sizes.drain} jobs, a long one of {sizes.backlog}, bulk of {sizes.many}; beside"
        f" {sizes.finished} finished and {sizes.future} scheduled jobs.\n"
    )


def _figures(lines: Sequence[Line], infos: dict[str, Line]) -> Iterator[str]:
    found = medians(lines)
    queues = list(infos)
    yield "| | " + " | ".join(f"{name} {infos[name]['version']}" for name in queues) + " |"
    yield "|---|" + "--:|" * len(queues)
    for measure, (words, key) in ROWS.items():
        cells = [_cell(found.get((name, measure)), key) for name in queues]
        if any(cells):
            yield f"| {words} | " + " | ".join(cell or "-" for cell in cells) + " |"
    costs = [found.get((name, "drain1"), {}) for name in queues]
    if any("worker_cpu" in cost for cost in costs):
        yield "| CPU for 10 000 jobs, worker / server, s | " + " | ".join(_cost(cost) for cost in costs) + " |"
    written = [str(_log_lines(lines, name)) for name in queues]
    yield "| lines of log that the workers wrote, all rounds | " + " | ".join(written) + " |"


def _cell(found: dict[str, float] | None, key: str) -> str:
    if found is None:
        return ""
    return f"{found['p50_ms']:.1f} / {found['p99_ms']:.1f}" if key == "p50_ms" else thousands(found[key])


def _log_lines(lines: Sequence[Line], queue: str) -> int:
    return sum(line.get("log_lines", 0) for line in lines if line["queue"] == queue)


def _cost(found: dict[str, float]) -> str:
    return f"{found['worker_cpu']:.2f} / {found['server_cpu']:.2f}" if "worker_cpu" in found else "-"


def _ratios(lines: Sequence[Line]) -> Iterator[str]:
    yield "| | measured | must | aim |"
    yield "|---|--:|--:|--:|"
    for target in TARGETS:
        value = reached(target, lines)
        if value is not None:
            missed = "" if target.is_met(value) else " (missed)"
            shown = thousands(value) if value >= LARGE else f"{value:.2f}"
            yield f"| {target.words} | {shown}{missed} | {target.must:g} | {target.aim:g} |"


def _settings(infos: dict[str, Line]) -> Iterator[str]:
    for name, info in infos.items():
        yield f"- **{name}** ({info['package']} {info['version']}, {info['loop']}): {info['settings']}"


def _failures(lines: Sequence[Line]) -> list[str]:
    failed = [line for line in lines if "failed" in line]
    said = [f"- {line['queue']}, {line['measure']}, round {line['round']}: {line['failed']}" for line in failed]
    return ["", "Failed:", "", *said] if said else []


def thousands(number: float) -> str:
    """`12 345`, and `123.4` below a thousand."""
    return f"{number:,.0f}".replace(",", " ")
