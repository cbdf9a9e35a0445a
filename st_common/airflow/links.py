"""Links from a task in Airflow's page to the report that it wrote, and to what it made on the live page."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from airflow.sdk import BaseOperatorLink, conf

from st_common.airflow.live_page import place_of
from st_common.config.environment import home_dir
from st_common.config.home import Home


def report_of(summary: Mapping[str, Any]) -> str:
    """The report in a job's summary: its `path`, or that of its last day or page; "" when it names none.

    {"path": A}   ->   A          {"days": [{"path": A}, {"path": B}]}   ->   B
    """
    parts = summary.get("days") or summary.get("pages") or [{}]
    return str(summary.get("path") or parts[-1].get("path") or "")


class ReportLink(BaseOperatorLink):
    """A button `Report` beside a task that wrote one."""

    name = "Report"

    def get_link(self, operator: Any, *, ti_key: Any) -> str:  # noqa: ARG002 - Airflow's signature
        """The address of the report that the operator's job named; "" when it named none."""
        report = report_of(operator.summary or {})
        reports = Home(home_dir().resolve()).reports
        if not report or not Path(report).is_relative_to(reports):
            return ""
        return address_of(f"reports/{Path(report).relative_to(reports).as_posix()}")


class PageLink(BaseOperatorLink):
    """A button `Live page` beside a task that made something that the page shows: a layer, regions, answers."""

    name = "Live page"

    def get_link(self, operator: Any, *, ti_key: Any) -> str:  # noqa: ARG002 - Airflow's signature
        """The address of what the operator's job made; "" when it made nothing to be seen."""
        place = place_of(operator.job, operator.summary or {})
        return "" if place is None else address_of(f"page#{place}")


def address_of(path: str) -> str:
    """The address of one of our pages in Airflow's API server, as a browser asks for it."""
    base = conf.get("api", "base_url", fallback="/").rstrip("/")
    return f"{base}/fairway/{path}"
