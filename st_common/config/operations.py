"""How an installation is looked after: the tables of `conf/operations.toml` that need nothing but themselves.

`[alerts]` and `[lineage]` name a receiver, and stand beside those: `delivery.alerting`, `lineage.settings`.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeVar

from st_common.config.keys import Place, key, known, of_table, read_toml, without_effect
from st_common.config.values import WrongError, number, table, takes, text, whole

T = TypeVar("T")
FILE = "operations.toml"
_TABLES = ("supervisor", "alerts", "notifier", "lineage", "retention", "server")
_SECONDS = number(least=1.0)
_MB = whole(most=1_000_000)
_AT_ONCE = whole(most=100)
_DAYS = whole(most=36_500)

Kind = Literal["ask", "read", "check", "register"]
"""What is answered in processes: questions, what reads the archive, what computes over all of it, registrations."""


def operations_table(conf: Path, name: str) -> tuple[Mapping[str, Any], Place] | None:
    """One table of `conf`/operations.toml, and where it stands; None when there is no such table, or no file.

    Raises:
        ConfigError: the file is no TOML, or has another table than are known.
    """
    try:
        document, place = read_toml(conf / FILE)
    except FileNotFoundError:
        return None
    known(document, _TABLES, place)
    if name not in document:
        return None
    if not isinstance(document[name], dict):
        raise place.wrong(f"{name} must be a table", hint=f"[{name}]")
    return document[name], place.below(name, called=f"{name}:")


def operations_of(conf: Path, name: str, kind: type[T]) -> T:
    """What one table of `conf`/operations.toml says; the defaults without the file or the table.

    Args:
        conf: the folder of the settings.
        name: of the table.
        kind: what declares it; all keys have defaults.

    Raises:
        ConfigError: the file is no TOML, or a key is unknown, of the wrong type or out of its range; the message names
            it.
    """
    said = operations_table(conf, name)
    return kind() if said is None else of_table(kind, *said)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """When the supervisor loses patience.

    Attributes:
        start_grace_s: a process may say nothing for so long after its start.
        silent_s: what has said nothing for longer hangs, whatever it said before.
        stuck_s: how long an engine may stand still while segments wait.
        start_up_s: how long it may in its start-up, up to the end of its first batch.
        batch_s: how long it may in another batch.
        rejoin_s: how long it may while a layer or a query waits in the log.
        slow_s: an engine is slow when the oldest waiting segment is older than this, and three looks in a row saw more
            and more waiting.
        stop_grace_s: from the wish to stop until the process is killed; a start-up or a batch may end first.
        slow_looks: how many looks that are; nothing that people set, as all that follow.
        back_off_s: the first pause between starts; each one after it is twice as long.
        back_off_max_s: the longest of these pauses.
        breaker_starts: so many starts within breaker_window_s are a crash loop, with longer pauses between starts.
        breaker_window_s: starts that are older count no more.
        crash_pause_max_s: the longest of these pauses; the first is back_off_max_s.
    """

    start_grace_s: float = field(default=180.0, metadata=key(_SECONDS))
    # Engines say something every five seconds.
    silent_s: float = field(default=60.0, metadata=key(number(least=15.0)))
    stuck_s: float = field(default=300.0, metadata=key(_SECONDS))
    start_up_s: float = field(default=1800.0, metadata=key(_SECONDS))
    batch_s: float = field(default=900.0, metadata=key(_SECONDS))
    rejoin_s: float = field(default=3600.0, metadata=key(_SECONDS))
    slow_s: float = field(default=60.0, metadata=key(_SECONDS))
    stop_grace_s: float = field(default=60.0, metadata=key(_SECONDS))
    slow_looks: int = 3
    back_off_s: float = 10.0
    back_off_max_s: float = 300.0
    breaker_starts: int = 5
    breaker_window_s: float = 1800.0
    crash_pause_max_s: float = 3600.0


_ORDERED = (
    ("stuck_s", "batch_s"),
    ("batch_s", "rejoin_s"),
    ("stuck_s", "start_up_s"),
)  # a limit, and the one that is never shorter
_PAUSES = "pauses between starts grow from 10 s to 5 minutes, of a crash loop (5 starts in 30 minutes) to an hour"
_GONE = {
    **without_effect("three looks in a row", "slow_looks"),
    **without_effect(_PAUSES, "back_off_s", "back_off_max_s", "crash_pause_max_s"),
    **without_effect(_PAUSES, "breaker_starts", "breaker_window_s"),
}


def limits_of(conf: Path) -> Limits:
    """The supervisor's limits: those of the table `[supervisor]`, and the defaults of the others.

    Raises:
        ConfigError: see `operations_of`; or two limits do not go together.
    """
    said = operations_table(conf, "supervisor")
    if said is None:
        return Limits()
    limits = of_table(Limits, *said, elsewhere=_GONE)
    for name, longer in _ORDERED:
        least, most = getattr(limits, name), getattr(limits, longer)
        if least > most:
            raise said[1].wrong(
                f"{name} = {least:g} is more than {longer} = {most:g}",
                hint="set both",
            )
    return limits


@takes("the path of a class, `package.module.Class`", type="string")
def _class_path(value: object) -> str:
    if not isinstance(value, str) or "." not in value:
        raise WrongError("must be the path of a class: package.module.Class")
    return value


@dataclass(frozen=True, slots=True, kw_only=True)
class Notifier:
    """One of Airflow's notifiers, which is told of errors; whether there is such a class, only Airflow knows.

    Attributes:
        class_: "airflow.providers.smtp.notifications.smtp.SmtpNotifier", or another that Airflow can import.
        arguments: what it takes; {{ alerts }} in a text is the text of the errors: { to = "..", html_content =
            "{{ alerts }}" }.
    """

    class_: str = field(metadata=key(_class_path))
    arguments: Mapping[str, Any] = field(
        default_factory=dict, hash=False, metadata=key(table)
    )


def notifier_of(conf: Path) -> Mapping[str, Any] | None:
    """Which of Airflow's notifiers is told of errors: its `class` and `arguments`; None without `[notifier]`.

    Raises:
        ConfigError: a key is unknown, missing or of the wrong type.
    """
    said = operations_table(conf, "notifier")
    if said is None:
        return None
    notifier = of_table(Notifier, *said)
    return {"class": notifier.class_, "arguments": notifier.arguments}


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptDays:
    """For how many days of the wall clock files stay that belong to no table.

    Attributes:
        alerts_days: lines of HOME/alerts.jsonl.
        reports_days: pages and results of days in HOME/reports/quality, and Data Docs.
    """

    alerts_days: int = field(default=730, metadata=key(_DAYS))
    reports_days: int = field(default=730, metadata=key(_DAYS))


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


_ORIGIN = re.compile(r"https?://[a-z0-9.-]+(:[0-9]{1,5})?")


@takes(
    "a list of origins, such as `https://maps.example`",
    type="array",
    items={"type": "string"},
)
def _origins(value: object) -> tuple[str, ...]:
    given = value if isinstance(value, list) else [None]
    if not all(isinstance(one, str) and _ORIGIN.fullmatch(one) for one in given):
        raise WrongError(
            'must be a list of origins, each in full and without a path: ["https://maps.example"]'
        )
    return tuple(given)


_TILES = re.compile(
    r"(?P<origin>https?://[A-Za-z0-9.-]+(:[0-9]{1,5})?)/[A-Za-z0-9._~!$&()*+=:@%/?{}-]+"
)
"""An address of tiles; no character of it ends a directive of a policy, or an attribute."""
_TILE_PARTS = ["{x}", "{y}", "{z}"]


@takes(
    "an address with `{z}`, `{x}` and `{y}`, such as `https://tile.example.org/{z}/{x}/{y}.png`",
    type="string",
    pattern="^https?://",
)
def _tile_url(value: object) -> str:
    named = re.findall(r"\{[^}]*\}?|\}", value) if isinstance(value, str) else []
    if not isinstance(value, str) or not _TILES.fullmatch(value):
        raise WrongError(
            "must be an address of tiles: http or https, without spaces, quotes, commas and semicolons",
            hint="https://tile.example.org/{z}/{x}/{y}.png",
        )
    if sorted(named) != _TILE_PARTS:
        raise WrongError(
            "must have {z}, {x} and {y}, each once, and nothing else in braces",
            hint="https://tile.example.org/{z}/{x}/{y}.png",
        )
    return value


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSettings:
    """What lies below the layers of the page, who may ask from a page elsewhere, and what requests may take.

    Those are the requests that are answered in processes of their own.

    Attributes:
        tile_url: raster tiles that the page draws below the layers, in place of the coast and the borders that it has
            with it; browsers ask for them, and tell that server where people look. None: nobody is asked.
        tile_attribution: whose map that is, as the page names it; without it, the host of the tiles.
        cors_origins: from which pages a browser may ask, such as `https://maps.example`; none: only from our own.
        ask_s: how long an answer to POST /v1/sql, /v1/explain or /page/ask may take, or about a long text.
        ask_memory_mb: how much memory it may take, and a registration.
        ask_at_once: how many are answered at once; others wait.
        read_s: how long an answer may take that reads what is archived, such as GET /page/visits.
        read_at_once: how many of them are read at once; others wait.
        check_s: how long POST /v1/verify, POST /v1/backtest and GET /v1/explain/Q?analyze=true may take.
        check_memory_mb: how much memory one of them may take.
        check_at_once: how many of them run at once; others wait.
        register_s: how long a registration may take until it is written.
        register_at_once: how many registrations are understood at once; others wait.
    """

    tile_url: str | None = field(default=None, metadata=key(_tile_url))
    tile_attribution: str | None = field(default=None, metadata=key(text))
    cors_origins: tuple[str, ...] = field(default=(), metadata=key(_origins))
    ask_s: float = field(default=30.0, metadata=key(_SECONDS))
    ask_memory_mb: int = field(default=2048, metadata=key(_MB))
    ask_at_once: int = field(default=2, metadata=key(_AT_ONCE))
    read_s: float = field(default=30.0, metadata=key(_SECONDS))
    read_at_once: int = field(default=2, metadata=key(_AT_ONCE))
    check_s: float = field(default=600.0, metadata=key(_SECONDS))
    check_memory_mb: int = field(default=4096, metadata=key(_MB))
    check_at_once: int = field(default=2, metadata=key(_AT_ONCE))
    register_s: float = field(default=30.0, metadata=key(_SECONDS))
    register_at_once: int = field(default=4, metadata=key(_AT_ONCE))

    def __post_init__(self) -> None:
        """Looks at the keys together: an attribution is of some tiles."""
        if self.tile_attribution is not None and self.tile_url is None:
            raise WrongError(
                "tile_attribution is of tiles, and there is no tile_url",
                hint="name the tiles by tile_url, or leave both out",
            )

    @property
    def tile_origin(self) -> str | None:
        """The origin of the tiles, as a policy of a page names it; None where there are none."""
        found = None if self.tile_url is None else _TILES.fullmatch(self.tile_url)
        return None if found is None else found["origin"]

    def bounds(self, kind: Kind) -> Bounds:
        """What a request of a kind may take; what is no check has the memory of a question."""
        memory_key = "check_memory_mb" if kind == "check" else "ask_memory_mb"
        return Bounds(
            kind=kind,
            seconds=getattr(self, f"{kind}_s"),
            memory_mb=getattr(self, memory_key),
            memory_key=memory_key,
            at_once=getattr(self, f"{kind}_at_once"),
        )
