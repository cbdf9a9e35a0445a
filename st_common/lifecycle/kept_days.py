"""How long alerts and pages of reports stay, as the table `[retention]` of `conf/operations.toml` says."""

from dataclasses import dataclass
from pathlib import Path

from st_common.ops.settings import operations_table
from st_common.toml_values import Check, checked, whole


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptDays:
    """For how many days of the wall clock files stay that belong to no table.

    Attributes:
        alerts_days: lines of `alerts.jsonl`.
        reports_days: pages and results of days, and Data Docs, in `reports/quality`.
    """

    alerts_days: int = 730
    reports_days: int = 730


def kept_days(conf: Path) -> KeptDays:
    """What `conf`/operations.toml says; the defaults without the file or the table.

    Raises:
        ConfigError: a key is unknown, of the wrong type or out of its range; the message names it.
    """
    table = operations_table(conf, "retention") or {}
    place = f"{conf / 'operations.toml'}: retention:"
    return KeptDays(**checked(table, DAYS_KEYS, KeptDays, place))


DAYS_KEYS: dict[str, Check] = {
    "alerts_days": whole(most=36_500),
    "reports_days": whole(most=36_500),
}
"""What each key of `[retention]` may be; all have defaults."""
