"""The protocol's rules: what is as in jobq, what a twin breaks, and how far a search goes."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Rules:
    """As jobq is. A twin has one of these broken; each line says where the rule stands."""

    # the fence: `held()` and `still_mine()` in jobq/statements/fence.py
    fence_on_attempt: bool = True
    fence_on_worker: bool = True
    fence_on_some_worker: bool = True  # what is left without the worker's id: that the job runs
    # jobq/statements/claim.py
    claim_of_due_jobs_only: bool = True
    attempt_grows: bool = True
    claim_locks_the_workers_row: bool = True
    # jobq/statements/lease.py, jobq/store/rescuing.py
    rescue_in_statements: bool = True
    rescue_buries_the_spent: bool = True
    rescue_skips_locked: bool = True
    rescue_looks_again: bool = True
    looks_again_by_time: bool = True
    # jobq/store/leasing.py, jobq/worker/claims.py, jobq/worker/membership.py
    reconciles: bool = True
    reconciles_again: bool = True
    reconciles_by_attempt: bool = True  # False: it knows what is held by the ids alone
    leaves_nothing_while_unsure: bool = True  # until it has reconciled again, all that carries its id
    handlers_stop: bool = True  # a lease after it was lost no handler of it runs any more
    # jobq/statements/finish.py: the end is written after the work's commit, and is one statement
    end_after_work: bool = True
    # jobq/statements/admin.py
    retry_keeps_attempt: bool = True
    # a server with synchronous_commit = off: a crash may take back the last claim or end
    relaxed: bool = False
    unsure_after_a_crash: bool = True  # each worker reconciles once its connections were lost
    new_id_after_a_crash: bool = False
    # bounds; `claims` of a job count where attempts may come twice, else there is no end to them
    max_attempts: int = 2
    claims: int = 3
    holds: int = 2

    @property
    def attempts_only_grow(self) -> bool:
        """So that a number that was given out does not come again."""
        return self.attempt_grows and self.retry_keeps_attempt and not self.relaxed
