"""One module a stage: what it needs, the commands it runs, what they yield, the rows it publishes.

Everything except ``publish`` is pure; ``publish`` runs inside the transaction that ends the stage
and may run again with the same result.
"""
