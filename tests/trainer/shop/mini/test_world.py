"""The generated world: the same everywhere, disjoint splits, tasks that can be won."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from trainer.canonical import fingerprint
from trainer.errors import InputError
from trainer.files import write_bytes
from trainer.shop.mini.catalogue import CatalogueSettings, generate_products
from trainer.shop.mini.generate import draw_splits, tasks_document
from trainer.shop.mini.tasks import SPLITS, need_of, task_key, task_record
from trainer.shop.mini.words import MAX_PRICE
from trainer.shop.mini.world import TASKS_FILE, build_world, read_tasks
from trainer.shop.types import Task
from trainer.shop.world import World

CATALOGUE_SHA256 = "ae53f62ff7c16fa849e672322a1ed66ac6c28c08dcb1c28174f8877b2c7bcfbd"
SPLIT_SHA256 = {
    "test": "2599570f109f09f4aa28b28d48e79a6e53246357d12ba71ab03437ad644f51a5",
    "val": "28ace15c8225c57aafe4170e27195b25c56e6597bf74f6eb1299a6a5c1af5a7f",
    "calibration": "945c1f26a6e27671850e741e328e52d969418fa264734f03f10902111ab5ff4c",
    "train": "4dee8017461320811cbeb7bc8182ad100bfbe84c1a8e77e1295ee8e85f585f49",
}


def test_the_catalogue_has_the_known_hash(mini: World) -> None:
    assert mini.catalogue.sha256 == CATALOGUE_SHA256
    assert mini.identity()["catalogue_sha256"] == CATALOGUE_SHA256


def test_each_category_has_110_products_with_twelve_digit_ids(mini: World) -> None:
    products = mini.catalogue.products.values()
    by_category: dict[str, int] = {}
    for product in products:
        by_category[product.category] = by_category.get(product.category, 0) + 1
        assert len(product.asin) == 12
        assert product.asin.isdecimal()
    assert len(products) == 2_200
    assert set(by_category.values()) == {110}
    assert len(by_category) == 20


def test_only_the_size_moves_the_price(mini: World) -> None:
    for product in mini.catalogue.products.values():
        assert list(product.options) == ["colour", "size"]
        assert set(product.option_prices["colour"].values()) == {None}
        prices = list(product.option_prices["size"].values())
        assert prices == sorted(prices, key=float)
        assert product.pricing[0] == prices[0]
        assert product.pricing[-1] == prices[-1]
        assert 1 <= prices[0] <= prices[-1] <= MAX_PRICE


def test_most_materials_are_hidden(mini: World) -> None:
    products = mini.catalogue.products.values()
    hidden = sum(bool(product.hidden_attributes) for product in products)
    assert hidden / len(products) == pytest.approx(0.7, abs=0.03)


def test_another_seed_or_setting_gives_another_catalogue() -> None:
    products = generate_products()
    assert generate_products() == products
    assert generate_products(8) != products
    assert generate_products(settings=CatalogueSettings(series_share=0.5)) != products


def test_drawing_the_tasks_again_gives_the_shipped_file() -> None:
    splits, catalogue_sha256 = draw_splits()
    assert tasks_document(splits, catalogue_sha256) == TASKS_FILE.read_bytes()


def split_sha256(tasks: list[Task]) -> str:
    return fingerprint([task_record(task) for task in tasks])


def test_splits_have_the_known_sizes_ids_and_hashes(mini: World) -> None:
    sizes = {split.name: len(mini.split(split.name)) for split in SPLITS}
    assert sizes == {"test": 400, "val": 1_600, "calibration": 2_400, "train": 3_726}
    for split in SPLITS:
        assert mini.split(split.name) == tuple(split.ids)
        tasks = [mini.task(task_id) for task_id in split.ids]
        assert split_sha256(tasks) == SPLIT_SHA256[split.name]


def test_no_two_tasks_read_the_same(mini: World) -> None:
    keys = {task_key(task) for task in mini.tasks.values()}
    assert len(keys) == len(mini.tasks) == 8_126


def test_the_hash_of_a_split_covers_the_private_goal(mini: World) -> None:
    tasks = [mini.task(task_id) for task_id in mini.split("test")[:3]]
    moved = [replace(tasks[0], goal_options=("red",)), *tasks[1:]]
    assert split_sha256(moved) != split_sha256(tasks)


def test_what_a_task_asks_can_be_read_back_from_its_public_words(mini: World) -> None:
    for task_id in mini.split("val")[:200]:
        task = mini.task(task_id)
        need = need_of(task)
        wanted = (need.feature, need.brand, need.material)
        assert tuple(word for word in wanted if word) == task.attributes
        assert tuple(word for word in (need.colour, need.size) if word) == task.goal_options
        assert need.budget == task.price_upper
        assert task.category == f"goods›{need.category}"


def test_tasks_of_another_catalogue_are_refused(mini: World, tmp_path: Path) -> None:
    import gzip

    document = json.loads(gzip.decompress(TASKS_FILE.read_bytes()))
    document["catalogue_sha256"] = "0" * 64
    path = tmp_path / "tasks.json.gz"
    write_bytes(path, gzip.compress(json.dumps(document).encode()))
    with pytest.raises(InputError, match="another catalogue") as caught:
        read_tasks(mini.catalogue, path)
    assert caught.value.field == "catalogue_sha256"


def test_two_worlds_are_equal() -> None:
    first, second = build_world(), build_world()
    assert first.tasks == second.tasks
    assert first.identity() == second.identity()
