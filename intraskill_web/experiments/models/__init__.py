"""Experiments, their rounds and stages, the attempts at each, and the documents they made."""

from intraskill_web.experiments.models.documents import CheckpointScore, Document
from intraskill_web.experiments.models.runs import Attempt, Experiment, Round, Stage
from intraskill_web.experiments.models.sweeps import Sweep

__all__ = ["Attempt", "CheckpointScore", "Document", "Experiment", "Round", "Stage", "Sweep"]
