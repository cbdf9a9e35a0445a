"""Changes that a receiver refused for good, kept in the table `dead_letters`."""

from collections.abc import Sequence

import pyarrow as pa

from st_common import tables
from st_common.answers.follow import Place
from st_common.config.home import Home
from st_common.contracts import load_contract
from st_common.delivery.message import Messages
from st_common.delivery.outcome import Refusal
from st_common.operations.records import private_folder

TABLE = "dead_letters"
Dead = tuple[int, Refusal]  # the place in a batch, and why


class DeadLetters:
    """The dead letters of one delivery: each change once, also when it was sent again after a crash."""

    def __init__(self, home: Home, delivery: str, stream: str, *, after: Place) -> None:
        self._path, self._delivery, self._stream = home.table(TABLE), delivery, stream
        self._contract = load_contract(TABLE)
        private_folder(self._path)  # words of receivers stand in it
        self._known = self._ids(after[0])

    def _ids(self, position: int) -> set[str]:
        if not tables.exists(self._path):
            return set()
        filters = [("delivery", "=", self._delivery), ("position", ">=", position)]
        return set(
            tables.read(self._path, columns=["id"], filters=filters)["id"].to_pylist()
        )

    def append(self, batch: Messages, dead: Sequence[Dead], *, now_us: int) -> int:
        """Stores changes of a batch in one commit; gives how many were not there already."""
        new = [
            (place, refusal)
            for place, refusal in dead
            if batch.ids[place] not in self._known
        ]
        if not new:
            return 0
        places = [place for place, _ in new]
        rows = batch.rows.select(["position", "seq", "query"]).take(
            pa.array(places, pa.int64())
        )
        columns = {
            "refused_ts": pa.array([now_us] * len(new), pa.timestamp("us", tz="UTC")),
            "delivery": pa.array([self._delivery] * len(new)),
            "stream": pa.array([self._stream] * len(new)),
            "id": pa.array([batch.ids[place] for place in places]),
            "reason": pa.array([refusal.reason for _, refusal in new]),
            "details": pa.array([refusal.details for _, refusal in new]),
            "body": pa.array([batch.lines[place].decode() for place in places]),
        }
        for name, column in columns.items():
            rows = rows.append_column(name, column)
        tables.append(self._path, rows, self._contract)
        self._known.update(batch.ids[place] for place in places)
        return len(new)
