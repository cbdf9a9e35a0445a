"""Rows of tables put and deleted, and the queries that go with them: what all fronts call."""

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from st_common.config.home import Home
from st_common.layers.announce import layer_group
from st_common.layers.conversion import crs_of_group
from st_common.layers.declared import table_settings
from st_common.layers.options import FileOptions
from st_common.query.layer_following import follow_layers

if (
    TYPE_CHECKING
):  # what reads files of layers is an extra, and imported where it is used
    from st_common.config.stream import StreamSettings
    from st_common.layers.features import Features
    from st_common.layers.put import Put
    from st_common.layers.reading import Wanted

_AS_IT_SAYS = FileOptions()
_DEFAULT_GROUP = "default"


@dataclass(frozen=True, slots=True, kw_only=True)
class TableHome:
    """Where tables are changed.

    Attributes:
        home: the home folder.
        conf: the folder of the settings, whose layers.toml names kinds.
        streams: gives the settings of the streams: those of a table's group say which coordinates it has.
        before_writing: see `layers.put.put`.
    """

    home: Home
    conf: Path
    streams: "Callable[[], Mapping[str, StreamSettings]]"
    before_writing: Callable[[], None] | None = None

    def put(self, table: str, rows: Sequence[Mapping[str, Any]]) -> "Put":
        """Puts rows, see `layers.put.put`; queries about their surfaces go over to these.

        Raises:
            LayerError: see there.
        """
        from st_common.layers.put import put

        done = put(
            self.home,
            table,
            rows,
            self._wanted(table),
            now_us=_now_us(),
            before_writing=self.before_writing,
        )
        return self._followed(done)

    def load(
        self,
        table: str,
        file: Path,
        options: FileOptions = _AS_IT_SAYS,
        *,
        replaces: bool = False,
    ) -> "tuple[Put, Features]":
        """Puts all features of a file, in the place of all others if it `replaces`; see `layers.put.put_file`.

        Raises:
            LayerError: see there.
        """
        wanted = self._wanted(table, options)
        from st_common.layers.put import put_file

        done, features = put_file(
            self.home, table, file, wanted, now_us=_now_us(), replaces=replaces
        )
        return self._followed(done), features

    def delete(self, table: str, keys: Collection[str]) -> "Put":
        """Deletes rows, see `layers.put.delete`.

        Raises:
            LayerError: see there.
        """
        from st_common.layers.put import delete

        return self._followed(delete(self.home, table, keys, now_us=_now_us()))

    def _wanted(self, table: str, options: FileOptions = _AS_IT_SAYS) -> "Wanted":
        from st_common.layers.kinds import load_kinds
        from st_common.layers.put import require_table
        from st_common.layers.reading import Wanted

        require_table(self.home, table)
        settings = table_settings(self.home, table)
        group = None if settings is None else settings.group
        if group is None:
            group = layer_group(self.home, table) or _DEFAULT_GROUP
        crs = crs_of_group(self.streams().values(), group)
        return Wanted(load_kinds(self.conf), crs=crs, options=options)

    def _followed(self, done: "Put") -> "Put":
        follow_layers(self.home, self.streams)
        return done


def _now_us() -> int:
    return time.time_ns() // 1000
