"""The quality report of a day, and the page of all days: HTML that needs nothing else, no network, no script."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from jinja2 import Environment

from st_common.answers.templates import templates_in
from st_common.config.home import Home
from st_common.log.log import Log
from st_common.quality.check import StreamDay
from st_common.quality.finding import COUNTED, DAY_IS_CLOSED, Finding, data_label
from st_common.quality.trends import Trends, trends_of
from st_common.rejects.replay import marked, rejects_of
from st_common.storage import LocalStorage

_EXAMPLES, _SHOWN = 3, 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejected:
    """The rejects of one reason.

    Attributes:
        reason: why they are no fixes.
        count: how many there are.
        again: how many of them a replay has put into the log again since.
        examples: the first three, as text, each at most 200 characters; what is no UTF-8 is escaped.
    """

    reason: str
    count: int
    again: int
    examples: tuple[str, ...]


def rejected_on(home: Home, stream: str, day: date) -> list[Rejected]:
    """The rejects of a stream that came on a day, by reason, those with the most records first.

    Args:
        home: where the table lies.
        stream: the stream.
        day: the day of the wall clock (UTC).
    """
    rows = marked(Log(home.log(stream)), rejects_of(home, stream, day=day))
    counts = rows["reason"].value_counts().to_pylist()
    counts.sort(key=lambda each: (-each["counts"], each["values"]))
    return [_of_reason(rows, each["values"]) for each in counts]


def _of_reason(rows: pa.Table, reason: str) -> Rejected:
    own = rows.filter(pc.field("reason") == reason)
    return Rejected(
        reason=reason,
        count=len(own),
        again=pc.sum(own["is_again"]).as_py(),
        examples=tuple(map(_shown, own["raw"].slice(0, _EXAMPLES).to_pylist())),
    )


def _shown(raw: bytes) -> str:
    text = raw.decode("utf-8", "backslashreplace")
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


_PAGES = Path(__file__).with_name("pages")


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """What the report of a day shows of one stream.

    Attributes:
        stream: its name.
        is_open: "" when the stream's clock has passed the day; else since when it is open.
        contract: the name and version of its contract; "" without one, or when it cannot be read.
        data_docs: the page of Data Docs on its data, from the report; "" when there is none.
        data: the findings on its data; none without a contract.
        counts: what happened to its records, by name.
        rejected: the records that came on the day and are no fixes.
        tables: the findings on the rows of its tables, by table.
        breaches: how many rules of severity error are broken.
    """

    stream: str
    is_open: str
    contract: str
    data_docs: str
    data: tuple[Finding, ...]
    counts: dict[str, int]
    rejected: Sequence[Rejected]
    tables: dict[str, list[Finding]]
    breaches: int


def reports_dir(home: Home) -> Path:
    """Where the reports lie."""
    return home.reports / "quality"


def report_path(home: Home, day: date) -> Path:
    """Where the report of a day lies."""
    return reports_dir(home) / f"{day.isoformat()}.html"


def data_docs_path(home: Home, stream: str, day: date) -> Path:
    """Where the page of Great Expectations' Data Docs on the data of a stream and a day lies."""
    return reports_dir(home) / _data_docs_page(stream, day)


def _data_docs_page(stream: str, day: date) -> str:
    """Where it lies, from the reports."""
    return f"data_docs/{stream}-{day.isoformat()}.html"


def write_report(
    home: Home,
    day: date,
    streams: Sequence[StreamDay],
    shared: Sequence[Finding] = (),
) -> Path:
    """Writes the report of a day, its results as JSON beside it, and Data Docs of streams that have a contract.

    Earlier ones are replaced, each in one step.

    Args:
        home: they lie in `reports/quality` there.
        day: the day (UTC).
        streams: what was found.
        shared: the findings on the tables that no stream has for itself.

    Returns:
        The page.
    """
    path = report_path(home, day)
    labels = [data_label(stream.stream) for stream in streams]
    sections = [
        section_of(stream, rejected_on(home, stream.stream, day)) for stream in streams
    ]
    for stream in streams:
        if stream.data.page:
            write_page(data_docs_path(home, stream.stream, day), stream.data.page)
    write_page(path, render(day, sections, trends_of(home, labels, day), shared))
    write_page(
        path.with_suffix(".json"), json.dumps(_results(day, streams, shared), indent=1)
    )
    return path


