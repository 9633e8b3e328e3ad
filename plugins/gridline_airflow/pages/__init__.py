"""The operator's pages in Airflow's web server: views that read and act through the domain. Loaded nowhere else."""
