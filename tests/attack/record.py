"""What happens to jobs, written down by triggers of the tests' own: this was done, whatever a worker believes."""

from __future__ import annotations

RECORD = """
CREATE TABLE audit (n bigint GENERATED ALWAYS AS IDENTITY, job_id bigint NOT NULL, what text NOT NULL, attempt int,
                    worker_id bigint, failures int, run_at timestamptz, at timestamptz DEFAULT clock_timestamp());
CREATE TABLE members (worker_id bigint PRIMARY KEY, pid int, name text, lease interval,
                      at timestamptz DEFAULT clock_timestamp());
CREATE TABLE runs (n bigint GENERATED ALWAYS AS IDENTITY, job_id bigint NOT NULL, attempt int NOT NULL,
                   pid int NOT NULL, what text NOT NULL, clock double precision,
                   at timestamptz DEFAULT clock_timestamp());
CREATE INDEX ON runs (job_id);
CREATE TABLE faults (pid int NOT NULL, what text NOT NULL, at timestamptz DEFAULT clock_timestamp(),
                     until timestamptz);
CREATE TABLE promised (job_id bigint PRIMARY KEY, run_at timestamptz NOT NULL, unique_key text);
CREATE TABLE books (job_id bigint NOT NULL, attempt int NOT NULL);
CREATE INDEX ON books (job_id);

CREATE FUNCTION note_job() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  before record := CASE TG_OP WHEN 'INSERT' THEN NEW ELSE OLD END;
  after record := CASE TG_OP WHEN 'DELETE' THEN OLD ELSE NEW END;
  what text := TG_ARGV[0];
BEGIN
  IF TG_OP = 'UPDATE' THEN
    what := CASE WHEN OLD.worker_id IS NULL THEN 'claimed' WHEN NEW.worker_id IS NOT NULL THEN 'stolen'
                 WHEN NEW.failures > OLD.failures AND NEW.errors->-1->>'error' = 'WorkerLost' THEN 'rescued'
                 ELSE 'released' END;
    IF what = 'claimed' AND starts_with(NEW.queue, 'hold') THEN
      PERFORM pg_advisory_xact_lock_shared(hashtext(NEW.queue));
    END IF;
  END IF;
  INSERT INTO public.audit (job_id, what, attempt, worker_id, failures, run_at)
  VALUES (after.id, what, CASE WHEN what = 'claimed' THEN after.attempt ELSE before.attempt END,
          coalesce(before.worker_id, after.worker_id), after.failures, after.run_at);
  RETURN NULL;
END $$;
CREATE FUNCTION note_worker() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO public.members (worker_id, pid, name, lease) VALUES (NEW.id, NEW.pid, NEW.name, NEW.lease);
  RETURN NULL;
END $$;

CREATE TRIGGER audit AFTER UPDATE ON jobq.jobs FOR EACH ROW WHEN (OLD.worker_id IS DISTINCT FROM NEW.worker_id)
  EXECUTE FUNCTION note_job();
CREATE TRIGGER audit_end AFTER DELETE ON jobq.jobs FOR EACH ROW EXECUTE FUNCTION note_job('ended');
CREATE TRIGGER audit AFTER INSERT ON jobq.finished_jobs FOR EACH ROW EXECUTE FUNCTION note_job('finished');
CREATE TRIGGER audit AFTER INSERT ON jobq.workers FOR EACH ROW EXECUTE FUNCTION note_worker();
"""
NOTE = "INSERT INTO runs (job_id, attempt, pid, what, clock) VALUES (%s, %s, %s, %s, %s)"
