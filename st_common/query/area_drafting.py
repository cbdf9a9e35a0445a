"""CREATE AREA, CREATE OR REPLACE AREA and DROP AREA on paper."""

from dataclasses import replace
from typing import TYPE_CHECKING

from st_common.query.area_change import following
from st_common.query.area_store import NamedArea
from st_common.query.checks import all_complaints, complaints_of_area
from st_common.query.control import QueryRow
from st_common.query.drafted import Draft
from st_common.query.systems import problems_of_area

if TYPE_CHECKING:
    from st_common.query.text import Statement


def create_area(draft: Draft, statement: "Statement") -> None:
    """The region has a name from here on."""
    if statement.region is None:
        return
    before = draft.areas.get(statement.name.casefold())
    area = NamedArea(
        name=statement.name if before is None else before.name,
        region=statement.region,
        owner=draft.owner,
        created_us=draft.arrival_us,
    )
    draft.areas[statement.name.casefold()] = area
    (draft.created if before is None else draft.replaced).append(area.name)


def replace_area(draft: Draft, statement: "Statement") -> None:
    """The area is another one from here on, and queries that have its region by its name follow."""
    for row in _following(draft, statement):
        draft.add(row)
    create_area(draft, statement)


def drop_area(draft: Draft, statement: "Statement") -> None:
    """The name stands for nothing from here on; queries keep their region."""
    draft.removed.append(draft.areas.pop(statement.name.casefold()).name)


def check_area(draft: Draft, statement: "Statement") -> None:
    """Whether the name is free, or known, and the region can be one."""
    if statement.op != "drop_area":
        draft.problems.extend(problems_of_area(statement))
    before = draft.areas.get(statement.name.casefold())
    if statement.op == "create_area" and before is not None:
        hint = f"CREATE OR REPLACE AREA {before.name}: queries that name it follow"
        draft.problems.append(
            statement.problem(f"area {before.name!r} exists already", hint=hint)
        )
    elif statement.op == "drop_area" and before is None:
        names = [area.name for area in draft.areas.values()]
        hint = draft.near(statement.name, names)
        draft.problems.append(
            statement.problem(
                f"unknown area {statement.name!r}", hint=hint or "see SHOW AREAS"
            )
        )
    for each in (
        complaints_of_area(statement.region) if statement.region is not None else ()
    ):
        draft.problems.append(
            statement.problem(each.message, at=each.at, hint=each.hint)
        )


def check_replaced_area(draft: Draft, statement: "Statement") -> None:
    """Whether the region is right for itself, and for each query that would follow."""
    check_area(draft, statement)
    for row in _following(draft, statement):
        stream = draft.streams.get(row.stream)
        if stream is None or row.plan is None:
            message = f"query {row.name!r} is on stream {row.stream!r}, which has no right settings"
            draft.problems.append(statement.problem(message, at="region"))
            continue
        for each in all_complaints(row.plan, stream):
            message = f"query {row.name!r} cannot follow: {each.message}"
            draft.problems.append(
                statement.problem(message, at="region", hint=each.hint)
            )


def _following(draft: Draft, statement: "Statement") -> list[QueryRow]:
    old = draft.areas.get(statement.name.casefold())
    if old is None or statement.region is None:
        return []
    rows = following(draft.latest.values(), old, statement.region)
    return [replace(row, arrival_us=draft.arrival_us) for row in rows]
