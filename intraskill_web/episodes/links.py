"""Addresses of filtered episode lists: where every number that counts episodes leads."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from django.urls import reverse


def episodes_url(**filters: Any) -> str:
    """The episode list with these filters; empty ones are left out, their order is kept."""
    known = {key: value for key, value in filters.items() if value not in (None, "")}
    query = urlencode(known, doseq=True)
    return reverse("episodes:list") + (f"?{query}" if query else "")
