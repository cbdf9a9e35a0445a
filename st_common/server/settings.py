"""What a server lets a request take, as the table `[server]` of `conf/operations.toml` says."""

from dataclasses import dataclass
from typing import Literal

from st_common.toml_values import Check, number, whole

Kind = Literal["ask", "read", "check", "register"]
"""What is answered in processes: questions, what reads the archive, what computes over all of it, registrations."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """What one request of a kind may take.

    Attributes:
        kind: of the request; its settings begin so.
        seconds: how long an answer may take.
        memory_mb: how much memory it may take.
        memory_key: the setting that says so.
        at_once: how many are answered at once; others wait.
    """

    kind: Kind
    seconds: float
    memory_mb: int
    memory_key: str
    at_once: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSettings:
    """What may be taken by requests that are answered in processes of their own.

    Attributes:
        ask_s: how long an answer to `POST /v1/sql`, `POST /page/ask` and `POST /v1/explain` may take, seconds.
        ask_memory_mb: how much memory it may take, and a registration.
        ask_at_once: how many are answered at once, each in a process of its own; others wait.
        read_s: how long an answer that reads what is archived may take (`GET /page/visits`, `GET /v1/why/Q`), seconds.
        read_at_once: how many of them are read at once; others wait. Their memory is `ask_memory_mb`.
        check_s: how long `POST /v1/verify`, `POST /v1/backtest` and `GET /v1/explain/Q?analyze=true` may take, seconds.
        check_memory_mb: how much memory one of them may take.
        check_at_once: how many of them run at once; others wait.
        register_s: how long a registration may take until it is written, seconds.
        register_at_once: how many registrations are understood at once; others wait.
    """

    ask_s: float = 30.0
    ask_memory_mb: int = 2048
    ask_at_once: int = 2
    read_s: float = 30.0
    read_at_once: int = 2
    check_s: float = 600.0
    check_memory_mb: int = 4096
    check_at_once: int = 2
    register_s: float = 30.0
    register_at_once: int = 4

    def bounds(self, kind: Kind) -> Bounds:
        """What a request of a kind may take."""
        if kind == "ask":
            seconds, at_once = self.ask_s, self.ask_at_once
        elif kind == "read":
            seconds, at_once = self.read_s, self.read_at_once
        elif kind == "check":
            seconds, at_once = self.check_s, self.check_at_once
        else:
            seconds, at_once = self.register_s, self.register_at_once
        is_check = kind == "check"
        return Bounds(
            kind=kind,
            seconds=seconds,
            memory_mb=self.check_memory_mb if is_check else self.ask_memory_mb,
            memory_key="check_memory_mb" if is_check else "ask_memory_mb",
            at_once=at_once,
        )


SERVER_KEYS: dict[str, Check] = {
    "ask_s": number(least=1.0),
    "ask_memory_mb": whole(most=1_000_000),
    "ask_at_once": whole(most=100),
    "read_s": number(least=1.0),
    "read_at_once": whole(most=100),
    "check_s": number(least=1.0),
    "check_memory_mb": whole(most=1_000_000),
    "check_at_once": whole(most=100),
    "register_s": number(least=1.0),
    "register_at_once": whole(most=100),
}
"""What each key of `[server]` may be; all have defaults."""
