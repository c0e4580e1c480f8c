"""The checklist before a round: what was looked at, with numbers, and how to mend what is red.

``trainer.preflight`` knows what to check; it runs as a process of its own, because it loads a whole
catalogue. ``machine`` adds what this installation can see at once. A round does not start while a
red item stands.
"""
