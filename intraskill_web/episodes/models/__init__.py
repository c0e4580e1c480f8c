"""The episode index, which can be rebuilt from the files; replays; saved searches."""

from intraskill_web.episodes.models.episode import SEE_GOAL, Episode, SearchRow
from intraskill_web.episodes.models.ingested import BadLine, IngestedFile
from intraskill_web.episodes.models.replay import Replay
from intraskill_web.episodes.models.saved import SavedSearch

__all__ = [
    "SEE_GOAL",
    "BadLine",
    "Episode",
    "IngestedFile",
    "Replay",
    "SavedSearch",
    "SearchRow",
]
