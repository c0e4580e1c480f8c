"""The generated catalogue of the embedded world: 20 categories of 110 products each.

The same seed always gives the same products in the same order (Mersenne Twister seeded by a string
through SHA-512, independent of the platform); a test holds the catalogue's hash.

A product is three words, "tarn vintage bottle" (brand, feature, category), one material, three
colours and three sizes; only the size moves the price. Two properties make habits matter:

* Products of one series (category, brand, feature) mostly share colours and sizes. Otherwise the
  wanted options alone would point at the wanted product and nobody would need to look at materials.
* The material of 70 % of the products shows only after the attributes were asked for.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

from trainer.shop.mini.words import BRANDS, CATEGORIES, COLOURS, FEATURES, MATERIALS, SIZES
from trainer.shop.types import Product

CATALOGUE_SEED = 7
ROOT_CATEGORY = "goods"


@dataclass(frozen=True, slots=True)
class CatalogueSettings:
    """What the generator may vary. The defaults are the shipped world."""

    products_per_category: int = 110
    brands_per_category: int = 6
    features_per_category: int = 5
    materials_per_category: int = 4
    variants_per_axis: int = 3
    series_share: float = 0.65
    visible_material_share: float = 0.3
    lowest_price: int = 4
    highest_price: int = 28
    largest_size_step: int = 3


def generate_products(
    seed: int = CATALOGUE_SEED, settings: CatalogueSettings | None = None
) -> tuple[Product, ...]:
    """All products in ascending product id. Pure function of its arguments."""
    settings = settings or CatalogueSettings()
    rng = random.Random(f"mini-catalogue-{seed}")
    drafts = [
        draft for category in CATEGORIES for draft in _category_drafts(category, settings, rng)
    ]
    rng.shuffle(drafts)  # ids decide ties of the search, so they must not follow the categories
    asins = sorted(rng.sample(range(10**11, 10**12), len(drafts)))
    return tuple(_product(str(asin), draft) for asin, draft in zip(asins, drafts, strict=True))


@dataclass(frozen=True, slots=True)
class _Draft:
    category: str
    brand: str
    feature: str
    material: str
    material_visible: bool
    colours: tuple[str, ...]
    sizes: tuple[str, ...]
    prices: tuple[int, ...]  # whole units of currency, one a size, smallest size first


def _category_drafts(
    category: str, settings: CatalogueSettings, rng: random.Random
) -> list[_Draft]:
    brands = rng.sample(BRANDS, settings.brands_per_category)
    features = rng.sample(FEATURES, settings.features_per_category)
    materials = rng.sample(MATERIALS, settings.materials_per_category)
    series = {
        (brand, feature): _draw_options(settings, rng) for brand in brands for feature in features
    }
    drafts = []
    for _ in range(settings.products_per_category):
        brand, feature = rng.choice(brands), rng.choice(features)
        shared = rng.random() < settings.series_share
        colours, sizes = series[brand, feature] if shared else _draw_options(settings, rng)
        base = rng.randint(settings.lowest_price, settings.highest_price)
        step = rng.randint(0, settings.largest_size_step)
        drafts.append(
            _Draft(
                category=category,
                brand=brand,
                feature=feature,
                material=rng.choice(materials),
                material_visible=rng.random() < settings.visible_material_share,
                colours=colours,
                sizes=sizes,
                prices=tuple(base + step * place for place in range(len(sizes))),
            )
        )
    return drafts


def _draw_options(
    settings: CatalogueSettings, rng: random.Random
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Colours in random order, sizes from small to large."""
    colours = tuple(rng.sample(COLOURS, settings.variants_per_axis))
    places = sorted(rng.sample(range(len(SIZES)), settings.variants_per_axis))
    return colours, tuple(SIZES[place] for place in places)


def _product(asin: str, draft: _Draft) -> Product:
    named = (draft.feature, draft.brand)
    visible = (*named, draft.material) if draft.material_visible else named
    hidden = () if draft.material_visible else (draft.material,)
    return Product(
        asin=asin,
        title=f"{draft.brand} {draft.feature} {draft.category}",
        brand=draft.brand,
        category=f"{ROOT_CATEGORY}›{draft.category}",
        attributes=visible,
        hidden_attributes=hidden,
        options={"colour": draft.colours, "size": draft.sizes},
        option_prices={
            "colour": dict.fromkeys(draft.colours),
            "size": {
                size: float(price) for size, price in zip(draft.sizes, draft.prices, strict=True)
            },
        },
        pricing=tuple(float(price) for price in sorted({draft.prices[0], draft.prices[-1]})),
    )
