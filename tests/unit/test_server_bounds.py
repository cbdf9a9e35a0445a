"""How each address is bounded: what the page says, by what the code says."""

import re
from pathlib import Path

import pytest

from st_common.config.home import Home
from st_common.config.operations import ServerSettings
from st_common.errors import QueryError
from st_common.server.app import ENDPOINTS
from st_common.server.installation import Installation
from st_common.server.parameters import Parameters

pytestmark = pytest.mark.spec("S8")

PAGE = Path(__file__).parents[2] / "docs" / "security.md"
SECTION = re.compile(r"## Requests that compute\n(.*?)\n## ", re.DOTALL)
NAMED = re.compile(r"`([A-Z]+) (/[^`?]*)(\?[^`=]*)?(?:=[^`]*)?`( with a long text)?")


def rows():
    """The cells of each row of the tables in which addresses stand."""
    (section,) = SECTION.findall(PAGE.read_text(encoding="utf-8"))
    lines = [line.strip("| ") for line in section.splitlines() if line[:1] == "|"]
    return [line.split(" | ") for line in lines if NAMED.search(line)]


def plain(path):
    """An address with one letter for each part that varies."""
    return re.sub(r"\{\w+\}|(?<=/)[A-Z](?=/|$|\.)", "_", path)


def addresses(cell):
    return [
        (method, plain(path), "?" if is_long else more)
        for method, path, more, is_long in NAMED.findall(cell)
    ]


def test_each_address_is_named_with_its_bound_and_no_other():
    named = {(one[0], one[1]) for row in rows() for one in addresses(row[0])}
    assert named == {(one.method, plain(one.path)) for one in ENDPOINTS}


def test_what_is_carried_out_apart_has_the_bounds_that_are_told():
    settings = ServerSettings()
    told = {
        address: row[1:]
        for row in rows()
        if len(row) == 4
        for address in addresses(row[0])
    }
    for one in ENDPOINTS:
        kinds = {f"?{name}": kind for name, kind in one.apart_with.items()}
        kinds |= {"": one.apart} if one.apart else {}
        kinds |= {"?": one.apart_if_long} if one.apart_if_long else {}
        for where, kind in kinds.items():
            bounds = settings.bounds(kind)
            gigabytes = bounds.memory_mb // 1024
            assert told.pop((one.method, plain(one.path), where)) == [
                f"{bounds.seconds:g} s",
                f"{gigabytes} GB",
                str(bounds.at_once),
            ]
    assert told == {}


def asked_for(text):
    return Parameters(
        place=Installation(home=Home(Path()), conf=Path()),
        path={},
        params={},
        body=text.encode(),
    )


RING = ",".join(["0 0", "1 0", "1 1"] * 33_333)
TEXTS = "'(', " * 100_000
TOO_LONG = {
    "polygon": (
        f"SELECT * FROM s INSIDE 'POLYGON(({RING},0 0,0 0))'",
        "100,001 points",
    ),
    "two rings": (f"CREATE AREA a AS 'POLYGON(({RING}),(0 0,0 0))'", "100,001 points"),
    "numbers": (f"SELECT * FROM s WHERE n IN ({'1,' * 100_000}2)", "100,001 values"),
    "texts": (f"SELECT * FROM s WHERE n IN ({TEXTS}'')", "100,001 values"),
}


@pytest.mark.parametrize(("text", "told"), TOO_LONG.values(), ids=TOO_LONG)
def test_what_has_too_many_members_is_refused_with_the_bound(text, told):
    with pytest.raises(QueryError, match=f"{told}, more than 100,000"):
        asked_for(text).text()


@pytest.mark.parametrize(
    "text",
    [
        f"SELECT * FROM s INSIDE 'POLYGON(({RING},0 0))'",
        f"SELECT * FROM s WHERE n IN ({'1,' * 99_999}2)",
        "REGISTER QUERY q AS SELECT x, y FROM s;" * 40_000,
    ],
    ids=["points", "values", "statements"],
)
def test_what_has_as_many_as_it_may_is_taken(text):
    assert asked_for(text).text() == text
