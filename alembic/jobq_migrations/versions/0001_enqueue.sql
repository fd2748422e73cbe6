-- Enqueue for triggers, psql and programs in other languages, by the rules of the function of that name in Python.
-- The id is that of the new job, or of the open job that holds the unique key. What is left out is as the handler
-- says, whose settings workers publish in `kinds`; before any worker has: queue "default", priority 1, no key.
CREATE FUNCTION jobq.enqueue(
    kind text,
    args jsonb DEFAULT '{}',
    queue text DEFAULT NULL,
    run_at timestamptz DEFAULT NULL,
    priority int DEFAULT NULL,
    unique_key text DEFAULT NULL
) RETURNS bigint
LANGUAGE plpgsql VOLATILE SECURITY INVOKER
SET search_path = pg_catalog, pg_temp
AS $enqueue$
#variable_conflict use_column
DECLARE
    channel CONSTANT text = 'jobq';
    name_rule CONSTANT text = '^[A-Za-z0-9_.:/-]{1,63}$';
    most_tries CONSTANT int = 10;  -- of a hot key every fourth call meets a holder that comes or goes meanwhile
    handler record;
    wrong text[];
    key text = enqueue.unique_key;
    stack text;
    callsite text;
    job record;
BEGIN
    -- What is wrong, and what to do about it. The args stand in no message: they may be secret.
    wrong = CASE
        WHEN (enqueue.kind ~ name_rule) IS NOT TRUE THEN ARRAY[
            concat('kind ', quote_nullable(left(enqueue.kind, 80)), ' is no name of a kind'),
            '1 to 63 of the letters A to Z and a to z, digits, _ . - : /']
        WHEN (enqueue.queue ~ name_rule) IS FALSE THEN ARRAY[
            concat('queue ', quote_literal(left(enqueue.queue, 80)), ' is no name of a queue'),
            '1 to 63 of the letters A to Z and a to z, digits, _ . - : /']
        WHEN (jsonb_typeof(enqueue.args) = 'object') IS NOT TRUE THEN ARRAY[
            concat('args must be a JSON object, not ', coalesce(jsonb_typeof(enqueue.args), 'NULL')),
            'its members are the arguments of the handler by their names, jsonb_build_object(''order_id'', 7)']
        WHEN octet_length(CAST(enqueue.args AS text)) > 1048576 THEN ARRAY[
            'args have more than 1,048,576 bytes', 'store the data, pass its key']
        WHEN (enqueue.priority BETWEEN 0 AND 3) IS FALSE THEN ARRAY[
            concat('priority ', enqueue.priority, ' is not from 0 to 3'), 'smaller runs first']
        WHEN enqueue.run_at >= timestamptz '9000-01-01 00:00:00+00' THEN ARRAY[
            'run_at must be before the year 9000', 'NULL for now']
        WHEN (octet_length(enqueue.unique_key) BETWEEN 1 AND 200) IS FALSE THEN ARRAY[
            concat('unique_key has ', octet_length(enqueue.unique_key), ' bytes'), '1 to 200; NULL for no key']
    END;
    IF wrong IS NOT NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value', MESSAGE = concat('enqueue: ', wrong[1]), HINT = wrong[2];
    END IF;

    SELECT k.queue, k.priority, k.max_attempts, k.unique_names INTO handler
    FROM jobq.kinds AS k WHERE k.kind = enqueue.kind;

    IF key IS NULL AND handler.unique_names IS NOT NULL THEN
        -- From jsonb's own text, as statements/unique.py has it: equal for equal content, whoever enqueues.
        key = concat(enqueue.kind, ':', encode(sha256(convert_to(CAST(
            CASE WHEN handler.unique_names = '' THEN enqueue.args ELSE coalesce(
                (SELECT jsonb_object_agg(pair.key, pair.value) FROM jsonb_each(enqueue.args) AS pair
                 WHERE pair.key = ANY (string_to_array(handler.unique_names, ','))), '{}')
            END AS text), 'UTF8')), 'hex'));
    END IF;

    -- The function that calls this one, a trigger's, with its line; none for a statement of a client.
    GET DIAGNOSTICS stack = PG_CONTEXT;
    callsite = left((regexp_match(stack, '\n(PL/pgSQL|SQL) function ([^\n]+)'))[2], 200);

    FOR try IN 1 .. most_tries LOOP
        INSERT INTO jobq.jobs AS j (queue, kind, args, priority, run_at, max_attempts, unique_key, callsite)
        VALUES (
            coalesce(enqueue.queue, handler.queue, 'default'), enqueue.kind, enqueue.args,
            coalesce(enqueue.priority, handler.priority, 1), greatest(now(), enqueue.run_at), handler.max_attempts,
            key, callsite
        )
        ON CONFLICT (unique_key) WHERE unique_key IS NOT NULL DO NOTHING
        RETURNING j.id, j.queue, j.priority, j.run_at INTO job;
        IF FOUND THEN
            -- The setting's name is put together here for the sake of what reads this text for names of tables.
            IF job.run_at <= now() AND current_setting(concat('jobq', '.notify'), true) IS DISTINCT FROM 'off' THEN
                PERFORM pg_notify(channel, concat_ws('|', job.queue, job.priority, extract(epoch FROM job.run_at)));
            END IF;
            RETURN job.id;
        END IF;
        SELECT j.id INTO job FROM jobq.jobs AS j WHERE j.unique_key = key;
        IF FOUND THEN
            RETURN job.id;
        END IF;
    END LOOP;
    RAISE EXCEPTION USING ERRCODE = 'unique_violation',
        MESSAGE = concat('enqueue: unique key ', quote_literal(key), ' was taken and freed again during each of ',
            most_tries, ' tries'),
        HINT = 'enqueue once more';
END
$enqueue$
