"""The monitoring panels of a round: what the page draws, its table twin, and where its numbers
lead.
"""
