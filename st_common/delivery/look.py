"""One look after a home: streams and deliveries that should run do, and what is judged is kept and told."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from st_common.config.home import Home
from st_common.config.operations import notifier_of
from st_common.config.streams import Streams
from st_common.delivery.alerting import (
    AlertSettings,
    Notified,
    alert_settings,
    begin_alerting,
    notify,
)
from st_common.delivery.settings import wanted
from st_common.operations.beats import record_beats
from st_common.operations.decide import by_kind
from st_common.operations.judged import all_healths
from st_common.operations.lease import Lease
from st_common.operations.log_files import rotate_logs
from st_common.operations.records import write_record
from st_common.operations.supervising import holder_of
from st_common.operations.supervisor import job_supervisor, tick


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """What was done and seen.

    Attributes:
        told: healths of streams and deliveries, and what was done to which, as JSON values.
        notified: what became of new alerts; None: nobody is alerted.
    """

    told: Mapping[str, Any]
    notified: Notified | None


def look_after(
    home: Home,
    conf: Path,
    streams: Streams,
    *,
    now_us: int,
    by: Lease | None = None,
    act: bool = True,
) -> Look:
    """Compares the streams and deliveries that should run with what runs, acts, keeps what was judged, and alerts.

    Logs of processes that have grown are rotated.

    Args:
        home: the home folder.
        conf: the folder of the settings.
        streams: the settings of streams; `running` says what should run.
        now_us: now, us since 1970.
        by: the lease of who looks after the home for as long as he lives, see `tick`.
        act: False: what is to be done is said, and waits, with its alerts; those that engines raised are sent.

    Raises:
        ConfigError: the settings of deliveries or of alerts are wrong.
    """
    notifier = notifier_of(conf)
    deliveries = wanted(conf, streams)
    alerted = alert_settings(conf)
    if alerted is not None:
        begin_alerting(home)
    supervisor = job_supervisor(home, conf)
    if act:
        rotate_logs(home)
    done = tick(
        supervisor, streams, now_us=now_us, deliveries=deliveries, by=by, act=act
    )
    beats = record_beats(home, streams, now_us=now_us)
    judged = all_healths(home, streams, deliveries, now_us=now_us)
    write_record(home.judged, {"ts": now_us, **judged})
    notified = _notified(home, alerted)
    told = {
        **judged,
        **by_kind(done),
        "supervised_by": holder_of(home, by, now_us=now_us),
        "beats": beats,
        "notifier": notifier,
        "notified": None if notified is None else asdict(notified),
    }
    return Look(told=told, notified=notified)


def _notified(home: Home, alerted: AlertSettings | None) -> Notified | None:
    return None if alerted is None else notify(home, alerted)
