"""From the task records of a product to tasks with their private goals (environment.md §1.4)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trainer.shop.budget import NO_BUDGET, BudgetParser
from trainer.shop.personas import public_persona
from trainer.shop.raw import RawRecord, finite_number
from trainer.shop.types import Product, Task


class GoalReader:
    """Collects tasks, numbered as stored or in the order they are accepted."""

    def __init__(self, parse: BudgetParser) -> None:
        self.tasks: dict[int, Task] = {}
        self._parse = parse

    def add(self, product: Product, record: RawRecord) -> bool:
        """Add the tasks of a product; False when one had no attributes and was left out."""
        persona = public_persona(record.raw.get("user_persona"))
        complete = True
        for index, raw in enumerate(record.items("instructions")):
            instruction = record.inner(raw, f"instructions[{index}]")
            attributes = tuple(instruction.texts("attributes"))
            if not attributes:
                complete = False
                continue
            task_id = self._task_id(instruction)
            self.tasks[task_id] = Task(
                task_id=task_id,
                asin=product.asin,
                persona=persona,
                attributes=attributes,
                goal_options=goal_options(instruction.raw.get("instruction_options")),
                category=product.category,
                name=product.title,
                task_uid=instruction.optional_text("task_uid"),
                source_product_index=_source_index(record),
                **self._need(instruction),
            )
        return complete

    def _task_id(self, record: RawRecord) -> int:
        task_id = record.raw.get("task_id", len(self.tasks))
        if isinstance(task_id, bool) or not isinstance(task_id, int) or task_id < 0:
            raise record.error("task_id", "a task id is a non-negative integer", task_id)
        if task_id in self.tasks:
            raise record.error("task_id", "the task id occurs twice", task_id)
        return task_id

    def _need(self, record: RawRecord) -> dict[str, Any]:
        """The texts of a task and the ceiling found in them."""
        full = record.text("instruction")
        simple = record.optional_text("instruction_simple")
        simple = full if simple in ("", full) else simple
        ceiling, source = self._ceiling(record, simple, full)
        return {
            "instruction": full,
            "instruction_simple": simple,
            "price_upper": ceiling,
            "price_source": source,
        }

    def _ceiling(self, record: RawRecord, simple: str, full: str) -> tuple[float | None, str]:
        """A stored number wins; otherwise the short text is parsed, then the full one."""
        stored = record.raw.get("price_upper")
        if stored is not None and stored != "":
            if isinstance(stored, bool) or not isinstance(stored, (int, float)):
                raise record.error("price_upper", "a ceiling is a number or null", stored)
            if not finite_number(stored) or stored < 0:
                raise record.error("price_upper", "a ceiling is finite and not negative", stored)
            return stored, "stored"
        budget = self._parse(simple)
        if budget.ceiling is not None:
            return budget.ceiling, f"simple:{budget.rule}"
        budget = self._parse(full) if full != simple else NO_BUDGET
        return budget.ceiling, f"full:{budget.rule}" if budget.rule else ""


def _source_index(record: RawRecord) -> int:
    """The product's place in the original data, which cleaning writes down."""
    index = record.raw.get("source_product_index", record.position)
    if isinstance(index, bool) or not isinstance(index, int):
        raise record.error("source_product_index", "must be an integer", index)
    return index


def goal_options(value: object) -> tuple[str, ...]:
    """Wanted option values: a list, the values of an object, or one value."""
    if value is None:
        return ()
    if isinstance(value, Mapping):
        return tuple(str(item) for item in value.values())
    if isinstance(value, (list, tuple)):
        return tuple(str(item) for item in value)
    return (str(value),)
