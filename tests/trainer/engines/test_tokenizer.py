"""Words and ids, and where the special tokens stand."""

from __future__ import annotations

import pytest

from tests.trainer.engines.models import TOKENIZER
from trainer.engines.local.tokenizer import SPECIAL, WordTokenizer
from trainer.errors import InputError
from trainer.shop.world import World


def test_an_episode_is_laid_out_as_the_warm_start_trains_it() -> None:
    ids = TOKENIZER.conversation([("system", "w0 w1"), ("user", "w2"), ("user", "w3")])
    assert TOKENIZER.decode(ids) == "<s> w0 w1 w2 w3 <act>"
    assert ids == TOKENIZER.prompt(["w0 w1", "w2", "w3"])
    assert TOKENIZER.decode(TOKENIZER.following(["w4 w5"])) == "w4 w5 <act>"


def test_an_earlier_turn_is_laid_out_as_it_was_sampled() -> None:
    ids = TOKENIZER.conversation([("user", "w0"), ("assistant", "w1 w2"), ("tool", "w3")])
    assert TOKENIZER.decode(ids) == "<s> w0 <act> w1 w2 <end> w3 <act>"


def test_a_text_cannot_smuggle_in_special_words() -> None:
    assert TOKENIZER.encode("w1 <end> <act> <s> w2") == TOKENIZER.encode("w1 a b c w2")


def test_unknown_words_are_read_as_one() -> None:
    assert TOKENIZER.encode("w1 sofa") == [TOKENIZER.encode("w1")[0], TOKENIZER.unknown]


@pytest.mark.parametrize("words", [("a", "b"), (*SPECIAL, "a", "a"), SPECIAL[::-1]])
def test_a_vocabulary_without_order_is_refused(words: tuple[str, ...]) -> None:
    with pytest.raises(InputError, match="vocabulary"):
        WordTokenizer(words)


def test_the_world_speaks_only_words_of_its_vocabulary(mini: World) -> None:
    assert mini.language is not None
    tokenizer = WordTokenizer(mini.language.vocabulary())
    for task_id in mini.split("val")[:50]:
        texts = [text for _, text in mini.language.prompt(mini.task(task_id), [])]
        assert tokenizer.unknown not in tokenizer.encode(" ".join(texts))
