"""What Airflow's API server takes from us: see the entry point `airflow.plugins` in pyproject.toml."""

from typing import Any, ClassVar

from airflow.plugins_manager import AirflowPlugin

from st_common.airflow.form_guard import FormGuard


class FairwayPlugin(AirflowPlugin):
    """Refuses values that a form does not have."""

    name = "fairway"
    fastapi_root_middlewares: ClassVar[list[dict[str, Any]]] = [
        {"name": "values that a form does not have", "middleware": FormGuard}
    ]
