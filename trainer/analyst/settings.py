"""Settings of the analyst: who analyses, which groups, how far, and at what expense.

Defaults are the published ones (gate-analysis.md §§11.2, 11.5, 12) where those exist.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from trainer.config_base import Config, Count, Positive, Probability

Kind = Literal["none", "rule_based", "endpoint"]
NotNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class TriggerSettings(Config):
    """Which groups are looked at.

    All-wrong groups whose retry failed always are. With ``low_mean`` a group is looked at too when
    all its episodes were scored, at least ``minimum_episodes`` of them, the share of successes is
    at most ``mean_at_most`` and the variance of the rewards at most ``variance_at_most``; its first
    failed episode then stands for it.
    """

    low_mean: bool = False
    mean_at_most: Probability = 0.25
    variance_at_most: NotNegative = 0.25
    minimum_episodes: Annotated[int, Field(ge=2)] = 4


class LimitSettings(Config):
    """How far one analysis may go. ``environment_slots`` bounds the shop sessions that all cards in
    work hold at the same time; what training holds is not counted here."""

    turns: Annotated[int, Field(ge=2)] = 20
    concurrency: Annotated[int, Field(ge=1, le=64)] = 2
    environment_slots: Annotated[int, Field(ge=1, le=64)] = 2
    compile_attempts: Annotated[int, Field(ge=1, le=10)] = 5
    poll_seconds: Positive = 5.0


class PriceSettings(Config):
    """What a million tokens cost, in ``currency``, an ISO 4217 code; budgets and bills are in it
    too."""

    currency: Annotated[str, Field(pattern=r"^[A-Z]{3}$")] = "USD"
    input: NotNegative = 0.0
    cached_input: NotNegative = 0.0
    output: NotNegative = 0.0


class ChatSettings(Config):
    """A server that speaks the OpenAI chat protocol: DashScope, SGLang, vLLM, OpenAI, …

    The key itself stands in the environment variable ``api_key_env``, never in a file. What a
    server calls thinking goes into ``extra_body``, e.g. ``{enable_thinking: true}``. A budget of
    null means no limit; a round that could exceed its budget with the next call stops asking.
    """

    base_url: str
    model: str
    api_key_env: str = "OPENAI_API_KEY"
    temperature: NotNegative = 0.6
    top_p: Probability = 0.95
    session_max_tokens: Count = 4096
    compile_max_tokens: Count = 8192
    max_tokens_name: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    stream: bool = True
    timeout_seconds: Positive = 180.0
    transport_retries: Annotated[int, Field(ge=0, le=20)] = 8
    longest_wait_seconds: Positive = 120.0
    prices: PriceSettings = PriceSettings()
    token_budget: Count | None = None
    cost_budget: Positive | None = None
    extra_body: dict[str, Any] = {}

    def identity(self) -> dict[str, Any]:
        """What decides an answer, besides the messages."""
        return {
            "provider": "openai_compatible",
            "model": self.model,
            "temperature": self.temperature,
            "top_p": self.top_p,
            "session_max_tokens": self.session_max_tokens,
            "compile_max_tokens": self.compile_max_tokens,
            "extra_body": self.extra_body,
        }


class ProbeSettings(Config):
    """The usefulness probe (gate-analysis.md §16.4): policy episodes with and without a candidate's
    text, on the tasks that led to it and on others, before it takes a slot of the gate.

    A candidate is refused when, with two standard errors in its favour, it gains less than
    ``least_gain`` on its own tasks or loses more than ``greatest_harm`` on the others (in mean
    reward). Where several wordings are at hand, ``finalists`` of them are compared on the others.
    A task of its own is played ``rollouts_per_task`` times, any other once.
    """

    enabled: bool = False
    context: Literal["alone", "full"] = "alone"
    rollouts_per_task: Count = 2
    source_tasks: Count = 16
    unrelated_tasks: Count = 96
    finalists: Count = 3
    least_gain: float = 0.0
    greatest_harm: NotNegative = 0.05


class AnalystSettings(Config):
    """The analyst of every round. ``analyst: rule_based`` is short for ``{kind: rule_based}``."""

    kind: Kind = "none"
    max_candidates: Annotated[int, Field(ge=1, le=16)] = 6
    minimum_tasks: Count = 3
    #: what becomes of a candidate that rests on fewer tasks than that
    low_support: Literal["mark", "leave_out"] = "mark"
    #: let an endpoint's compiler also propose to delete, merge and split active chunks
    restructure: bool = False
    firewall: Literal["standard", "compat"] = "standard"
    near_duplicate: Probability = 0.8
    #: how often a proposal is made again that a gate found hopeful but could not decide; 0 as
    #: published, whose gate always decides
    retry_undecided: Annotated[int, Field(ge=0, le=9)] = 1
    #: when nothing can be analysed: go on to the gate without candidates, or stop the round here
    on_failure: Literal["continue", "stop"] = "continue"
    resume: bool = True
    watch: bool = False
    trigger: TriggerSettings = TriggerSettings()
    limits: LimitSettings = LimitSettings()
    endpoint: ChatSettings | None = None
    probe: ProbeSettings = ProbeSettings()

    @model_validator(mode="before")
    @classmethod
    def _short_forms(cls, value: Any) -> Any:
        if isinstance(value, str):
            return {"kind": value}
        if isinstance(value, dict) and "analyst" in value:  # the former name of ``kind``
            rest = {key: item for key, item in value.items() if key != "analyst"}
            return {"kind": value["analyst"], **rest}
        return value

    @model_validator(mode="after")
    def _an_endpoint_analyst_has_an_endpoint(self) -> AnalystSettings:
        if (self.kind == "endpoint") != (self.endpoint is not None):
            raise ValueError("endpoint must be set exactly when kind is 'endpoint'")
        return self
