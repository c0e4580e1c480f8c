"""The way to a language model, and what may be spent on it: one for all roles of a stage."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from trainer.analyst.endpoint.asking import Conversation
from trainer.analyst.endpoint.budget import Budget
from trainer.analyst.endpoint.client import ChatClient, OpenAIClient
from trainer.analyst.endpoint.journal import Journal, spent_in
from trainer.analyst.settings import AnalystSettings, ChatSettings


@dataclass(frozen=True, slots=True)
class Line:
    """One client, one budget, one folder of transcripts."""

    settings: ChatSettings
    client: ChatClient
    budget: Budget
    transcripts: Path

    def conversation(self, name: str, max_tokens: int, *, for_session: bool = True) -> Conversation:
        """A conversation whose transcript has this name; what stands in it is not asked again."""
        return Conversation(
            client=self.client,
            journal=Journal(self.transcripts / f"{name}.jsonl"),
            budget=self.budget,
            settings=self.settings,
            max_tokens=max_tokens,
            for_session=for_session,
        )


def open_line(settings: AnalystSettings, transcripts: Path) -> Line:
    """Raises InputError when the environment holds no key. What earlier runs over the same
    transcripts spent counts against the budget."""
    if settings.endpoint is None:
        raise ValueError("an endpoint analyst needs analyst.endpoint")
    budget = Budget(settings.endpoint)
    for usage in spent_in(transcripts):
        budget.add(usage)
    return Line(settings.endpoint, OpenAIClient(settings.endpoint), budget, transcripts)
