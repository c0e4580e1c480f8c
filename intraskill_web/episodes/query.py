"""Words and ``key:value`` filters typed in one line ↔ the parameters of the episode list."""

from __future__ import annotations

from django.http import QueryDict

from intraskill_web.episodes.parameters import PARAMETERS
from intraskill_web.episodes.words import WORD


def parse_query(text: str) -> QueryDict:
    """The parameters of a line such as ``outcome:failure round:0 "vintage bottle"``."""
    query = QueryDict(mutable=True)
    words = []
    for quoted, word in WORD.findall(text):
        key, colon, value = word.partition(":")
        if colon and value and key in PARAMETERS and key != "q":
            query[key] = value
        else:
            words.append(f'"{quoted}"' if quoted else word)
    if words:
        query["q"] = " ".join(words)
    return query


def typed_filters(query: QueryDict) -> QueryDict | None:
    """The query with filters that were typed among the words of ``q``; None without any."""
    typed = parse_query(query.get("q", ""))
    if not set(typed) - {"q"}:
        return None
    whole = query.copy()
    whole.pop("q", None)
    for key in typed:
        whole[key] = str(typed[key])
    return whole
