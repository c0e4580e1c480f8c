"""The parameters of the episode list: how each is named, understood and asked for.

A value that cannot be understood is a FilterError with its own words, never a silent "all".
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.db import connection
from django.db.models import FloatField, IntegerField, Lookup, Q
from django.utils.functional import Promise
from django.utils.translation import gettext, gettext_lazy

from intraskill_web.core import labels
from intraskill_web.core.parameters import is_whole, not_one_of
from intraskill_web.episodes.behaviour_metrics import OUTCOMES_TOO, SHOWN, lookup
from intraskill_web.episodes.prepare import chunk_term, persona_term
from intraskill_web.episodes.terms import Terms
from intraskill_web.episodes.words import Words
from trainer.shop.types import REWARD_PARTS

if TYPE_CHECKING:
    AnyLookup = Lookup[Any]
else:
    AnyLookup = Lookup

CHUNK_ID = re.compile(r"[^\x00-\x1f\"\\]{1,200}")
RANGE = re.compile(r"(-?\d+(?:\.\d+)?)?(?:\.\.(-?\d+(?:\.\d+)?)?)?")
BEHAVIOUR = re.compile(r"(\w+):(.+)")
YES_NO = {"yes": gettext_lazy("yes"), "no": gettext_lazy("no")}


class FilterError(ValueError):
    """A parameter that is not understood."""


Build = Callable[[str], Q]
Mark = Callable[[str], Terms]


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of the URL: its name for people, how it filters, and its allowed values."""

    key: str
    name: str | Promise
    build: Build
    words: Mapping[str, Any] | None = None
    terms: Mark | None = None  # what the index row must have, instead of a condition on the row
    walk: Build | None = None  # the condition of a range, for which SQLite takes no index

    def show(self, value: str) -> str:
        """The value as the chip says it."""
        return value if self.words is None else str(self.words.get(value, value))

    def parse(self, value: str, *, walk: bool = False) -> Q:
        """The condition. Raises FilterError."""
        if self.words is not None and value not in self.words:
            raise FilterError(f"{self.name}: {not_one_of(value, self.words)}")
        return self.walk(value) if walk and self.walk else self.build(value)

    def mark(self, value: str) -> Terms:
        """What the index row must have. Raises FilterError."""
        return self.terms(value) if self.terms else Terms()


def _equals(field_name: str) -> Build:
    return lambda value: Q(**{field_name: value})


def _integer(field_name: str) -> Build:
    def build(value: str) -> Q:
        if not is_whole(value):
            raise FilterError(gettext("%(value)s is not a whole number") % {"value": value[:80]})
        return Q(**{field_name: int(value)})

    return build


class _Walk(AnyLookup):
    """A comparison in whose way SQLite does not look for an index."""

    prepare_rhs = False
    operator = ""

    def as_sql(self, compiler: Any, connection: Any) -> tuple[str, tuple[Any, ...]]:
        left, parameters = self.process_lhs(compiler, connection)
        return f"+{left} {self.operator} %s", (*parameters, self.rhs)


class WalkFrom(_Walk):
    """``reward__walk_gte=0.5``."""

    lookup_name, operator = "walk_gte", ">="


class WalkTo(_Walk):
    """``reward__walk_lte=0.5``."""

    lookup_name, operator = "walk_lte", "<="


for _kind in (FloatField, IntegerField):
    _kind.register_lookup(WalkFrom)
    _kind.register_lookup(WalkTo)


def _range(field_name: str, walk: str = "") -> Build:
    """``a``, ``a..b``, ``a..`` or ``..b``, ends included."""

    def build(value: str) -> Q:
        match = RANGE.fullmatch(value)
        if not value or match is None:
            raise FilterError(
                gettext("%(value)s is not a range such as 0..0.5") % {"value": value[:80]}
            )
        if ".." not in value:
            return Q(**{field_name: float(value)})
        condition = Q()
        if match.group(1):
            condition &= Q(**{f"{field_name}__{walk}gte": float(match.group(1))})
        if match.group(2):
            condition &= Q(**{f"{field_name}__{walk}lte": float(match.group(2))})
        return condition

    return build


def _at_least(field_name: str, walk: str = "") -> Build:
    """A plain number means that many or more; a range means what it says."""
    exact = _range(field_name, walk)
    return lambda value: exact(f"{value}.." if value.isdigit() else value)


