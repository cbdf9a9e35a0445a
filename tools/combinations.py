"""Writes docs/combinations.md: which two forms of a query go together, by asking the checks about each pair of them.

`--check` compares instead of writing.
"""

import argparse
import sys
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path

from st_common.config.columns import Columns
from st_common.config.stream import StreamSettings
from st_common.query.checks import all_complaints
from st_common.query.extents import with_extent
from st_common.query.problem import TextError
from st_common.query.text import select_of

PAGE = Path("docs/combinations.md")
STREAM = StreamSettings(
    name="taxis",
    format="csv",
    columns=Columns(object="id", x="x", y="y"),
)
BOXES = replace(STREAM, columns=Columns(object="id", box=("a", "b", "c", "d")))
LAYER = replace(STREAM, layer="taxis", columns=Columns(object="id", shape="geometry"))
HEAD = """# What goes together

Which two forms of a query may stand in one, and what the error says where they may not. The page is written by
`make generate`, which asks the checks that every registration goes through about each pair; tests compare, and run
each pair that goes together. `DETECT`, `FOR` and `WITH VALID UNTIL` stand beside `INSIDE` here, where the other form is
not what they need. [query-language.md](query-language.md#what-does-not-go-together) says why, and what depends on more
than two.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """A form of a query: what it says at each place of a statement, "" for nothing.

    `needs` are forms of which one must stand beside it.
    """

    name: str
    select: str = ""
    told: str = ""
    window: str = ""
    join: str = ""
    where: str = ""
    inside: str = ""
    clause: str = ""
    emit: str = ""
    until: str = ""
    around: bool = False
    needs: "tuple[Form, ...]" = ()


_INSIDE = Form(name="`INSIDE` a region that stands still", inside="INSIDE (1, 1, 2, 2)")
_EXISTS = "EXISTS (SELECT 1 FROM parks p WHERE ST_Intersects(t, p))"
FORMS = (
    Form(name="`WHERE`", where="speed_mps > 1"),
    _INSIDE,
    Form(name="`INSIDE ('M', ..)`", inside="INSIDE ('M', 'car7', 500 m)"),
    Form(name="`EXISTS`", where=_EXISTS),
    Form(name="`NOT EXISTS`", where=f"NOT {_EXISTS}"),
    Form(name="`JOIN` with a layer", join="JOIN parks p ON ST_Intersects(t, p)"),
    Form(name="`LEFT JOIN`", join="LEFT JOIN parks p ON ST_Intersects(t, p)"),
    Form(name="`NEAREST` of a layer", join="JOIN parks p ON NEAREST(t, p, 1)"),
    Form(
        name="`JOIN` of the stream with itself",
        join="JOIN taxis b ON ST_DWithin(t, b, 50 m)",
    ),
    Form(
        name="`LEFT JOIN` of the stream with itself",
        join="LEFT JOIN taxis b ON ST_DWithin(t, b, 50 m)",
    ),
    Form(
        name="`NOT EXISTS` about the stream itself",
        where="NOT EXISTS (SELECT 1 FROM taxis b WHERE ST_DWithin(t, b, 5 m))",
    ),
    Form(name="`WILL ENTER`", inside="WILL ENTER (1.6, 1, 2, 2) WITHIN 1 hour"),
    Form(name="`KNN`", clause="KNN (3, 1, 1)"),
    Form(name="`USING`", clause="USING enlarge(50 m)"),
    Form(name="`COMPARE WITH`", clause="COMPARE WITH (1, 1, 2, 2)"),
    Form(name="`DETECT`", clause="DETECT ENTER, EXIT", needs=(_INSIDE,)),
    Form(name="`FOR`", clause="FOR 30 s", needs=(_INSIDE,)),
    Form(name="`[RANGE ..]`", window=" [RANGE '1 hour']"),
    Form(name="`[SESSION ..]`", window=" [SESSION 10 min]"),
    Form(name="`WINDOW`", clause="WINDOW 1 hour"),
    Form(name="columns", select="t.speed_mps"),
    Form(name="`COUNT(*)`", select="COUNT(*)"),
    Form(name="`DISTINCT`", select="DISTINCT t.speed_mps"),
    Form(name="`RSTREAM`", told="RSTREAM"),
    Form(name="`EMIT EVERY`", emit="EMIT EVERY"),
    Form(name="`WITH VALID UNTIL`", until=" WITH VALID UNTIL", needs=(_INSIDE,)),
    Form(name="below `FROM (SELECT ..)`", around=True),
)


def statement(forms: tuple[Form, ...]) -> str:
    """The SELECT that has all of these forms."""
    items = ", ".join(one.select for one in forms if one.select) or "*"
    told = " ".join(one.told for one in forms if one.told)
    emit = " ".join(one.emit for one in forms if one.emit)
    until = "".join(one.until for one in forms)
    conditions = [one.where for one in forms if one.where]
    parts = [
        f"SELECT {f'{told} ({items})' if told else items}",
        f"FROM taxis{''.join(one.window for one in forms)} t",
        *(one.join for one in forms),
        f"WHERE {' AND '.join(conditions)}" if conditions else "",
        " AND ".join(one.inside for one in forms if one.inside),
        *(one.clause for one in forms),
        f"{emit or 'EMIT CHANGES'}{until}" if emit or until else "",
    ]
    text = " ".join(part for part in parts if part)
    is_inner = any(one.around for one in forms)
    return f"SELECT * FROM ({text}) r" if is_inner else text  # noqa: S608 - nobody runs it


def refused(forms: tuple[Form, ...], stream: StreamSettings = STREAM) -> str:
    """What is wrong with the first thing that is wrong with a query of these forms on a stream; "" for nothing."""
    try:
        plan = select_of(statement(forms)).plan
    except TextError as error:
        return error.problems[0].message
    assert plan is not None  # noqa: S101 - for the type: a SELECT has one
    plan = with_extent(plan, stream.columns.extent)
    return next((one.message for one in all_complaints(plan, stream)), "")


def why_not(one: Form, other: Form) -> str:
    """Why two forms do not go together, "" where they do."""
    return refused(together(one, other))


def together(one: Form, other: Form) -> tuple[Form, ...]:
    """Two forms, and what they need where they do not go together without it."""
    needed = tuple(dict.fromkeys((*one.needs, *other.needs)))
    has_region = bool(one.inside or other.inside)
    is_alone = not needed or has_region or not refused((one, other))
    return (one, other) if is_alone else (one, other, *needed)


def pairs() -> list[tuple[Form, Form]]:
    """All pairs of forms, but of those that are two lists behind SELECT."""
    asked = combinations(FORMS, 2)
    return [(one, other) for one, other in asked if not (one.select and other.select)]


def page() -> str:
    """The page as it should be."""
    answers = [(one, other, why_not(one, other)) for one, other in pairs()]
    wrong = [each for each in answers if each[2]]
    rows = [f"| {one.name} | {other.name} | {why} |" for one, other, why in wrong]
    good = len(answers) - len(wrong)
    count = f"Of {len(answers)} pairs {good} go together, all but these:"
    table = ["| this | with | what the error says |", "|---|---|---|", *rows]
    return "\n".join([HEAD, count, "", *table, "", *_on_others(), ""])


def _on_others() -> list[str]:
    """Which forms a stream of boxes has not, and which a layer, though a stream of places has them."""
    return [
        "## Where elements are more than places",
        "",
        "On a stream of boxes, or of lines and areas, these say nothing of an element as a whole and are refused:",
        "",
        *_refused_on(BOXES),
        "",
        "## Where FROM names a layer",
        "",
        "Features of a layer do not move, and come and go with its versions. So these are refused, and all else goes:",
        "",
        *_refused_on(LAYER, (*map(_at_rest, FORMS), *_MOTION)),
    ]


_MOTION = (Form(name="columns of motion: `speed_mps`, ..", select="t.speed_mps"),)


def _at_rest(form: Form) -> Form:
    """The form without a column of motion."""
    where, select = (
        text.replace("speed_mps", "x") for text in (form.where, form.select)
    )
    return replace(form, where=where, select=select)


def _refused_on(stream: StreamSettings, forms: tuple[Form, ...] = FORMS) -> list[str]:
    """The forms that are refused on a stream, as a table."""
    needed = [(one, *((one.needs) if refused((one,)) else ())) for one in forms]
    answers = [(forms[0].name, refused(forms, stream)) for forms in needed]
    return [
        "| this | what the error says |",
        "|---|---|",
        *(f"| {name} | {why} |" for name, why in answers if why),
    ]


def main() -> int:
    """Writes the page, or says whether it is fresh."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    checks, content = parser.parse_args().check, page()
    if not checks:
        PAGE.write_text(content, encoding="utf-8")
    elif not PAGE.is_file() or PAGE.read_text(encoding="utf-8") != content:
        sys.stderr.write(
            f"{PAGE} is not what the checks say: make generate ARGS=combinations\n"
        )
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
