"""What DAGs make that others wait for: who makes it names it as an outlet, who waits for it as a schedule."""

from airflow.sdk import Asset

REGIONS = Asset(name="fairway_regions", uri="fairway://home/tables/regions")
LAYERS = Asset(name="fairway_layers", uri="fairway://home/tables/layers")
QUALITY = Asset(name="fairway_quality", uri="fairway://home/tables/quality")
LATE = Asset(name="fairway_late_fixes", uri="fairway://home/tables/positions")
"""Late fixes came for days that were processed: they are due again."""