def _ranged(
    key: str, name: str | Promise, field_name: str, build: Callable[..., Build] = _range
) -> Parameter:
    """A parameter of a column that has an index, which a range may take or leave."""
    return Parameter(key, name, build(field_name), walk=build(field_name, "walk_"))


def _no_condition(value: str) -> Q:
    return Q()


def _words(value: str) -> Terms:
    return Words.of(value).terms()


def _yes(condition: Q) -> Build:
    return lambda value: condition if value == "yes" else ~condition


def _chunk_id(value: str) -> str:
    if not CHUNK_ID.fullmatch(value):
        raise FilterError(gettext("%(value)s is not a chunk id") % {"value": value[:80]})
    return value


def _with_chunk(value: str) -> Terms:
    return Terms(marks=(chunk_term(_chunk_id(value)),))


def _without_chunk(value: str) -> Q:
    # The list of ids is stored as JSON text: the quoted id is in it or not.
    quoted = json.dumps(_chunk_id(value), ensure_ascii=connection.vendor == "sqlite")
    return ~Q(skill_text__contains=quoted)


def _behaviour(value: str) -> Q:
    """``searches:2..4``: a behaviour metric in a range, success and reward among them."""
    match = BEHAVIOUR.fullmatch(value)
    if match is not None and match[1] in OUTCOMES_TOO:
        return Q(scored=True) & _range(match[1])(match[2])
    if match is None or match[1] not in SHOWN:
        raise FilterError(gettext("%(value)s is not like searches:2..4") % {"value": value[:80]})
    return _range(lookup(match[1]))(match[2])


def _persona(value: str) -> Terms:
    if "=" not in value:
        raise FilterError(gettext("%(value)s is not like brand=tarn") % {"value": value[:80]})
    return Terms(marks=(persona_term(value),))


OUTCOMES = {**labels.OUTCOMES, "turn_limit": labels.TERMINATIONS["action_limit"]}
OUTCOME_CONDITIONS = {
    **{name: Q(outcome=name) for name in labels.OUTCOMES},
    "turn_limit": Q(outcome="failure", termination="action_limit"),
}

ARMS = {arm: labels.TREATMENTS[arm] for arm in ("bare", "full", "masked", "new", "old")}
_ = gettext_lazy
_LIST = [
    Parameter("experiment", _("experiment"), _equals("experiment__name")),
    Parameter("round", _("round"), _integer("round__number")),
    Parameter("purpose", _("purpose"), _equals("purpose"), labels.PURPOSES),
    Parameter("arm", _("arm"), _equals("arm"), ARMS),
    Parameter("step", _("step"), _integer("step")),
    Parameter("group", _("group"), _integer("group_index")),
    Parameter("task", _("task"), _integer("task_id")),
    Parameter("split", _("split"), _equals("split"), labels.SPLITS),
    Parameter("treatment", _("treatment"), _equals("treatment_mode"), labels.TREATMENTS),
    Parameter("chunk", _("with chunk"), _no_condition, terms=_with_chunk),
    Parameter("without", _("without chunk"), _without_chunk),
    Parameter("outcome", _("outcome"), lambda value: OUTCOME_CONDITIONS[value], OUTCOMES),
    Parameter("termination", _("ended by"), _equals("termination"), labels.TERMINATIONS),
    Parameter("triage", _("triage"), _equals("triage"), labels.TRIAGE),
    _ranged("reward", _("reward"), "reward"),
    *(Parameter(part, part, _range(part)) for part in REWARD_PARTS),
    Parameter("advantage", _("advantage"), _range("advantage")),
    _ranged("turns", _("turns"), "turns"),
    _ranged("tokens", _("tokens"), "tokens"),
    _ranged("errors", _("protocol errors"), "protocol_errors", _at_least),
    _ranged("invalid", _("invalid actions"), "invalid_actions", _at_least),
    Parameter("behaviour", _("behaviour"), _behaviour),
    Parameter("category", _("category"), _equals("category")),
    Parameter("persona", _("persona"), _no_condition, terms=_persona),
    Parameter("checkpoint", _("checkpoint"), _equals("checkpoint")),
    Parameter("admitted", _("admitted"), _yes(Q(admitted=True)), YES_NO),
    Parameter("scored", _("scored"), _yes(Q(scored=True)), YES_NO),
    Parameter("q", _("text"), _no_condition, terms=_words),
]
PARAMETERS = {parameter.key: parameter for parameter in _LIST}
