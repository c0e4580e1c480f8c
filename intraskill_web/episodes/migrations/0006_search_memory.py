from django.db import migrations

# FTS5 writes a segment whenever the terms it holds in memory reach this many bytes, one megabyte
# unless told: several times a batch of episodes, and all of them are merged again later.
BYTES = 2**24


def set_memory(apps, schema_editor):
    if schema_editor.connection.vendor == "sqlite":
        schema_editor.execute(
            f"INSERT INTO episodes_search(episodes_search, rank) VALUES ('hashsize', {BYTES})"
        )


class Migration(migrations.Migration):

    dependencies = [
        ('episodes', '0005_behaviour'),
    ]

    operations = [
        migrations.RunPython(set_memory, migrations.RunPython.noop),
    ]
