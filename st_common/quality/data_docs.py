"""A validation result as a page of Great Expectations' Data Docs that needs no network.

Their page loads fifteen scripts and styles from elsewhere, and no setting changes that. What it says stands in its HTML
all the same: here everything is taken out that is loaded, and a policy in the page forbids browsers the rest.
"""

import re
from typing import Any

_LOADED = re.compile(
    r"<script\b.*?</script\s*>|<link\b[^>]*>|<img\b[^>]*>", re.DOTALL | re.IGNORECASE
)
_HEAD = """<head>
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<style>
body { font: 15px/1.5 sans-serif; margin: 2rem auto; max-width: 60rem; padding: 0 1rem; }
table { border-collapse: collapse; margin: .5rem 0; }
th, td { border-bottom: 1px solid #ccc; padding: .2rem .6rem; text-align: left; vertical-align: top; }
nav ul { list-style: none; padding: 0; }
/* what only scripts would bring to life */
[onclick], .card:has([onclick]), footer, .modal { display: none; }
</style>"""


def data_docs_page(result: Any) -> str:
    """The page that Great Expectations makes of a validation result, without anything that is loaded or run.

    Args:
        result: an `ExpectationSuiteValidationResult`.

    Returns:
        HTML; links in it lead to places in the page, or out of it when somebody follows them.
    """
    from great_expectations.render.renderer.page_renderer import (
        ValidationResultsPageRenderer,
    )
    from great_expectations.render.view.view import DefaultJinjaPageView

    renderer: Any = ValidationResultsPageRenderer(run_info_at_end=True)
    view: Any = DefaultJinjaPageView()
    page: str = view.render(renderer.render(result))
    return _LOADED.sub("", page).replace("<head>", _HEAD, 1)
