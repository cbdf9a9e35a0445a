"""Tasks that ask each other: each listens, and knows the others by what its driver says."""

import socket
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from st_common.errors import FairwayError
from st_common.operators.state.codec import from_blob, to_blob
from st_common.spark.exchange.wire import Head, Listener, Wire, error_of, failure

Address = tuple[str, int]

HERE = -1
"""The number by which a task asks itself, whether or not it is a member."""

_SILENT_S = 15.0
"""How long an answer is waited for; after that the one who asks answers for itself."""


Arrays = Mapping[str, Any]


class Ask(NamedTuple):
    """What is asked of one member: `what`, with all that belongs to it, and arrays by name."""

    asked: dict[str, Any]
    arrays: Arrays


Answer = tuple[list[int], Arrays]


class Service(Protocol):
    """What a task answers by, from several threads; see `RegionService` and `Decoding`."""

    def answer(self, asked: Mapping[str, Any], arrays: Any) -> Answer:
        """Counts and arrays, as the one who asks knows to read them."""
        ...


class Peers:
    """This task and the others: asks them, and answers what they ask.

    Whoever does not answer is not asked any more, until the driver names the members anew; meanwhile this task answers
    in its place: every task can read every region, and the whole log.

    Args:
        host: the address to listen on, by which others reach this task.
        token: shows that a task is of the same crew.
        service: what this task answers by.
        others: what it answers by where `what` is one of these.
    """

    def __init__(
        self,
        host: str,
        token: str,
        service: Service,
        others: Mapping[str, Service] | None = None,
    ) -> None:
        self._token, self._service, self._others = token, service, dict(others or {})
        self._listener = Listener(host, token, self._serve, name="peers")
        self.address: Address = self._listener.address
        self._members: list[Address] = []
        self._wires: dict[Address, Wire] = {}
        self._gone: set[Address] = set()

    def meet(self, members: Sequence[Sequence[Any]]) -> None:
        """Takes note of who is there, by host and port, in an order that all know."""
        met = [(str(host), int(port)) for host, port in members]
        if met != self._members:
            self._members, self._gone = met, set()
            for address in set(self._wires) - set(met):
                self._wires.pop(address).close()

    @property
    def count(self) -> int:
        """How many members there are, this one among them; at least 1."""
        return max(len(self._members), 1)

    @property
    def number(self) -> int | None:
        """Which member this task is; None before it has met the others."""
        here = self.address
        return self._members.index(here) if here in self._members else None

    def number_of(self, address: Sequence[Any] | None) -> int:
        """The number of the member at an address; `HERE` where that is this task, or nobody is known there."""
        sought = None if address is None else (str(address[0]), int(address[1]))
        if sought is None or sought == self.address or sought not in self._members:
            return HERE
        return self._members.index(sought)

    def ask(self, asks: Mapping[int, Ask]) -> dict[int, Answer]:
        """Asks members by their numbers, all at once; `HERE` is this task.

        Raises:
            LayerError: a layer cannot be read.
            LogError: a segment cannot be read.
            TransientError: something cannot be read now.
        """
        waiting = {number for number, ask in asks.items() if self._send(number, ask)}
        answers: dict[int, Answer] = {
            number: self._own(*ask)
            for number, ask in asks.items()
            if number not in waiting
        }
        for number in waiting:
            told = self._hear(number)
            answers[number] = told or self._own(*asks[number])
        return answers

    def _own(self, asked: Mapping[str, Any], arrays: Arrays) -> Answer:
        """What this task answers."""
        return self._others.get(asked["what"], self._service).answer(asked, arrays)

    def close(self) -> None:
        """Listens no more, and closes all connections."""
        self._listener.close()
        for wire in self._wires.values():
            wire.close()

    def _send(self, number: int, ask: Ask) -> bool:
        """Asks a member, unless that is this task or one that is gone; whether it was asked."""
        if number == HERE:
            return False
        address = self._members[number] if self._members else self.address
        if address == self.address or address in self._gone:
            return False
        try:
            if address not in self._wires:
                self._wires[address] = self._connected(address)
            self._wires[address].send(ask.asked, to_blob(ask.arrays, {}))
        except OSError:
            self._leave(address)
            return False
        return True

    def _connected(self, address: Address) -> Wire:
        connection = socket.create_connection(address, timeout=_SILENT_S)
        wire = Wire(connection)
        wire.send({"is": "hello", "token": self._token})
        return wire

    def _hear(self, number: int) -> Answer | None:
        """What a member answers; None where it does not."""
        address = self._members[number]
        try:
            head, body = self._wires[address].receive()
        except (OSError, EOFError):
            self._leave(address)
            return None
        if head["is"] == "failed":
            raise error_of(head)
        return head["counts"], from_blob(body)[0]

    def _leave(self, address: Address) -> None:
        self._gone.add(address)
        if address in self._wires:
            self._wires.pop(address).close()

    def _serve(self, wire: Wire, _hello: Head) -> None:
        """Answers one other task until it breaks off."""
        while True:
            wire.send(*self._answer(*wire.receive()))

    def _answer(self, asked: Head, body: bytes) -> tuple[Head, bytes]:
        try:
            counts, arrays = self._own(asked, _numbers(body))
        except FairwayError as error:
            return failure(error), b""
        return {"is": "answer", "counts": counts}, to_blob(arrays, {})


def _numbers(body: bytes) -> dict[str, np.ndarray]:
    arrays, _ = from_blob(body)
    return {name: np.asarray(values) for name, values in arrays.items()}
