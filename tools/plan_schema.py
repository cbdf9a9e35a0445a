"""Writes data_contracts/plan.schema.json, the JSON Schema of plans, from the dataclasses that plans are made of."""

import json
from pathlib import Path

from st_common.query.schema import plan_schema

PATH = Path(__file__).resolve().parents[1] / "data_contracts" / "plan.schema.json"


def rendered() -> str:
    """The file's content."""
    return json.dumps(plan_schema(), indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    PATH.write_text(rendered(), encoding="utf-8")
    print(f"wrote {PATH.name}")
