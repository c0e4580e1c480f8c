"""Runs from elsewhere → rows: the published layout, or a run folder of our own.

A run is first copied under the home folder, so that it depends on nothing outside, and then read
into the rows that a run of our own would have. Importing again changes nothing. What a folder does
not hold is said, never made up. Strings in the files that look like paths are labels: they are part
of hashed texts and are never opened.
"""
