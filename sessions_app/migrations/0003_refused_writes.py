"""A counter of refused writes that outlives the rollback of the transaction that was refused."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("sessions_app", "0002_log_rules")]

    operations = [
        migrations.RunSQL(
            "CREATE SEQUENCE sessions_app_refused_writes",
            "DROP SEQUENCE sessions_app_refused_writes",
        )
    ]
