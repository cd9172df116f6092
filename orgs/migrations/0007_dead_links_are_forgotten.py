from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('orgs', '0006_audit_indexes'),
    ]

    operations = [
        migrations.AlterField(
            model_name='invitation',
            name='digest',
            field=models.CharField(editable=False, help_text="Of the link's token; empty once the link is dead and swept.", max_length=64, null=True, unique=True),
        ),
    ]
