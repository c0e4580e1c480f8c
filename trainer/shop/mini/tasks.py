"""The tasks of the embedded world and their splits.

A task wants one product and one variant of it. What it wants is said in two places, the persona and
the request, in single words; the target's id stays private. A drawn task is kept only if a shopper
with all habits (``demonstrator.py``) buys a full success within the action limit, so every task can
be won; short ones are thinned out, because they teach little.

Splits are drawn from seeds of their own, in a fixed order, and never share a task: two tasks are
the same when the shopper reads the same words. The hash of a split covers ids and contents.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from trainer.errors import InputError
from trainer.shop.types import Product, Task

#: (a task) → number of actions in which a shopper with all habits wins it, or None
Solver = Callable[[Task], int | None]

SHORT_EPISODE = 6  # actions; a shorter winning episode is kept with the probability below
SHORT_SHARE = 0.6
#: the order in which a persona is read
PERSONA_ORDER = ("brand", "material", "colour", "size", "budget")
BUDGET_SLACK = (0, 0, 1, 1, 2, 4, 8)


@dataclass(frozen=True, slots=True)
class SplitSettings:
    """One split: its generator seed, its size and the id of its first task."""

    name: str
    seed: int
    size: int
    first_id: int

    @property
    def ids(self) -> range:
        return range(self.first_id, self.first_id + self.size)


#: in drawing order: a later split never repeats a task of an earlier one
SPLITS = (
    SplitSettings("test", 33, 400, 20_000),
    SplitSettings("val", 22, 1_600, 10_000),
    SplitSettings("calibration", 44, 2_400, 30_000),
    SplitSettings("train", 11, 3_726, 0),
)
FIRST_POOL_ID = 100_000


@dataclass(frozen=True, slots=True)
class Need:
    """What a shopper was told, as values. ``None`` means that nothing was asked."""

    category: str
    feature: str
    brand: str | None
    material: str | None
    colour: str | None
    size: str | None
    budget: int  # whole units of currency


def need_of(task: Task) -> Need:
    """Read a task's persona and request back into values. Uses nothing private."""
    feature, category, *rest = task.instruction_simple.split()
    asked = dict(zip(rest[::2], rest[1::2], strict=True))
    told = {**asked, **{name: str(value) for name, value in task.persona.items()}}
    return Need(
        category=category,
        feature=feature,
        brand=told.get("brand"),
        material=told.get("material"),
        colour=told.get("colour"),
        size=told.get("size"),
        budget=int(told["budget"].removeprefix("$")),
    )


def task_key(task: Task) -> tuple[str, ...]:
    """What makes two tasks the same: the words that the shopper reads."""
    persona = (word for item in sorted(task.persona.items()) for word in map(str, item))
    return (*persona, task.instruction_simple)


def draw_task(products: Sequence[Product], task_id: int, rng: random.Random) -> Task:
    """One task about a random product, not yet known to be winnable."""
    product = rng.choice(products)
    _, feature, category = product.title.split()
    material = (*product.attributes, *product.hidden_attributes)[2]
    colour, size = rng.choice(product.options["colour"]), rng.choice(product.options["size"])
    price = product.option_prices["size"][size]
    if price is None:
        raise InputError("a product of this world needs a price a size", field=product.asin)

    persona: dict[str, str] = {}
    asked: list[str] = []
    attributes, options = [feature], []
    if rng.random() < 0.8:
        persona["brand"] = product.brand
        attributes.append(product.brand)
        if rng.random() < 0.85:
            persona["material"] = material
            attributes.append(material)
    for axis, value, wanted, in_persona in (
        ("colour", colour, 0.8, 0.4),
        ("size", size, 0.75, 0.6),
    ):
        if rng.random() < wanted:
            options.append(value)
            if rng.random() < in_persona:
                persona[axis] = value
            else:
                asked += [axis, value]
    budget = int(price) + rng.choice(BUDGET_SLACK)
    persona["budget"] = f"${budget}"
    request = " ".join([feature, category, *asked])
    record = [task_id, product.asin, request, persona, attributes, options, float(budget)]
    return task_from_record(record, {product.asin: product})


def task_from_record(record: Sequence[Any], products: Mapping[str, Product]) -> Task:
    """The task of ``task_record``'s values; ``products`` by id."""
    task_id, asin, request, told, attributes, options, budget = record
    product = products[asin]
    persona = {name: told[name] for name in PERSONA_ORDER if name in told}
    return Task(
        task_id=task_id,
        asin=product.asin,
        instruction=" ".join([request, *(word for item in persona.items() for word in item)]),
        instruction_simple=request,
        persona=persona,
        attributes=tuple(attributes),
        goal_options=tuple(options),
        price_upper=budget,
        category=product.category,
        name=product.title,
        price_source="stored",
    )


def draw_tasks(
    products: Sequence[Product],
    solve: Solver,
    *,
    seed: int,
    first_id: int,
    exclude: set[tuple[str, ...]],
) -> Iterator[Task]:
    """Winnable tasks without end, numbered from ``first_id``; each of them joins ``exclude``."""
    rng = random.Random(f"mini-tasks-{seed}")
    task_id = first_id
    while True:
        task = draw_task(products, task_id, rng)
        thinned = rng.random() >= SHORT_SHARE
        key = task_key(task)
        if key in exclude:
            continue
        actions = solve(task)
        if actions is None or (thinned and actions < SHORT_EPISODE):
            continue
        exclude.add(key)
        yield task
        task_id += 1


def generate_splits(products: Sequence[Product], solve: Solver) -> dict[str, tuple[Task, ...]]:
    """All splits, by name."""
    exclude: set[tuple[str, ...]] = set()
    splits = {}
    for split in SPLITS:
        stream = draw_tasks(
            products, solve, seed=split.seed, first_id=split.first_id, exclude=exclude
        )
        splits[split.name] = tuple(next(stream) for _ in range(split.size))
    return splits


def task_record(task: Task) -> list[Any]:
    """The task as compact JSON values."""
    return [
        task.task_id,
        task.asin,
        task.instruction_simple,
        dict(task.persona),
        list(task.attributes),
        list(task.goal_options),
        task.price_upper,
    ]
