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


WEB = {"flask", "flask_appbuilder", "flask_wtf", "werkzeug"}


def web_imports(tree: ast.Module) -> set[str]:
    """What a file imports of the web, or of the pages, when it is loaded: what a function imports comes later."""
    found: set[str] = set()
    for node in tree.body:
        if isinstance(node, ast.Import):
            found |= {one.name for one in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {f"{node.module}.{one.name}" for one in node.names}
    return {one for one in found if one.split(".")[0] in WEB or one.startswith("gridline_airflow.pages")}


def test_only_pages_load_a_web_framework(product: dict[str, ast.Module]) -> None:
    """What every process of Airflow loads of ours names no web framework and no page; the pages do."""
    of_plugins = {
        path: web_imports(tree) for path, tree in product.items() if path.startswith(("plugins/", "dags/"))
    }
    pages = {path for path, found in of_plugins.items() if found}
    assert pages
    assert {path for path in pages if not path.startswith("plugins/gridline_airflow/pages/")} == set()


def test_a_web_import_is_seen() -> None:
    """At the top of a file it is found, in either form; inside a function it is not meant."""
    source = (
        "import flask\nfrom gridline_airflow.pages import views\nimport json\ndef f():\n    import werkzeug"
    )
    assert web_imports(ast.parse(source)) == {"flask", "gridline_airflow.pages.views"}


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
