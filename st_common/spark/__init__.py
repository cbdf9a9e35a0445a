"""The only place that imports pyspark, delta and sedona."""
