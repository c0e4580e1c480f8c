from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('episodes', '0007_postings'),
    ]

    operations = [
        migrations.AddIndex(
            model_name='episode',
            index=models.Index(fields=['purpose', 'id'], name='episode_purpose'),
        ),
    ]
