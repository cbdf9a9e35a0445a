"""The page of all days and streams: which were judged, what came of it, how the measures went."""

from dataclasses import dataclass
from datetime import date
from pathlib import Path

from st_common import tables
from st_common.asking import asking
from st_common.config.home import Home
from st_common.quality.finding import data_label
from st_common.quality.report import page_templates, reports_dir, write_page
from st_common.quality.trends import Trend, Trends, trends_of

_VERDICTS = """
    SELECT date, split_part("table", '/', 2) AS stream,
        count(*) FILTER (NOT passed AND severity = 'error') AS errors,
        count(*) FILTER (NOT passed AND severity = 'warning') AS warnings
    FROM findings WHERE "table" LIKE '%/%' AND "table" NOT LIKE 'layers/%'
    GROUP BY ALL ORDER BY date DESC, stream"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What came of one day of one stream.

    Attributes:
        errors: broken rules of severity error.
        warnings: broken rules of severity warning.
    """

    errors: int
    warnings: int


def write_index(home: Home) -> Path:
    """Writes `index.html` beside the reports, from the table `quality`; gives its path."""
    path = reports_dir(home) / "index.html"
    verdicts = _verdicts(home)
    days = sorted({day for day, _ in verdicts}, reverse=True)
    streams = sorted({stream for _, stream in verdicts})
    labels = [data_label(name) for name in streams]
    trends = trends_of(home, labels, max(days, default=date.min))
    page = page_templates().get_template("index.html")
    text = page.render(
        streams=streams,
        days=[(day, [verdicts.get((day, name)) for name in streams]) for day in days],
        reported={day for day in days if path.with_name(f"{day}.html").is_file()},
        trends=_by_stream(trends),
    )
    write_page(path, text)
    return path


def _verdicts(home: Home) -> dict[tuple[date, str], Verdict]:
    path = home.table("quality")
    if not tables.exists(path):
        return {}
    columns = ["date", "table", "passed", "severity"]
    with asking() as connection:
        connection.register("findings", tables.read(path, columns=columns))
        rows = connection.execute(_VERDICTS).fetchall()
    return {
        (day, stream): Verdict(errors=errors, warnings=warnings)
        for day, stream, errors, warnings in rows
    }


def _by_stream(trends: Trends) -> list[tuple[str, list[tuple[str, Trend]]]]:
    """The trends of at least two days, by stream and in it by rule."""
    by_stream: dict[str, list[tuple[str, Trend]]] = {}
    for label, rule in sorted(trends):
        if len(trends[label, rule]) > 1:
            stream = label.partition("/")[2]
            by_stream.setdefault(stream, []).append((rule, trends[label, rule]))
    return list(by_stream.items())
