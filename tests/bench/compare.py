"""jobq side by side with other queues on PostgreSQL: one machine, one server, one run, in rounds that take turns.

    python tests/bench/compare.py                    as `nox -s bench` does, for the table and the chart of the README
    python tests/bench/compare.py --queues raw,pgqueuer --measures drain1 --rounds 3
    python tests/bench/compare.py --dsn postgresql://... --no-install

jobq is that of the Python which runs this, with the extras embedded and prometheus, and with uvloop: each queue that
can has it. Each other queue is installed with pip into an environment of its own, under --venvs; what cannot be
installed is left out, and said. The database is a fresh one on the embedded server; one given with --dsn is emptied by
every measure.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from comparing.chart import chart
from comparing.environments import installed
from comparing.measures import MEASURES, Bench, Sizes
from comparing.server import database, facts
from comparing.steps import Queue, StepFailed
from comparing.table import report

from jobq_cli.bench import probe

USUAL_QUEUES = "jobq,raw,pgqueuer"
USUAL_ROUNDS = 5


def run(queues: list[Queue], bench: Bench, measures: list[str], rounds: int, out: Path) -> list[dict[str, Any]]:
    """Every measure of every queue in each round; a queue that fails at one is reported, the others go on."""
    infos = {queue.name: queue.call("info") for queue in queues}
    lines: list[dict[str, Any]] = [{"queue": name, "measure": "info", **info} for name, info in infos.items()]
    for round_ in range(1, rounds + 1):
        for measure in measures:
            for queue in queues:
                line = {"queue": queue.name, "measure": measure, "round": round_}
                try:
                    line |= bench.measure(queue, measure, infos[queue.name])
                except StepFailed as failure:
                    line["failed"] = str(failure)
                lines.append(line)
                print(json.dumps(line), flush=True)
                with open(out / "compare.jsonl", "a") as file:
                    file.write(json.dumps(line) + "\n")
    return lines


def main() -> None:
    options = _options()
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "compare.jsonl").write_text("")
    sizes = Sizes(**{each.name: getattr(options, each.name) for each in fields(Sizes)})
    measures = options.measures.split(",")
    path = probe.create()
    with database(options.dsn) as dsn:
        pythons = installed(options.queues.split(","), options.venvs, install=not options.no_install)
        queues = [Queue(name, python, dsn, path) for name, python in pythons.items()]
        bench = Bench(dsn, sizes)
        try:
            lines = run(queues, bench, measures, options.rounds, options.out)
        finally:
            Path(path).unlink()
        about = facts(bench.connection)
    told = report(lines, about, sizes, options.rounds)
    (options.out / "compare.md").write_text(told)
    (options.out / "compare.svg").write_text(chart(lines, about, options.rounds))
    print(told)


def _options() -> Any:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--queues", default=USUAL_QUEUES)
    parser.add_argument("--measures", default=",".join(MEASURES), help=f"of {', '.join(MEASURES)}")
    parser.add_argument("--rounds", type=int, default=USUAL_ROUNDS)
    parser.add_argument("--dsn", help="a database that may be emptied; by default one on the embedded server")
    parser.add_argument("--venvs", type=Path, default=Path(".bench") / "venvs")
    parser.add_argument("--no-install", action="store_true", help="only what is installed there already")
    parser.add_argument("--out", type=Path, default=Path(".bench"))
    for each in fields(Sizes):
        kind = float if each.name in ("interval", "settle") else int
        parser.add_argument(f"--{each.name}", type=kind, default=each.default)
    return parser.parse_args()


if __name__ == "__main__":
    main()
