"""SGLang's real parsers where the package is installed, else small ones of the same formats.

Importing ``sglang`` itself wants a GPU stack; a bare module object with the package's path lets its
parser modules be imported alone.
"""

from __future__ import annotations

import importlib.util
import json
import re
import sys
from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import Any

import pytest

from trainer.engines.slime import parsing

_CALL = re.compile(r"<tool_call>\s*<function=([^>]+)>(.*?)</function>\s*</tool_call>", re.DOTALL)
_PARAMETER = re.compile(r"<parameter=([^>]+)>\n?(.*?)\n?</parameter>", re.DOTALL)


def has_sglang() -> bool:
    """Whether SGLang's parsers can be used here."""
    return importlib.util.find_spec("sglang") is not None if "sglang" not in sys.modules else True


def install(monkeypatch: pytest.MonkeyPatch) -> str:
    """Make parsing work; returns which parsers are used."""
    if has_sglang():
        bypass(monkeypatch)
        return "sglang"
    monkeypatch.setattr(parsing, "split_reasoning", _split)
    monkeypatch.setattr(parsing, "find_calls", _calls)
    return "double"


def bypass(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let SGLang's parser modules be imported without the rest of it."""
    if "sglang" in sys.modules:
        return
    spec = importlib.util.find_spec("sglang")
    assert spec is not None
    module = ModuleType("sglang")
    module.__path__ = list(spec.submodule_search_locations or [])
    monkeypatch.setitem(sys.modules, "sglang", module)


def _split(raw: str, parser: str) -> tuple[str, str]:
    if "</think>" in raw:
        reasoning, _, body = raw.partition("</think>")
        return reasoning.removeprefix("<think>"), body
    return ("", raw) if "<think>" not in raw else (raw.partition("<think>")[2], "")


def _calls(
    body: str, tools: Sequence[Mapping[str, Any]], parser: str
) -> tuple[str, list[tuple[str, str]], str | None]:
    calls = [
        (match[1], json.dumps(dict(_PARAMETER.findall(match[2])), ensure_ascii=False))
        for match in _CALL.finditer(body)
    ]
    return _CALL.sub("", body), calls, None
