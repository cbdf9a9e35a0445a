"""Tables of a client: of a home folder, and behind a server; see `interface.Table`."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from st_common.client.interface import Rectangle
from st_common.query.grammar.words import quoted

if TYPE_CHECKING:
    from st_common.query.table_rows import TableHome


def create_text(
    name: str,
    key: str,
    columns: Sequence[str],
    *,
    versions: int,
    ttl: str | None,
    group: str,
) -> str:
    """CREATE TABLE as text; its reader says what is wrong with it."""
    others = "".join(f", {quoted(one)}" for one in columns if one != key)
    texts = {"ttl": ttl, "group": group}
    given = [f"versions = {versions}"]
    given += [
        f"{name} = '{value.replace(chr(39), chr(39) * 2)}'"
        for name, value in texts.items()
        if value is not None
    ]
    head = f"CREATE TABLE {quoted(name)} ({quoted(key)} PRIMARY KEY{others})"
    return f"{head} WITH ({', '.join(given)})"


@dataclass(frozen=True, slots=True)
class _Made:
    """What both kinds of tables do by a text of the query language."""

    name: str
    run: Callable[[str], None]

    def create(
        self,
        key: str,
        columns: Sequence[str] = (),
        *,
        versions: int = 1,
        ttl: str | None = None,
        group: str = "default",
    ) -> None:
        """See `interface.Table`."""
        text = create_text(
            self.name, key, columns, versions=versions, ttl=ttl, group=group
        )
        self.run(text)

    def drop(self) -> None:
        """See `interface.Table`."""
        self.run(f"DROP TABLE {quoted(self.name)}")


@dataclass(frozen=True, slots=True)
class HomeTable(_Made):
    """A table of a home folder."""

    tables: "TableHome"

    def put(self, *rows: Mapping[str, Any]) -> dict[str, Any]:
        """See `interface.Table`."""
        return _plain(asdict(self.tables.put(self.name, rows)))

    def delete(self, key: str) -> dict[str, Any]:
        """See `interface.Table`."""
        return _plain(asdict(self.tables.delete(self.name, [key])))

    def get(self, key: str) -> list[dict[str, Any]]:
        """See `interface.Table`."""
        from st_common.layers.find import get

        return get(self.tables.home, self.name, key)

    def in_rectangle(self, box: Rectangle) -> dict[str, Any]:
        """See `interface.Table`."""
        from st_common.layers.find import in_rectangle

        return in_rectangle(self.tables.home, self.name, box).to_json()

    def joined(self, other: str, box: Rectangle) -> dict[str, Any]:
        """See `interface.Table`."""
        from st_common.layers.find import join_in_rectangle

        return join_in_rectangle(self.tables.home, self.name, other, box).to_json()


@dataclass(frozen=True, slots=True)
class HttpTable(_Made):
    """A table behind a server: `ask` gives the answer to a method, an address and more."""

    ask: Callable[..., dict[str, Any]]

    def put(self, *rows: Mapping[str, Any]) -> dict[str, Any]:
        """See `interface.Table`."""
        body = {"type": "FeatureCollection", "features": [*rows]}
        return self.ask("PUT", self._at("rows"), json=body)

    def delete(self, key: str) -> dict[str, Any]:
        """See `interface.Table`."""
        return self.ask("DELETE", self._at("rows"), params={"key": key})

    def get(self, key: str) -> list[dict[str, Any]]:
        """See `interface.Table`."""
        found: list[dict[str, Any]] = self.ask(
            "GET", self._at("rows"), params={"key": key}
        )["rows"]
        return found

    def in_rectangle(self, box: Rectangle) -> dict[str, Any]:
        """See `interface.Table`."""
        return self.ask("GET", self._at("items"), params=_bbox(box))

    def joined(self, other: str, box: Rectangle) -> dict[str, Any]:
        """See `interface.Table`."""
        path = f"{self._at('joined')}/{quote(other, safe='')}"
        return self.ask("GET", path, params=_bbox(box))

    def _at(self, what: str) -> str:
        return f"/v1/tables/{quote(self.name, safe='')}/{what}"


def _bbox(box: Rectangle) -> dict[str, str]:
    return {"bbox": ",".join(map(repr, box))}


def _plain(done: dict[str, Any]) -> dict[str, Any]:
    """As it comes by HTTP."""
    return {**done, "streams": list(done["streams"])}
