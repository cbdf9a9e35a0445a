"""Tasks that ask each other: each listens, and knows the others by what its driver says."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from st_common.errors import FairwayError
from st_common.operators.state.codec import from_blob, to_blob
from st_common.spark.exchange import wire
from st_common.spark.exchange.wire import (
    Address,
    Head,
    Keys,
    Listener,
    Wire,
    connected,
    error_of,
    failure,
)

HERE = -1
"""The number by which a task asks itself, whether or not it is a member."""

Arrays = Mapping[str, Any]
Answer = tuple[list[int], Arrays]
"""Counts and arrays, as the one who asks knows to read them."""


class Ask(NamedTuple):
    """What is asked of one member: `what`, with all that belongs to it, and arrays by name."""

    asked: dict[str, Any]
    arrays: Arrays


class Service(Protocol):
    """What a task answers by, from several threads."""

    def answer(self, asked: Mapping[str, Any], arrays: Any) -> Answer:
        """See `Answer`."""
        ...


class Peers:
    """This task and the others: asks them, and answers what they ask.

    Whoever does not answer is not asked any more, until the driver names the members anew; meanwhile this task answers
    in its place: every task can read every region, and the whole log.

    Args:
        host: the address to listen on, by which others reach this task.
        keys: of the run.
        services: what this task answers by, by `what` is asked.
    """

    def __init__(self, host: str, keys: Keys, services: Mapping[str, Service]) -> None:
        self._keys, self._services = keys, services
        self._listener = Listener(host, keys, self._serve, name="task")
        self.address = self._listener.address
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
        answers = {n: self._own(*ask) for n, ask in asks.items() if n not in waiting}
        for number in waiting:
            told = self._hear(self._members[number])
            answers[number] = told or self._own(*asks[number])
        return answers

    def close(self) -> None:
        """Listens no more, and closes all connections."""
        self._listener.close()
        for one in self._wires.values():
            one.close()

    def _own(self, asked: Mapping[str, Any], arrays: Arrays) -> Answer:
        """What this task answers."""
        return self._services[asked["what"]].answer(asked, arrays)

    def _send(self, number: int, ask: Ask) -> bool:
        """Asks a member, unless that is this task or one that is gone; whether it was asked."""
        if number == HERE or not self._members:
            return False
        address = self._members[number]
        if address == self.address or address in self._gone:
            return False
        try:
            if address not in self._wires:
                silent_s = wire.SILENT_S
                self._wires[address] = connected(address, self._keys, silent_s=silent_s)
            self._wires[address].send(ask.asked, to_blob(ask.arrays, {}))
        except (OSError, EOFError):
            self._leave(address)
            return False
        return True

    def _hear(self, address: Address) -> Answer | None:
        """What a member answers; None where it does not."""
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

    def _serve(self, connection: Wire) -> None:
        """Answers one other task until it breaks off."""
        while True:
            connection.send(*self._answer(*connection.receive()))

    def _answer(self, asked: Head, body: bytes) -> tuple[Head, bytes]:
        numbers = {name: np.asarray(one) for name, one in from_blob(body)[0].items()}
        try:
            counts, arrays = self._own(asked, numbers)
        except FairwayError as error:
            return failure(error), b""
        return {"is": "answer", "counts": counts}, to_blob(arrays, {})
