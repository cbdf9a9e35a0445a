"""Declared keys: what a docstring says of them, and the lines at which they stand."""

import tomllib
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from st_common.config.keys import Place, key, keys_of, line_of, of_table
from st_common.config.values import number, one_of, variable, whole
from st_common.errors import ConfigError

TEXT = """# tick_s and shards are told of below
[streams.a]
shards = 2
nulls = [
  "shards", # no key
  "tick_s",
]
[streams.b]
text = '''
[streams.b.spark]
'''
tick_s = 1
columns = { object = "id", x = "tick_s" }

[streams.b.spark]
cores = 1
"a b" = 3
[streams.c.sources.feed]
kind = "stdin"
"""


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("streams", 2),
        ("streams.a", 2),
        ("streams.a.shards", 3),
        ("streams.a.nulls", 4),
        ("streams.a.tick_s", 2),  # not there: its table is
        ("streams.b", 8),
        ("streams.b.tick_s", 12),
        ("streams.b.columns", 13),
        ("streams.b.columns.x", 13),
        ("streams.b.spark", 15),
        ("streams.b.spark.cores", 16),
        ("streams.b.spark.a b", 17),
        ("streams.c.sources.feed.kind", 19),
        ("streams.c.sources.feed.batch", 18),
        ("nothing", 1),
    ],
)
def test_the_line_of_a_key_is_where_it_begins(path, line):
    assert line_of(TEXT, tuple(path.split("."))) == line


@given(st.dictionaries(st.from_regex(r"[a-c_]{1,3}", fullmatch=True), st.integers()))
def test_each_key_of_a_table_is_found_in_its_line(table):
    lines = ["[t]", *(f"{name} = {value}" for name, value in table.items())]
    assert tomllib.loads("\n".join(lines))["t"] == table
    for number_, name in enumerate(table, 2):
        assert line_of("\n".join(lines), ("t", name)) == number_


@dataclass(frozen=True, slots=True, kw_only=True)
class Base:
    """What all have.

    Attributes:
        token_env: where the secret is,
            as always.
    """

    token_env: str | None = field(default=None, metadata=key(variable))


@dataclass(frozen=True, slots=True, kw_only=True)
class Shop(Base):
    """One shop.

    Attributes:
        name: of the shop; no key.
        kind: its kind ..
        class_: its class.
        every_s: how often.
    """

    name: str
    kind: str = field(metadata=key(one_of("small", "large")))
    class_: int = field(default=1, metadata=key(whole(most=3)))
    every_s: float | None = field(default=9.0, metadata=key(number(above=0, off=True)))


def test_keys_follow_from_fields_and_docstrings():
    keys = keys_of(Shop)
    assert list(keys) == ["token_env", "kind", "class", "every_s"]
    assert keys["token_env"].text == "where the secret is, as always"
    assert keys["kind"].text == "its kind .."
    assert (keys["class"].identifier, keys["class"].default) == ("class_", 1)
    assert keys["every_s"].takes == 'a number, above 0, or "off", seconds'
    assert [one.name for one in keys.values() if one.is_required] == ["kind"]


SHOP = 'kind = "small"\nclass = 2\nevery_s = "off"\n'


def shop(text):
    text = f"[shops.north]\n{text}"
    place = Place(file="shops.toml", text=text).below("shops", "north", called="shop:")
    table = tomllib.loads(text)["shops"]["north"]
    gone = {"mode": ("mode = {!r} is gone", "take it out")}
    return of_table(Shop, table, place, elsewhere=gone, given={"name": "north"})


def test_a_table_becomes_what_declares_it():
    assert shop(SHOP) == Shop(name="north", kind="small", class_=2, every_s=None)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("class = 1", "shops.toml:1: shop: kind is missing (one of small, large)"),
        (f"{SHOP}mode = 1", "shops.toml:5: shop: mode = 1 is gone (take it out)"),
        (f"{SHOP}name = 'x'", "shops.toml:5: shop: unknown key 'name' ("),
        (SHOP.replace("2", "4"), "shops.toml:3: shop: class = 4 must be a whole"),
        (f"{SHOP}token_env = 's3 cret'", "shops.toml:5: shop: token_env: is no name"),
    ],
)
def test_what_is_wrong_is_told_with_its_line(text, said):
    with pytest.raises(ConfigError) as error:
        shop(text)
    assert str(error.value).startswith(said)
    assert "s3 cret" not in str(error.value)
