"""The guarantees of DESIGN.md as SQL over the record of record.py: each statement finds what should not be there."""

from __future__ import annotations

from board import Board
from crowds import crowds
from named import named

from jobq.testing import History, check_history

# A pid comes again within an hour of kills: what was done to one before a worker came was done to another process.
# What a busy machine may take on top of lease and rescue interval.
LATE = "m.lease + greatest(interval '0.5 s', least(m.lease / 6, interval '10 s')) + interval '3 s'"
G1 = """-- enqueued by a transaction that committed, and nowhere
SELECT job_id FROM promised EXCEPT SELECT id FROM jobq.all_jobs
"""
G3 = """-- more than one outcome of a claim
SELECT job_id, attempt FROM audit WHERE what IN ('released', 'rescued', 'ended') AND worker_id IS NOT NULL
 GROUP BY 1, 2 HAVING count(*) > 1
UNION ALL -- more than one end of a job
SELECT job_id, max(attempt) FROM audit WHERE what = 'finished' GROUP BY 1 HAVING count(*) > 1
UNION ALL -- taken from its worker by another claim
SELECT job_id, attempt FROM audit WHERE what = 'stolen'
UNION ALL -- open and ended
SELECT id, attempt FROM jobq.jobs JOIN jobq.finished_jobs USING (id, attempt)
"""
G4 = """-- ended in other words than those of the attempt that it is in, which handlers return
SELECT id, attempt, outcome FROM jobq.finished_jobs WHERE state = 'done' AND outcome <> 'ok: ' || attempt
"""
# An attempt begins with its claim: the process may stand still before its handler has begun. The last beat before a
# freeze may be a sixth of the lease old, and late on a busy machine: so half a lease without one can be too long.
G5 = """-- begun while the one before went on in a process that lived, and was awake in all of that time
SELECT a.job_id, a.attempt, b.attempt AS next
  FROM runs a JOIN runs b ON b.job_id = a.job_id AND b.attempt > a.attempt AND b.what = 'began'
  LEFT JOIN audit c ON c.job_id = a.job_id AND c.attempt = a.attempt AND c.what = 'claimed'
  LEFT JOIN members m USING (worker_id)
 WHERE a.what = 'began'
   AND NOT EXISTS (SELECT FROM runs o WHERE o.job_id = a.job_id AND o.attempt = a.attempt AND o.what <> 'began'
                      AND o.at <= b.at)
   AND NOT EXISTS (SELECT FROM faults f WHERE f.pid = a.pid AND f.what = 'killed' AND f.at BETWEEN a.at AND b.at)
   AND NOT EXISTS (SELECT FROM faults f WHERE f.pid = a.pid AND f.what = 'frozen' AND f.at >= m.at
                      AND least(f.until, b.at) - greatest(f.at, c.at) > m.lease / 2)
"""
G6 = """-- claimed, or begun for the first time, before it was due
SELECT job_id, attempt, run_at, at FROM audit WHERE what = 'claimed' AND run_at > at
UNION ALL
SELECT r.job_id, r.attempt, p.run_at, r.at FROM runs r JOIN promised p USING (job_id) WHERE r.at < p.run_at
"""
G7 = """-- failed more often than allowed, or dead too soon, or without all of its errors
SELECT id, failures, max_attempts, state FROM jobq.all_jobs
 WHERE failures > max_attempts OR (failures >= max_attempts AND state <> 'dead')
    OR (state = 'dead' AND failures < max_attempts)
    OR jsonb_array_length(errors) <> least(failures, 25)
"""
G11 = f"""-- held for too long by one that was killed, or stood still
SELECT c.job_id, c.attempt, least(x.at, f.until) - f.at AS took
  FROM faults f JOIN members m ON m.pid = f.pid AND f.at >= m.at
  JOIN audit c ON c.worker_id = m.worker_id AND c.what = 'claimed'
  LEFT JOIN audit x ON x.worker_id = c.worker_id AND x.job_id = c.job_id AND x.attempt = c.attempt
                   AND x.what IN ('released', 'rescued', 'ended')
 WHERE least(coalesce(x.at, clock_timestamp()), f.until) > greatest(f.at, c.at) + {LATE}
UNION ALL -- or for ever
SELECT j.id, j.attempt, clock_timestamp() - f.at FROM jobq.jobs j JOIN members m USING (worker_id)
  JOIN faults f ON f.pid = m.pid AND f.at >= m.at WHERE clock_timestamp() > f.at + {LATE} AND f.until IS NULL
"""  # noqa: S608
G13 = """-- ended without its work, or with that of another attempt, or twice; or work without an end
SELECT f.id, f.attempt FROM jobq.finished_jobs f
 WHERE f.kind LIKE '%book' AND f.state = 'done' AND (SELECT array_agg(b.attempt) FROM books b WHERE b.job_id = f.id)
       IS DISTINCT FROM ARRAY[f.attempt]
UNION ALL
SELECT job_id, attempt FROM books b
 WHERE NOT EXISTS (SELECT FROM jobq.finished_jobs WHERE id = b.job_id AND state = 'done')
"""
CHECKS = {"G1": G1, "G3": G3, "G4": G4, "G5": G5, "G6": G6, "G7": G7, "G11": G11, "G13": G13}
DONE = "SELECT job_id FROM runs WHERE what = 'effect' UNION ALL SELECT job_id FROM books"
UNFINISHED = "SELECT id FROM jobq.all_jobs WHERE state <> 'done'"
# An attempt that got as far as its effect and was taken back costs one more.
TAKEN_BACK = "SELECT job_id, count(*) FROM audit WHERE what IN ('rescued', 'released') GROUP BY 1"


def history(board: Board) -> History[int]:
    """The record of effects against the jobs that were enqueued."""
    return check_history(
        [row[0] for row in board.rows(DONE)],
        committed=[row[0] for row in board.rows("SELECT job_id FROM promised")],
        unfinished=[row[0] for row in board.rows(UNFINISHED)],
        may_repeat={row[0]: row[1] for row in board.rows(TAKEN_BACK)},
    )


def violations(board: Board) -> list[str]:
    """What is against a guarantee, each with its number and the first rows that show it."""
    found = {name: board.rows(text) for name, text in CHECKS.items()}
    said = [f"{name}: {len(rows)} times, {[tuple(row) for row in rows[:5]]}" for name, rows in found.items() if rows]
    whole = history(board)
    return [*said, *crowds(board), *named(board), *([] if whole.ok else [f"G1: {whole}"])]
