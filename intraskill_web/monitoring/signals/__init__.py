"""Signals: rules over a round's numbers, their words, the strip of the round page, and the inbox.

``evaluate`` opens and closes inbox rows; ``strip`` shows what holds now.
"""
