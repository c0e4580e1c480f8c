"""Random numbers by key: known vectors, distribution, independence."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest

from trainer.engines.local.noise import gumbel, stream_start, uniform

SPLITMIX64_OF_ZERO = (0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F)


def test_the_stream_is_splitmix64() -> None:
    expected = [((value >> 11) + 0.5) * 2.0**-53 for value in SPLITMIX64_OF_ZERO]
    assert uniform([0], 3).tolist() == [expected]


def test_a_stream_starts_at_the_hash_of_key_turn_and_token() -> None:
    digest = hashlib.sha256(b"val:7:0:123:4:2").digest()
    assert stream_start("val:7:0:123", 4, 2) == int.from_bytes(digest[:8], "big")


def test_every_place_has_its_own_noise_and_keeps_it_in_any_batch() -> None:
    places = [("a", 0, 0), ("a", 0, 1), ("a", 1, 0), ("b", 0, 0)]
    starts = [stream_start(*place) for place in places]
    together = gumbel(starts, 300)
    assert len({row.tobytes() for row in together}) == 4
    assert np.array_equal(gumbel(starts[2:3], 300)[0], together[2])
    assert np.array_equal(gumbel(starts[::-1], 300), together[::-1])


def test_the_noise_is_standard_gumbel() -> None:
    noise = gumbel([stream_start("k", turn, 0) for turn in range(200)], 1000).astype(float)
    assert noise.mean() == pytest.approx(np.euler_gamma, abs=0.01)
    assert noise.var() == pytest.approx(np.pi**2 / 6, abs=0.02)
    assert abs(np.corrcoef(noise[:-1].ravel(), noise[1:].ravel())[0, 1]) < 0.01


def test_the_largest_noisy_log_probability_follows_the_distribution() -> None:
    probabilities = np.array([0.5, 0.3, 0.15, 0.05])
    noise = gumbel([stream_start("draw", 0, token) for token in range(20_000)], 4)
    drawn = (np.log(probabilities) + noise).argmax(axis=1)
    assert np.bincount(drawn) / len(drawn) == pytest.approx(probabilities, abs=0.01)
