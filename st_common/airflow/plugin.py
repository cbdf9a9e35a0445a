"""What Airflow's API server and its scheduler take from us: see the entry point `airflow.plugins` in pyproject.toml."""

from typing import Any, ClassVar

from airflow.plugins_manager import AirflowPlugin

from st_common.airflow import notes
from st_common.airflow.links import PageLink, ReportLink
from st_common.airflow.site import PREFIX, site, views


class FairwayPlugin(AirflowPlugin):
    """Shows how streams are, what was reported and what runs did."""

    name = "fairway"
    fastapi_apps: ClassVar[list[dict[str, Any]]] = [
        {"name": "fairway", "app": site, "url_prefix": PREFIX}
    ]
    external_views: ClassVar[list[dict[str, Any]]] = views()
    listeners: ClassVar[list[Any]] = [notes]
    operator_extra_links: ClassVar[list[Any]] = [ReportLink(), PageLink()]
