"""Two arms on the same tasks: what is the difference, and is it more than luck?

``outcomes`` reads task values from run folders or from one file · ``bootstrap`` resampling
intervals, the published convention among them · ``paired`` tests and intervals for paired data ·
``report`` puts them into one document.
"""
