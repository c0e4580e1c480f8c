"""Addresses of filtered episode lists: where every number that counts episodes leads."""

from __future__ import annotations

from functools import cache
from typing import Any
from urllib.parse import urlencode

from django.urls import get_script_prefix, reverse


def episodes_url(**filters: Any) -> str:
    """The episode list with these filters; empty ones are left out, their order is kept."""
    known = {key: value for key, value in filters.items() if value not in (None, "")}
    query = urlencode(known, doseq=True)
    return _list_path(get_script_prefix()) + (f"?{query}" if query else "")


@cache
def _list_path(_prefix: str) -> str:
    """A page of a long experiment asks for it hundreds of times."""
    return reverse("episodes:list")
