"""Airflow runs every .py under plugins/ as a stray module: the folder shows it one thin file and hides the rest."""

import ast

DOOR = "plugins/gridline_plugin.py"


def test_airflow_is_shown_one_thin_file(texts: dict[str, str]) -> None:
    """Beside the package there is only the door, and the door is thin."""
    shown = [
        path
        for path in texts
        if path.startswith("plugins/") and path.endswith(".py") and path.count("/") == 1
    ]
    assert shown == [DOOR]
    assert texts[DOOR].count("\n") <= 80


def test_the_package_is_hidden_from_airflow(texts: dict[str, str]) -> None:
    """plugins/.airflowignore lists the package's folder, or Airflow would run each of its files by bare name."""
    lines = [line.split("#")[0].strip() for line in texts["plugins/.airflowignore"].splitlines()]
    assert {"gridline_airflow/", "gridline_airflow"} & set(lines)


def test_nothing_waits_inside_dags(product: dict[str, ast.Module]) -> None:
    """Sensors and triggers stand in plugins/gridline_airflow, where the triggerer can import them, never in dags/."""
    bases = [
        f"{path}:{node.name}"
        for path, tree in product.items()
        if path.startswith("dags/")
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
    ]
    assert bases == []
