"""The shop as an HTTP service with the published wire protocol (environment.md §5).

Needs aiohttp; nothing else of the trainer does.
"""
