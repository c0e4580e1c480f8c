"""Metric series, and signals: what opened when, who read it, where it was sent."""

from intraskill_web.monitoring.models.notify import Channel, Delivery
from intraskill_web.monitoring.models.points import MetricPoint, UpdatePoint
from intraskill_web.monitoring.models.signals import SignalEvent, SignalRead

__all__ = ["Channel", "Delivery", "MetricPoint", "SignalEvent", "SignalRead", "UpdatePoint"]
