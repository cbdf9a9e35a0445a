"""Days of a town's taxis for the rules on data: usual ones, how each may be spoilt, and a log that they arrive in."""

from dataclasses import dataclass, replace
from datetime import UTC, date, datetime

import numpy as np

from st_common.config.home import Home
from st_common.config.streams import load_streams
from st_common.engine.archive import Archive
from st_common.log.record_settings import log_for

SETTINGS = """
[streams.taxis]
format = "csv"
columns = { object = "id", event_ts = "t", x = "x", y = "y" }
time_unit = "s"
attributes = { speed = "double km/h", class = "string" }
"""
QUARTER_S = 900
HOLIDAY = date(2024, 3, 18)  # a Monday on which taxis go as on Sundays
_FIRST = date(2024, 1, 1)  # from which the town grows
_SUNDAY = 6


@dataclass(frozen=True, kw_only=True)
class Records:
    """Records of a day, and how late each one arrives."""

    taxi: np.ndarray
    at_s: np.ndarray
    told_s: np.ndarray
    x: np.ndarray
    y: np.ndarray
    speed: np.ndarray
    kind: np.ndarray

    def where(self, kept: np.ndarray) -> "Records":
        """Those that are kept (bool[n]), or of these places."""
        return Records(**{name: values[kept] for name, values in vars(self).items()})

    def lines(self) -> np.ndarray:
        """As lines of CSV; object[n]."""
        columns = (self.taxi, self.told_s, self.x, self.y, self.speed, self.kind)
        rows = zip(*(column.tolist() for column in columns), strict=True)
        return np.array([",".join(map(str, row)) for row in rows], object)


def arrive(
    home: Home,
    *several: Records,
    others: bytes = b"",
    later_s: int = 0,
) -> None:
    """Puts records into the log, a segment for each quarter of an hour, and stores them as an engine does.

    Args:
        home: with the stream's settings.
        several: records of some quarters, each later than those before and than what is there.
        others: bytes that come with the first of them.
        later_s: so long after they were made they arrive.
    """
    stream = load_streams(home.root / "conf")["taxis"]
    log = log_for(home, stream)
    for records in several:
        lines, quarter = records.lines(), records.at_s // QUARTER_S
        for each in np.unique(quarter):
            body = "\n".join(["id,t,x,y,speed,class", *lines[quarter == each], ""])
            newest_s = int(records.at_s[quarter == each].max())
            arrival_us = (newest_s + 1 + later_s) * 1_000_000
            log.append(body.encode() + others, arrival_us=arrival_us)
            others = b""
    archive = Archive(home, stream)
    while archive.batch():
        pass


def midnight_s(day: date) -> int:
    """When a day begins, seconds since 1970."""
    return int(datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp())


def town_day(day: date, *, yard: float = 3e-5) -> Records:
    """A day as a town has them: fewer taxis at weekends and on a holiday, rush hours, noise, a slow growth.

    Taxis are in the workshop now and then, stand at lights, and come new to the town every second week. Two of the
    reserve report from the yard all day, and drive on some days only.

    Args:
        day: the day (UTC).
        yard: by how many degrees the places of one that stands there stray; 0: receivers that give one place.
    """
    random = np.random.default_rng(day.toordinal())
    weekday = _SUNDAY if day == HOLIDAY else day.weekday()
    weeks = (day - _FIRST).days / 7
    fleet = 40 + int(weeks / 2)
    driving = {5: 0.75, 6: 0.55}.get(weekday, 1.0)
    numbers = np.arange(round(fleet * driving))
    numbers = numbers[random.random(len(numbers)) > 0.03]
    hours = (6.0, 23.5) if weekday > 4 else (4.5, 24.0)
    parts = [_drive(random, n, hours, weeks, weekday) for n in numbers.tolist()]
    parts += [_reserve(random, n, weeks, weekday, yard) for n in (90, 91)]
    columns = {
        name: np.concatenate([part[name] for part in parts]) for name in parts[0]
    }
    columns["at_s"] = columns["at_s"].astype(np.int64) + midnight_s(day)
    order = np.argsort(columns["at_s"], kind="stable")
    told_s = columns["at_s"].copy()
    return Records(told_s=told_s, **columns).where(order)


