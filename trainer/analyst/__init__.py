"""From failed groups to proposed texts."""
