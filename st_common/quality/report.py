"""The quality report of a day: one HTML file that needs nothing else, no network, no script."""

from collections.abc import Sequence
from datetime import date
from html import escape
from pathlib import Path

from st_common.home import Home
from st_common.quality.check import StreamDay
from st_common.quality.finding import COUNTED, Finding

_STYLE = """
body{font:15px/1.45 system-ui,sans-serif;margin:2rem auto;max-width:70rem;padding:0 1rem;color:#1c2733}
h1{font-size:1.5rem}h2{font-size:1.2rem;margin-top:2rem;border-bottom:1px solid #d5dde5}h3{font-size:1rem}
table{border-collapse:collapse;margin:.5rem 0 1rem;width:100%}
th,td{text-align:left;padding:.25rem .6rem;border-bottom:1px solid #e6ebf0;vertical-align:top}
td.n{text-align:right;font-variant-numeric:tabular-nums}
.pass{color:#1a7f37}.fail{color:#b3261e;font-weight:600}.warn{color:#9a6700;font-weight:600}
code{font-size:.85em;word-break:break-all}
"""


def report_path(home: Home, day: date) -> Path:
    """Where the report of a day lies."""
    return home.root / "reports" / "quality" / f"{day.isoformat()}.html"


def write_report(home: Home, day: date, streams: Sequence[StreamDay]) -> Path:
    """Writes the report of a day, replacing an earlier one in one step.

    Args:
        home: it lies in `reports/quality` there.
        day: the day (UTC).
        streams: what was found.

    Returns:
        The file.
    """
    path = report_path(home, day)
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}")
    draft.write_text(render(day, streams), encoding="utf-8")
    draft.replace(path)
    return path


def render(day: date, streams: Sequence[StreamDay]) -> str:
    """The report of a day as HTML.

    Args:
        day: the day (UTC).
        streams: what was found; of each, what happened to its records, and per table every rule with its verdict.
    """
    breaches = sum(len(stream.breaches) for stream in streams)
    verdict = (
        _mark("fail", f"{breaches} broken")
        if breaches
        else _mark("pass", "all promises kept")
    )
    body = (
        "".join(_stream(stream) for stream in streams)
        or "<p>No stream has closed this day.</p>"
    )
    title = f"Data quality of {day.isoformat()}"
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        f"<style>{_STYLE}</style></head><body><h1>{title}: {verdict}</h1>{body}</body></html>\n"
    )


def _stream(stream_day: StreamDay) -> str:
    named = {
        "fixes": stream_day.tally.fixes,
        "objects": stream_day.tally.objects,
        "changes": stream_day.tally.changes,
        "late": stream_day.tally.late,
        "double": stream_day.tally.double,
        **{f"filtered: {name}": n for name, n in stream_day.tally.filtered.items()},
        "rejects": sum(stream_day.tally.rejects.values()),
        **{
            f"rejects: {reason}": count
            for reason, count in stream_day.tally.rejects.items()
        },
    }
    counts = "".join(
        f'<tr><td>{escape(name)}</td><td class="n">{count:,}</td></tr>'
        for name, count in named.items()
    )
    checked = [
        finding for finding in stream_day.findings if finding.expected != COUNTED
    ]
    names = dict.fromkeys(finding.table for finding in checked)
    rules = "".join(
        _table(name, [finding for finding in checked if finding.table == name])
        for name in names
    )
    return f"<h2>Stream {escape(stream_day.stream)}</h2><table>{counts}</table>{rules}"


def _table(name: str, findings: Sequence[Finding]) -> str:
    rows = "".join(_row(finding) for finding in findings)
    head = "<tr><th>verdict</th><th>rule</th><th>demands</th><th>breaks it</th><th>of rows</th><th>examples</th></tr>"
    return f"<h3>{escape(name)}</h3><table>{head}{rows}</table>"


def _row(finding: Finding) -> str:
    verdict = (
        _mark("pass", "kept")
        if finding.passed
        else _mark("fail" if finding.is_breach else "warn", "broken")
    )
    observed = (
        "not measured" if finding.observed is None else f"{finding.observed:,.0f}"
    )
    return (
        f"<tr><td>{verdict}</td><td>{escape(finding.rule)}</td><td>{escape(finding.expected)}</td>"
        f'<td class="n">{observed}</td><td class="n">{finding.rows:,}</td>'
        f"<td><code>{escape(finding.details)}</code></td></tr>"
    )


def _mark(kind: str, text: str) -> str:
    return f'<span class="{kind}">{escape(text)}</span>'