def delete_old_pages(home: Home, *, before: date) -> int:
    """Deletes reports, results and Data Docs of days (UTC) before one; gives how many files there were.

    The table `quality` still says what came of these days, for as long as its contract says.
    """
    folder = reports_dir(home)
    first = before.isoformat()
    pages = (*folder.glob("[0-9]*.*"), *folder.glob("data_docs/*.html"))
    old = [page for page in pages if page.stem[-len(first) :] < first]
    for page in old:
        page.unlink(missing_ok=True)
    return len(old)


def write_page(path: Path, text: str) -> None:
    """Puts a text into a file in one step: readers see the old one or the new one."""
    LocalStorage(path.parent).put(path.name, text.encode())


def render(
    day: date,
    sections: Sequence[Section],
    trends: Trends,
    shared: Sequence[Finding] = (),
) -> str:
    """The report of a day as HTML.

    Args:
        day: the day (UTC).
        sections: what is shown of each stream.
        trends: how the rules on data went in the days before.
        shared: the findings on the tables that no stream has for itself.
    """
    of_streams = sum(section.breaches for section in sections)
    breaches = of_streams + sum(finding.is_breach for finding in shared)
    template = page_templates().get_template("day.html")
    return template.render(
        day=day,
        breaches=breaches,
        sections=sections,
        trends=trends,
        shared=_by_table(shared),
    )


def section_of(stream_day: StreamDay, rejected: Sequence[Rejected]) -> Section:
    """What the report shows of a stream's day.

    Args:
        stream_day: what was found.
        rejected: its rejects.
    """
    own = data_label(stream_day.stream)
    rules = [
        finding
        for finding in stream_day.findings
        if finding.table != own and finding.expected != COUNTED
    ]
    return Section(
        stream=stream_day.stream,
        is_open="; ".join(
            finding.details
            for finding in stream_day.findings
            if finding.rule == DAY_IS_CLOSED
        ),
        contract=stream_day.data.contract,
        data_docs=_data_docs_link(stream_day),
        data=stream_day.data.findings,
        counts=_counts(stream_day),
        rejected=rejected,
        tables=_by_table(rules),
        breaches=len(stream_day.breaches),
    )


def page_templates() -> Environment:
    """The templates of the pages of quality, with the filter `observed`: a finding's number as people read it."""
    environment = templates_in(_PAGES)
    environment.filters["observed"] = _observed
    return environment


def _by_table(findings: Sequence[Finding]) -> dict[str, list[Finding]]:
    by_table: dict[str, list[Finding]] = {}
    for finding in findings:
        by_table.setdefault(finding.table, []).append(finding)
    return by_table


def _counts(stream_day: StreamDay) -> dict[str, int]:
    counted = stream_day.tally
    return {
        "fixes": counted.fixes,
        "objects": counted.objects,
        "changes": counted.changes,
        "late": counted.late,
        "double": counted.double,
        **{f"filtered: {name}": n for name, n in counted.filtered.items()},
        "rejects": sum(counted.rejects.values()),
    }


def _observed(finding: Finding) -> str:
    if finding.observed is None:
        return "" if finding.is_grey else "not measured"
    if finding.observed.is_integer():
        return f"{finding.observed:,.0f}"
    return f"{finding.observed:,.4g}"


def _results(
    day: date, streams: Sequence[StreamDay], shared: Sequence[Finding]
) -> dict[str, Any]:
    return {
        "day": day.isoformat(),
        "shared": [_plain(finding) for finding in shared],
        "streams": {
            stream.stream: {
                "contract": stream.data.contract,
                "findings": [_plain(finding) for finding in stream.findings],
                "great_expectations": stream.data.result,
            }
            for stream in streams
        },
    }


def _plain(finding: Finding) -> dict[str, Any]:
    return {**asdict(finding), "verdict": finding.verdict}


def _data_docs_link(stream_day: StreamDay) -> str:
    if not stream_day.data.page:
        return ""
    return _data_docs_page(stream_day.stream, stream_day.day)
