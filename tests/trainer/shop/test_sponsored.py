"""Paid first pages of the embedded world."""

from __future__ import annotations

import pytest

from tests.trainer.shop.factories import product
from trainer.shop.sponsored import SponsoredPlaces, query_draw
from trainer.shop.types import Product


def lamp(number: int, brand: str, feature: str, category: str = "goods›lamp") -> Product:
    return product(
        f"{number:012d}",
        {},
        title=f"{brand} {feature} lamp",
        brand=brand,
        category=category,
        attributes=(feature,),
    )


PRODUCTS = [
    *(lamp(n, "acme", "warm") for n in range(1, 5)),
    *(lamp(n, "birk", "slim") for n in range(5, 10)),
    lamp(20, "birk", "slim", "goods›desk"),
]
RESULTS = tuple(f"{n:012d}" for n in (1, 2, 3, 4, 5))


def paid_query(paid: bool) -> tuple[str, ...]:
    """A query that does or does not draw a paid page."""
    return next(
        tokens
        for n in range(50)
        if (query_draw(tokens := ("acme", "warm", f"w{n}")) % 3 == 0) is paid
    )


@pytest.fixture(scope="module")
def places() -> SponsoredPlaces:
    return SponsoredPlaces(PRODUCTS, every=3, page_size=3)


def test_about_one_query_in_three_draws_a_paid_page() -> None:
    draws = [query_draw(["lamp", f"word{n}"]) % 3 == 0 for n in range(3000)]
    assert 900 < sum(draws) < 1100


def test_order_and_repeats_of_words_do_not_matter() -> None:
    assert query_draw(["a", "b", "a"]) == query_draw(["b", "a"])


def test_paid_places_fit_neither_words_nor_results(places: SponsoredPlaces) -> None:
    placed = places.place(paid_query(True), RESULTS, 9)
    assert set(placed[:3]) <= {f"{n:012d}" for n in (6, 7, 8, 9)}
    assert placed[3:] == RESULTS


def test_the_list_keeps_its_limit(places: SponsoredPlaces) -> None:
    assert len(places.place(paid_query(True), RESULTS, 6)) == 6


def test_other_queries_are_left_alone(places: SponsoredPlaces) -> None:
    assert places.place(paid_query(False), RESULTS, 9) == RESULTS
    assert places.place(paid_query(True), (), 9) == ()


def test_a_query_that_names_every_brand_gets_no_paid_page(places: SponsoredPlaces) -> None:
    tokens = next(t for n in range(50) if query_draw(t := ("acme", "birk", f"w{n}")) % 3 == 0)
    assert places.place(tokens, RESULTS, 9) == RESULTS
