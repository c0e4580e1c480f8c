"""Metric series; signals: what opened when, who read it, where it was sent; preflights."""

from intraskill_web.monitoring.models.notify import Channel, Delivery
from intraskill_web.monitoring.models.points import MetricPoint, UpdatePoint
from intraskill_web.monitoring.models.preflight import Preflight
from intraskill_web.monitoring.models.signals import SignalEvent, SignalRead

__all__ = [
    "Channel",
    "Delivery",
    "MetricPoint",
    "Preflight",
    "SignalEvent",
    "SignalRead",
    "UpdatePoint",
]
