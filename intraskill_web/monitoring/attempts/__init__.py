"""An attempt's page: its log (read, searched), why it ended, and what it ran in."""
