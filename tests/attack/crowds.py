"""G8 and G9 by the record: what began while as many others as may be of its queue, or its unique key, went on."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple

from board import Board

# Runs in the order of their beginnings. Until when one counts: its end; its process's death; or where that stood still
# past half its lease (see audited.py, G5), that moment.
RUNS = """
SELECT j.subject, j.most, r.job_id, r.attempt, r.at AS began,
       least((SELECT min(o.at) FROM runs o
               WHERE o.job_id = r.job_id AND o.attempt = r.attempt AND o.pid = r.pid AND o.what <> 'began'),
             (SELECT min(f.at) FROM faults f WHERE f.pid = r.pid AND f.what = 'killed' AND f.at >= r.at),
             (SELECT min(greatest(f.at, c.at) + m.lease / 2) FROM faults f
               WHERE f.pid = r.pid AND f.what = 'frozen' AND f.at >= m.at
                 AND coalesce(f.until, clock_timestamp()) - greatest(f.at, c.at) > m.lease / 2)) AS until
  FROM runs r JOIN ({jobs}) j ON j.id = r.job_id
  LEFT JOIN audit c ON c.job_id = r.job_id AND c.attempt = r.attempt AND c.what = 'claimed'
  LEFT JOIN members m ON m.worker_id = c.worker_id
 WHERE r.what = 'began' ORDER BY j.subject, r.at, r.n
"""
LIMITED = RUNS.format(
    jobs="SELECT j.id, j.queue AS subject, CASE WHEN q.fifo THEN 1 ELSE q.concurrency END AS most"
    " FROM jobq.all_jobs j JOIN jobq.queues q ON q.name = j.queue AND (q.fifo OR q.concurrency IS NOT NULL)"
)
# By the keys that jobs were enqueued with, whatever a worker has made of them.
KEYED = RUNS.format(
    jobs="SELECT job_id AS id, unique_key AS subject, 1 AS most FROM promised WHERE unique_key IS NOT NULL"
)
# A second one is inserted after the first one's deletion was committed, since it waits for that. Nothing excuses it.
OPEN = """
SELECT p.unique_key AS subject, 1 AS most, p.job_id, 0 AS attempt,
       min(j.at) FILTER (WHERE j.op = 'INSERT') AS began, max(j.at) FILTER (WHERE j.op = 'DELETE') AS until
  FROM promised p JOIN journal j USING (job_id) WHERE p.unique_key IS NOT NULL AND j.relation = 'jobs'
 GROUP BY p.unique_key, p.job_id ORDER BY p.unique_key, began
"""
CHECKS = {
    "G8: open while another job had their unique key": OPEN,
    "G8: began while another job of their unique key ran": KEYED,
    "G9: began beyond the limit of their queue": LIMITED,
}


class Run(NamedTuple):
    """Of a queue or a unique key, which is its subject. `until` None: nothing is known to have ended it."""

    subject: str
    most: int
    job_id: int
    attempt: int
    began: datetime
    until: datetime | None


def beyond_the_limit(runs: Iterable[Run]) -> list[Run]:
    """Those that began while as many others of their subject went on, their own right not lost before they began."""
    found: list[Run] = []
    going: list[Run] = []
    for run in runs:
        if run.until is not None and run.until < run.began:
            continue
        going = [
            each for each in going if each.subject == run.subject and (each.until is None or each.until > run.began)
        ]
        going.append(run)
        if len(going) > run.most:
            found.append(run)
    return found


def crowds(board: Board) -> list[str]:
    """The violations, each with its guarantee and the first jobs that show it."""
    found = {what: beyond_the_limit(Run(*row) for row in board.rows(text)) for what, text in CHECKS.items()}
    return [
        f"{what}, {len(runs)} times, {[(run.subject, run.job_id, run.attempt) for run in runs[:5]]}"
        for what, runs in found.items()
        if runs
    ]
