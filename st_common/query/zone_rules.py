"""Zones of which the database has other rules than this machine: one of both does not know when clocks change there.

Countries change their rules. DuckDB, which carries out AT TIME ZONE, has those of its release; `time_zone` of a stream
goes by the machine's.
"""

from datetime import UTC, date, datetime, timedelta
from functools import lru_cache

from st_common.query.connections import OfThread
from st_common.times import zone_of

_SINCE, _UNTIL = 2000, 2037
_EVERY = timedelta(days=5)
_of_thread = OfThread()


def other_rules(zone: str) -> tuple[str, str] | None:
    """What is told of a zone, and what to do; None: both have the same rules from 2000 to 2036.

    Args:
        zone: a name that both know.
    """
    since = _differ_from(zone)
    if since is None:
        return None
    message = (
        f"DuckDB and this machine have different rules for {zone!r} from {since} on"
    )
    return message, "AT TIME ZONE goes by DuckDB's; bring DuckDB and tzdata up to date"


@lru_cache(maxsize=256)
def _differ_from(zone: str) -> date | None:
    """About from when on the rules differ."""
    begin = datetime(_SINCE, 1, 1, tzinfo=UTC)
    count = (datetime(_UNTIL, 1, 1, tzinfo=UTC) - begin) // _EVERY
    moments = [begin + number * _EVERY for number in range(count)]
    own = [moment.astimezone(zone_of(zone)) for moment in moments]
    naive = [moment.replace(tzinfo=None) for moment in moments]
    told = _of_thread.connection("").execute(
        "SELECT moment AT TIME ZONE 'UTC' AT TIME ZONE $zone FROM (SELECT unnest($moments) AS moment)",
        {"zone": zone, "moments": naive},
    )
    shown = [one for (one,) in told.fetchall()]
    pairs = zip(moments, own, shown, strict=True)
    return next(
        (at.date() for at, mine, other in pairs if mine.replace(tzinfo=None) != other),
        None,
    )
