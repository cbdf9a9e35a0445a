"""A backtest as one HTML file that needs no network: `pages/backtest.html` says what it looks like."""

from itertools import groupby
from operator import itemgetter

from st_common.batch.backtest import Backtest
from st_common.quality.report import page_templates


def page(done: Backtest) -> str:
    """The page of a backtest: totals, each day, and examples. What queries and objects are called is escaped."""
    by_query = itemgetter("query")
    return (
        page_templates()
        .get_template("backtest.html")
        .render(
            done=done,
            days=(done.until - done.since).days,
            last=done.days["event_date"][-1].as_py() if len(done.days) else done.since,
            totals=done.totals.to_pylist(),
            by_day=done.days.to_pylist(),
            examples=[
                (query, list(rows))
                for query, rows in groupby(done.examples.to_pylist(), by_query)
            ],
        )
    )
