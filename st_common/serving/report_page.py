"""A report as one HTML file, light and dark: `pages/report.html` says what it looks like."""

import re
from pathlib import Path

from jinja2 import Environment
from markupsafe import Markup

from st_common.serving.map_picture import draw
from st_common.serving.report import Report
from st_common.serving.templates import templates_in

_PAGES = Path(__file__).with_name("pages")
_SAID = re.compile(
    r"^\s*(register|replace)\s+query\s.*?\sas\s+", re.IGNORECASE | re.DOTALL
)  # the name stands above it


def page(report: Report, *, title: str, lead: str = "", footer: str = "") -> str:
    """The report as one HTML file that needs no network. Pointing at a query's row shows its answer alone on the map.

    Args:
        report: what it shows.
        title: plain text.
        lead: plain text below the title.
        footer: plain text at the end.
    """
    picture = Markup(draw(report.scene))  # noqa: S704 - escaped where it is drawn
    template = _environment().get_template("report.html")
    return template.render(
        report=report, picture=picture, title=title, lead=lead, footer=footer
    )


def _environment() -> Environment:
    environment = templates_in(_PAGES)
    environment.filters["said"] = lambda text: _SAID.sub("", text)
    return environment
