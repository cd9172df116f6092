"""The database refuses to change or remove a line of the audit log."""

from django.db import migrations

APPEND_ONLY = """
CREATE FUNCTION orgs_refuse_audit_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'the audit log is append-only (entry %)', OLD.id
        USING ERRCODE = 'integrity_constraint_violation';
END $$;
CREATE TRIGGER audit_is_append_only BEFORE UPDATE OR DELETE ON orgs_auditentry
    FOR EACH ROW EXECUTE FUNCTION orgs_refuse_audit_change();
"""

DROP = """
DROP TRIGGER audit_is_append_only ON orgs_auditentry;
DROP FUNCTION orgs_refuse_audit_change();
"""


class Migration(migrations.Migration):
    dependencies = [("orgs", "0002_members_keys_audit")]

    operations = [migrations.RunSQL(APPEND_ONLY, DROP)]
