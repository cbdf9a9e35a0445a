"""A client on a home folder of this machine."""

from collections.abc import Mapping
from datetime import datetime
from typing import Self

from st_common.client.changes import Changes
from st_common.client.client import Client
from st_common.client.interface import Rectangle
from st_common.client.put import Fixes, Put, put
from st_common.client.result import Result, placed
from st_common.engine.batch.backtest import Backtest, backtest
from st_common.query.area_store import HomeAreas
from st_common.query.lookup import find
from st_common.query.plan import Plan
from st_common.query.registry import fitted
from st_common.query.text import parse
from st_common.query.tried import tried_plans
from st_common.regions.registry import Box
from st_common.serving.history import NearestTo, objects_at
from st_common.serving.member_places import placed_answer
from st_common.serving.object_conditions import condition_of
from st_common.serving.sql import sql
from st_common.settings import StreamSettings, stream_of


class HomeClient(Client):
    """Does what `interface.Client` says, on a home folder."""

    def answer(self, query: str, at: datetime | None = None) -> Result:
        """See `interface.Client`."""
        stream = self._stream(find(self._home, query).stream)
        rows = placed_answer(self._home, self._streams, query, at)
        result = placed(rows, stream.crs)
        return Result(result.table.drop_columns(["x", "y"]), result.crs)

    def objects(
        self,
        stream: str,
        at: datetime | None = None,
        *,
        inside: Rectangle | None = None,
        nearest: tuple[int, float, float] | None = None,
        where: str | None = None,
    ) -> Result:
        """See `interface.Client`."""
        settings = self._stream(stream)
        box = None if inside is None else Box.of_corners(*inside)
        to = (
            None
            if nearest is None
            else NearestTo(k=nearest[0], x=nearest[1], y=nearest[2])
        )
        condition = None
        if where is not None:
            known = self._known_streams()
            condition = condition_of(self._home, known, stream, where)
        seen = objects_at(
            self._home, settings, at, inside=box, nearest=to, where=condition
        )
        return placed(seen.rows, settings.crs)

    def changes(
        self,
        query: str | None = None,
        *,
        stream: str | None = None,
        since: int | None = None,
        seconds: float | None = None,
        until_idle: bool = False,
    ) -> Changes:
        """See `interface.Client`."""
        return Changes(
            self._home,
            query,
            stream=None if stream is None else self._stream(stream).name,
            since=since,
            seconds=seconds,
            until_idle=until_idle,
            poll_s=self._poll_s,
        )

    def put(self, stream: str, fixes: Fixes, *, live: bool = True) -> Put:
        """See `interface.Client`."""
        return put(self._home, self._stream(stream), fixes, live=live)

    def sql(self, text: str) -> Result:
        """See `interface.Client`."""
        return Result(sql(self._home, text, self._known_streams))

    def backtest(
        self, text: str, stream: str, *, days: int = 30, against: str | None = None
    ) -> Backtest:
        """See `interface.Client`."""
        settings = self._stream(stream)
        old = None if against is None else self._plans(against, stream)
        plans = self._plans(text, stream)
        return backtest(self._home, settings, plans, days=days, against=old)

    def close(self) -> None:
        """See `interface.Client`."""
        for registration in self._open:
            registration.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _stream(self, name: str) -> StreamSettings:
        """The settings of a stream, looked for again where it is not known: somebody may have created it."""
        if name not in self._streams:
            self._streams = self._known_streams()
        return stream_of(self._streams, name)

    def _plans(self, text: str, stream: str) -> Mapping[str, Plan]:
        statements = parse(text, areas=HomeAreas(self._home))
        known, _ = fitted(self._home, self._streams, statements)
        return tried_plans(known, stream)
