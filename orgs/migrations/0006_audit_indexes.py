from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('orgs', '0005_audit_of_operators'),
    ]

    operations = [
        migrations.AddIndex(
            model_name='auditentry',
            index=models.Index(fields=['organization_id', '-actor_id', '-at', '-id'], name='audit_by_actor'),
        ),
        migrations.AddIndex(
            model_name='auditentry',
            index=models.Index(fields=['organization_id', 'action', '-at', '-id'], name='audit_by_action'),
        ),
        migrations.AddIndex(
            model_name='auditentry',
            index=models.Index(fields=['organization_id', 'target_id', '-at', '-id'], name='audit_by_target'),
        ),
    ]
