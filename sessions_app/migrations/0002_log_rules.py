"""What the database itself enforces of the log: append only, contiguous from 1, up to the head."""

from django.db import migrations

APPEND_ONLY = """
CREATE FUNCTION sessions_app_refuse_event_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    -- The one audited door: the purge of the session that this transaction names.
    IF current_setting('sederunt.purge', true) = OLD.session_id::text THEN
        RETURN CASE TG_OP WHEN 'DELETE' THEN OLD ELSE NEW END;
    END IF;
    RAISE EXCEPTION 'events are append-only (session %, seq %)', OLD.session_id, OLD.seq
        USING ERRCODE = 'integrity_constraint_violation';
END $$;
CREATE TRIGGER events_are_append_only BEFORE UPDATE OR DELETE ON sessions_app_event
    FOR EACH ROW EXECUTE FUNCTION sessions_app_refuse_event_change();
"""

CONTIGUOUS = """
CREATE FUNCTION sessions_app_check_numbering() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE broken uuid;
BEGIN
    SELECT run.session_id INTO broken
    FROM (
        SELECT session_id, min(seq) AS first, max(seq) AS last, count(*) AS length
        FROM fresh GROUP BY session_id
    ) AS run
    LEFT JOIN sessions_app_session AS session ON session.id = run.session_id
    WHERE session.id IS NULL
       OR run.last - run.first + 1 <> run.length
       OR run.last <> session.head_seq
       OR run.first < 1
       OR (run.first > 1 AND NOT EXISTS (
            SELECT 1 FROM sessions_app_event AS event
            WHERE event.session_id = run.session_id AND event.seq = run.first - 1))
    LIMIT 1;
    IF broken IS NOT NULL THEN
        RAISE EXCEPTION 'the log of session % would have a gap', broken
            USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER event_numbers_are_contiguous AFTER INSERT ON sessions_app_event
    REFERENCING NEW TABLE AS fresh FOR EACH STATEMENT
    EXECUTE FUNCTION sessions_app_check_numbering();
"""

DROP = """
DROP TRIGGER event_numbers_are_contiguous ON sessions_app_event;
DROP FUNCTION sessions_app_check_numbering();
DROP TRIGGER events_are_append_only ON sessions_app_event;
DROP FUNCTION sessions_app_refuse_event_change();
"""


class Migration(migrations.Migration):
    dependencies = [("sessions_app", "0001_initial")]

    operations = [migrations.RunSQL(APPEND_ONLY + CONTIGUOUS, DROP)]
