"""One conversation about one failed trace: investigate in the live shop, then hand in a card.

Every turn is exactly one call; a reply that is not costs a turn and is answered with a reminder.
On the last turn only the card can be handed in. Specification: gate-analysis.md §11.2.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from trainer.analyst.cards import Investigation, Submission, submission_errors
from trainer.analyst.endpoint.asking import Conversation
from trainer.analyst.endpoint.compaction import (
    compact_trace,
    live_state,
    privileged,
    public_persona,
)
from trainer.analyst.endpoint.live import LiveShop
from trainer.analyst.endpoint.tools import (
    SUBMIT_CARD,
    answers,
    names_of,
    one_call,
    reminder,
    submit_card_tool,
)
from trainer.analyst.endpoint.wire import Message, Reply
from trainer.analyst.maker import AnalystFailed
from trainer.progress import check_stop
from trainer.shop.tools import ToolCallError, tools_for
from trainer.skills.types import Chunk

Row = dict[str, Any]
#: errors of a card's contract that are named in one reminder
MOST_ERRORS = 12


class TurnLimitReached(AnalystFailed):
    """The model used all its turns without handing in a card."""


@dataclass(slots=True)
class Session:
    """An analyst's work on one trace."""

    conversation: Conversation
    shop: LiveShop
    system: str
    turns: int
    messages: list[Message] = field(default_factory=list)
    transcript: list[Row] = field(default_factory=list)

    def run(
        self, trace: Mapping[str, Any], chunks: Sequence[Chunk], stage: str
    ) -> tuple[Submission, Investigation]:
        """Ask until a card is handed in. Raises TurnLimitReached, and what asking raises."""
        self.messages = [
            {"role": "system", "content": self.system},
            {"role": "user", "content": self._opening(trace, chunks, stage)},
        ]
        for turn in range(1, self.turns + 1):
            check_stop()
            submission = self._turn(turn)
            if submission is not None:
                account = self.conversation.account.to_record()
                return submission, self.shop.investigation(self.transcript, account)
        raise TurnLimitReached(f"no card within {self.turns} turns")

    def _turn(self, turn: int) -> Submission | None:
        last = turn == self.turns
        tools = [*([] if last else tools_for(self.shop.page.state)), submit_card_tool()]
        reply = self.conversation.ask(self.messages, tools)
        call = one_call(reply, names_of(tools))
        note: Row = {"turn": turn, "call": call.name, "problem": call.problem}
        self.transcript.append(note)
        if call.problem is not None or call.arguments is None:
            self._answer(
                reply, {"error": call.problem, "message": reminder(str(call.problem))}, turn
            )
            return None
        if call.name == SUBMIT_CARD:
            errors = submission_errors(call.arguments)
            if not errors:
                return _submission(call.arguments)
            note["problem"] = "invalid_card"
            told = {"message": reminder("invalid_card"), "errors": errors[:MOST_ERRORS]}
            self._answer(reply, told, turn)
            return None
        self._act(reply, call.name, call.arguments, turn, note)
        return None

    def _act(self, reply: Reply, name: str, arguments: Row, turn: int, note: Row) -> None:
        try:
            told = self.shop.act(name, arguments)
        except ToolCallError as error:
            note["problem"] = error.code
            self._answer(reply, {"error": error.code, "message": error.message}, turn)
            return
        note["action"] = self.shop.actions[-1]
        page = {"observation": self.shop.page.text, "state": live_state(self.shop.page.state)}
        self._answer(reply, {**told, **page}, turn)

    def _answer(self, reply: Reply, told: Row, turn: int) -> None:
        left = self.turns - turn
        told = {**told, "turns_left": left}
        if left == 1:
            told["notice"] = reminder("last_turn")
        text = json.dumps(told, ensure_ascii=False, separators=(",", ":"))
        self.messages += [reply.message(), *answers(reply, text)]

    def _opening(self, trace: Mapping[str, Any], chunks: Sequence[Chunk], stage: str) -> str:
        """The first user message: contract, failed trace with the gold, and a live session."""
        page = self.shop.page
        return json.dumps(
            {
                "contract": {
                    "stage": stage,
                    "current_skill": [
                        {"chunk_id": chunk.skill_id, "content": chunk.content} for chunk in chunks
                    ],
                    "max_live_actions": self.turns - 1,
                },
                "failed_trace": compact_trace(trace),
                "privileged": privileged(trace),
                "live_session": {
                    "instruction": trace["reset"]["task_instruction"],
                    "persona": public_persona(trace["reset"]["user_persona"]),
                    "observation": page.text,
                    "state": live_state(page.state),
                },
            },
            ensure_ascii=False,
            separators=(",", ":"),
        )


def _submission(arguments: Mapping[str, Any]) -> Submission:
    return Submission(
        status=arguments["status"],
        privileged=dict(arguments["privileged_audit"]),
        deployable=dict(arguments["deployable_abstraction"]),
    )
