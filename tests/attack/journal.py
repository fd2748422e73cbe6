"""A journal of every committed change of a job, kept by triggers: what an attacker's violations are read from.

Triggers roll back with their transaction, so the journal has exactly what happened. It costs an INSERT a change: for
runs of some hundred thousand jobs, not for measurements.
"""

from __future__ import annotations

import sqlalchemy as sa
from evidence import JOURNAL

FUNCTION = """
CREATE FUNCTION journal_a_job() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = public AS $$
DECLARE
    it record := CASE TG_OP WHEN 'DELETE' THEN OLD ELSE NEW END;
BEGIN
    INSERT INTO journal (relation, op, job_id, attempt, worker_id, expires_at)
    VALUES (TG_TABLE_NAME, TG_OP, it.id, it.attempt, it.worker_id, (to_jsonb(it) ->> 'expires_at')::timestamptz);
    RETURN NULL;
END $$;
CREATE TRIGGER journal AFTER INSERT OR UPDATE OR DELETE ON jobq.jobs
    FOR EACH ROW EXECUTE FUNCTION journal_a_job();
CREATE TRIGGER journal AFTER INSERT OR UPDATE OR DELETE ON jobq.finished_jobs
    FOR EACH ROW EXECUTE FUNCTION journal_a_job();
"""


def keep_journal(connection: sa.Connection) -> None:
    """From here on, in the schema `jobq` of a database of the test's own."""
    JOURNAL.create(connection)
    connection.exec_driver_sql(FUNCTION)