def _drive(
    random: np.random.Generator,
    number: int,
    hours: tuple[float, float],
    weeks: float,
    weekday: int,
) -> dict[str, np.ndarray]:
    """Where one taxi is from its first fix to its last, every quarter of an hour."""
    first, last = hours[0] * 4 + random.integers(3), hours[1] * 4 - random.integers(3)
    at_s = np.arange(int(first), int(last)) * QUARTER_S + number * 3
    at_s = at_s[random.random(len(at_s)) > 0.02] + random.integers(3)
    hour = at_s / 3600
    rush = 1 - 0.25 * np.exp(-((hour - 8) ** 2)) * (weekday < 5)
    speed = (32 + 0.1 * weeks) * rush + random.normal(0, 9, len(at_s))
    speed = np.clip(speed, 3, 70)
    stands = random.random(len(at_s)) < 0.08
    speed[stands] = 0
    way = np.cumsum(np.where(stands, 0, speed) * QUARTER_S / 3600 / 8)
    turn = np.abs(way % 20 - 10) / 10  # to and fro in a street of some kilometres
    noise = np.where(stands, 0, random.normal(0, 2e-5, len(at_s)))
    x = -8.65 + number * 1e-3 + turn * 0.05 + noise
    y = 41.15 + number * 5e-4 + turn * 0.03
    keep = np.maximum.accumulate(np.where(stands, 0, np.arange(len(at_s))))
    return {
        "taxi": np.full(len(at_s), f"t{number:02}", object),
        "at_s": at_s,
        "x": np.round(x[keep], 6),
        "y": np.round(y[keep], 6),
        "speed": np.round(speed, 1),
        "kind": np.full(len(at_s), "ABC"[number % 3], object),
    }


def _reserve(
    random: np.random.Generator, number: int, weeks: float, weekday: int, yard: float
) -> dict[str, np.ndarray]:
    part = _drive(random, number, (0, 24), weeks, weekday)
    if random.random() < 0.7:
        n = len(part["x"])
        part["x"] = np.round(-8.6 + random.normal(0, yard, n), 6)
        part["y"] = np.round(41.14 + random.normal(0, yard, n), 6)
        part["speed"] = np.zeros(n)
    return part


def mostly_lost(records: Records) -> Records:
    return records.where(np.arange(len(records.taxi)) % 50 == 0)


def five_objects_lost(records: Records) -> Records:
    return records.where(records.taxi >= "t05")


def five_objects_left(records: Records) -> Records:
    return records.where(records.taxi < "t05")


def an_hour_lost(records: Records) -> Records:
    hour = records.at_s % 86_400 // 3600
    return records.where(hour != 14)


def all_over_the_world(records: Records) -> Records:
    random = np.random.default_rng(7)
    n = len(records.taxi)
    return replace(
        records,
        x=np.round(random.uniform(-180, 180, n), 6),
        y=np.round(random.uniform(-85, 85, n), 6),
    )


def impossible_speeds(records: Records) -> Records:
    speed = records.speed.copy()
    speed[[100, 200]] = -5, 9999
    return replace(records, speed=speed)


def an_unknown_class(records: Records) -> Records:
    kind = records.kind.copy()
    kind[300] = "Z"
    return replace(records, kind=kind)


def a_clock_an_hour_off(records: Records) -> Records:
    own = records.taxi == "t07"
    return replace(records, told_s=records.told_s - 3600 * own)


def a_clock_an_hour_ahead(records: Records) -> Records:
    own = records.taxi == "t07"
    return replace(records, told_s=records.told_s + 3600 * own)


def one_id_for_two(records: Records) -> Records:
    """Two taxis, 14 km apart, that both call themselves t01."""
    other = records.taxi == "t40"
    taxi, x = records.taxi.copy(), records.x.copy()
    taxi[other] = "t01"
    x[other] += 0.17
    return replace(records, taxi=taxi, x=np.round(x, 6))


def doubles(records: Records) -> Records:
    more = np.arange(len(records.taxi)) % 10 < 3
    return records.where(np.repeat(np.arange(len(more)), 1 + more))


def metres_per_second(records: Records) -> Records:
    return replace(records, speed=np.round(records.speed / 3.6, 2))


def one_frozen(records: Records) -> Records:
    return _frozen(records, records.taxi == "t08")


def all_frozen_from_three(records: Records) -> Records:
    return _frozen(records, records.at_s % 86_400 >= 15 * 3600)


def _frozen(records: Records, is_frozen: np.ndarray) -> Records:
    """Of these fixes, all of an object are at the place of the last one before, or of the first."""
    x, y = records.x.copy(), records.y.copy()
    for taxi in np.unique(records.taxi):
        own = np.flatnonzero((records.taxi == taxi) & is_frozen)
        if len(own):
            x[own], y[own] = x[own[0]], y[own[0]]
    return replace(records, x=x, y=y)


def delivered_under_new_ids(records: Records) -> Records:
    again = np.repeat(np.arange(len(records.taxi)), 2)
    both = records.where(again)
    taxi = both.taxi.copy()
    taxi[1::2] = np.array([f"n{name}" for name in taxi[1::2]], object)
    return replace(both, taxi=taxi)


def two_decimals(records: Records) -> Records:
    return replace(records, x=np.round(records.x, 2), y=np.round(records.y, 2))
