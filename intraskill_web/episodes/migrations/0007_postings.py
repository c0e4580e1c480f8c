from django.db import migrations, models

# PostgreSQL: the terms of 512 episodes in a row as bits, from the tsvector of each (postings.py).
POSTGRESQL = (
    "ALTER TABLE episodes_search RENAME TO episodes_search_old",
    "CREATE TABLE episodes_search (term text COLLATE \"C\" NOT NULL, segment integer NOT NULL,"
    " bits bit(512) NOT NULL, PRIMARY KEY (term, segment))",
    """
    INSERT INTO episodes_search
    SELECT term, (rowid >> 9)::integer, bit_or(set_bit(0::bit(512), 511 - (rowid & 511)::integer, 1))
    FROM (SELECT rowid, unnest(tsvector_to_array(episodes_search)) AS term FROM episodes_search_old)
    AS old GROUP BY 1, 2
    """,
    "DROP TABLE episodes_search_old",
)


def make_postings(apps, schema_editor):
    if schema_editor.connection.vendor == "postgresql":
        for statement in POSTGRESQL:
            schema_editor.execute(statement)


class Migration(migrations.Migration):

    dependencies = [
        ('episodes', '0006_search_memory'),
    ]

    operations = [
        migrations.AddIndex(
            model_name='episode',
            index=models.Index(fields=['outcome', 'reward', 'id'], name='episode_outcome_reward'),
        ),
        migrations.RunPython(make_postings),
    ]
