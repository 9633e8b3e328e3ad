"""Sensors, triggers, operators and links of the DAG: Airflow on one side, the domain on the other."""
