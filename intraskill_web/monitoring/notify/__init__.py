"""Sending signals: by e-mail and by signed webhook, once an onset, not in quiet hours.

``outbox`` decides what is due and remembers what became of it; ``message`` words it; ``send``
speaks SMTP and HTTP; ``quiet`` and ``signature`` are pure.
"""
