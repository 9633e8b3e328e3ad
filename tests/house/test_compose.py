"""docker-compose.yaml and the images, held to the compose schema and to the programs, settings and ports of the local stack."""

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import jsonschema_rs
import pytest
import yaml  # type: ignore[import-untyped]  # has no types of its own

from gridline.operate.stack.programs import DATABASE, programs
from gridline.settings import ROOT, Settings, env_name, read_settings

# github.com/compose-spec/compose-spec, Apache License 2.0.
SCHEMA = json.loads((ROOT / "tests/house/data/compose-spec.json").read_text())
FILES = ("docker-compose.yaml", "deploy/compose.gpu.yaml")
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / FILES[0]).read_text())
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
OURS = {name: one for name, one in SERVICES.items() if str(one["image"]).startswith("gridline-")}
DOCKERFILE = (ROOT / "deploy/Dockerfile").read_text()
PROXY = (ROOT / "deploy/nginx/gridline.conf").read_text()
DASHBOARD_KNOWS = {"api", "proxy"}


def environment(service: str) -> dict[str, str]:
    """A service's environment, each variable with its default, or with a word where it has none."""
    return {name: _filled(str(value)) for name, value in SERVICES[service].get("environment", {}).items()}


def _filled(text: str) -> str:
    return re.sub(r"\$\{\w+(?::-([^}]*)|:\?[^}]*)?\}", lambda found: found[1] or "", text)


def settings_of(service: str) -> Settings:
    """The settings as the service's programs read them."""
    return read_settings(
        {name: value for name, value in environment(service).items() if name.startswith("GRIDLINE_")}
    )


def programs_of(service: str) -> list[str]:
    """The stack's programs that a service runs."""
    words = shlex.split(" ".join(SERVICES[service].get("command", [])))
    if "up" in words:
        return list(programs(settings_of(service)))
    return [
        words[place + 2]
        for place, word in enumerate(words[:-2])
        if (word, words[place + 1]) == ("gridline", "run")
    ]


@pytest.mark.parametrize("path", FILES)
def test_the_files_keep_to_the_compose_schema(path: str) -> None:
    """Each key is one that compose knows, with a value of its kind."""
    errors = [
        f"{list(error.instance_path)}: {error.message}"
        for error in jsonschema_rs.validator_for(SCHEMA).iter_errors(
            yaml.safe_load((ROOT / path).read_text())
        )
    ]
    assert errors == []


def test_every_program_of_the_stack_runs_in_one_service() -> None:
    """What the local stack starts, the containers start too, each once; only the database is PostgreSQL's own image."""
    run = [program for service in OURS for program in programs_of(service)]
    assert sorted(run) == sorted(set(programs(settings_of("init"))) - {DATABASE})


@pytest.mark.parametrize("service", OURS)
def test_a_service_reads_settings_that_there_are(service: str) -> None:
    """No name is misspelt, and every host in an address is a service or the host's own."""
    config = settings_of(service)
    for value in environment(service).values():
        host = urlsplit(value).hostname
        assert host is None or host in {*SERVICES, "localhost", "gridline"}, value
    if service != "dashboard":
        assert config.airflow_executor == "celery"
        assert config.database_url
        assert config.airflow_database_url


def test_every_service_is_told_the_same() -> None:
    """Where two services know a setting, they know the same value."""
    told: dict[str, set[str]] = {}
    for service in OURS:
        for name, value in environment(service).items():
            told.setdefault(name, set()).add(value)
    assert {name: values for name, values in told.items() if len(values) > 1} == {}


def test_the_dashboard_is_shown_no_database_no_store_and_one_secret() -> None:
    """A customer-facing page gets addresses of the API, and nothing that opens anything but its own sign-in elsewhere."""
    dashboard = SERVICES["dashboard"]
    assert "volumes" not in dashboard
    shown = [
        name for name in environment("dashboard") if re.search(r"DATABASE|AWS|PASSWORD|BROKER|SECRET", name)
    ]
    assert shown == ["GRIDLINE_OIDC_CLIENT_SECRET"]


def test_who_needs_the_identity_provider_is_told_of_it() -> None:
    """API and dashboard know issuer and client; the client's secret is the dashboard's alone, and nobody else hears any of it."""
    told = {service: sorted(name for name in environment(service) if "OIDC" in name) for service in OURS}
    both = ["GRIDLINE_OIDC_CLIENT_ID", "GRIDLINE_OIDC_ISSUER"]
    assert {service: names for service, names in told.items() if names} == {
        "api": both,
        "dashboard": sorted([*both, "GRIDLINE_OIDC_CLIENT_SECRET"]),
    }


def test_the_dashboard_reaches_the_api_alone() -> None:
    """Every address that a customer-facing page knows is the API's or the host's own."""
    hosts = {urlsplit(value).hostname for value in environment("dashboard").values()} - {None, "localhost"}
    assert hosts <= DASHBOARD_KNOWS


def test_only_init_makes_secrets() -> None:
    """Every other service reads them."""
    mounts = {
        service: [mount for mount in one.get("volumes", []) if mount.startswith("secrets:")]
        for service, one in OURS.items()
    }
    writers = [service for service, found in mounts.items() if found and not found[0].endswith(":ro")]
    assert writers == ["init"]
    assert all(
        mount.split(":")[1] == "/var/lib/gridline/state/secrets"
        for found in mounts.values()
        for mount in found
    )


def test_every_password_that_is_asked_for_is_made() -> None:
    """`sh deploy/passwords.sh` makes those without which compose does not start, each anew, and no other."""
    wanted = set(re.findall(r"\$\{(\w+):\?", (ROOT / FILES[0]).read_text()))
    made = [
        subprocess.run(
            ["sh", ROOT / "deploy/passwords.sh"], capture_output=True, text=True, check=True
        ).stdout
        for _ in "ab"
    ]
    first, second = (dict(line.split("=") for line in text.splitlines()) for text in made)
    assert set(first) == wanted
    assert all(re.fullmatch(r"[0-9a-f]{48}", value) for value in first.values())
    assert not set(first.values()) & set(second.values())


def test_an_option_has_the_setting_s_default() -> None:
    """What an operator leaves out means what it means on one machine, but for the addresses."""
    text = (ROOT / FILES[0]).read_text()
    defaults = {env_name(one): str(one.default) for one in Settings.__dataclass_fields__.values()}
    # An empty value counts as absent.
    given = [(name, value) for name, value in re.findall(r"\$\{(GRIDLINE_\w+):-([^}]*)\}", text) if value]
    assert given
    assert [name for name, value in given if not name.endswith("_URL") and value != defaults[name]] == []


def test_ports_are_the_local_stack_s() -> None:
    """Customers find API and dashboard where `make up` has them, and Airflow stays on the host's loopback."""
    default = Settings()
    published = {port for one in SERVICES.values() for port in one.get("ports", [])}
    assert published == {
        f"{default.api_port}:{default.api_port}",
        f"{default.dashboard_port}:{default.dashboard_port}",
        f"127.0.0.1:{default.airflow_port}:{default.airflow_port}",
    }
    assert {int(port) for port in re.findall(r"listen (\d+);", PROXY)} == {
        default.api_port,
        default.dashboard_port,
    }
    assert set(re.findall(r"set \$\w+ (\S+);", PROXY)) == {
        f"http://api:{default.api_port}",
        f"http://dashboard:{default.dashboard_port}",
    }


def test_the_proxy_is_believed_and_believes_the_dashboard() -> None:
    """Both addresses are fixed in one network, and written alike wherever they stand."""
    address = {name: SERVICES[name]["networks"]["default"]["ipv4_address"] for name in ("proxy", "dashboard")}
    assert {environment(service)["GRIDLINE_TRUSTED_PROXY"] for service in ("api", "dashboard")} == {
        address["proxy"]
    }
    assert re.findall(r"set_real_ip_from (\S+);", PROXY) == [address["dashboard"]]


@pytest.mark.parametrize("service", SERVICES)
def test_every_service_says_whether_it_is_well(service: str) -> None:
    """A service that stays is restarted and asked for its health; one that ends is waited for by the others."""
    one = SERVICES[service]
    if service == "init":
        assert one["restart"] == "on-failure"
        return
    assert one["restart"] == "unless-stopped"
    test = one["healthcheck"]["test"]
    if test[1:3] == ["gridline", "status"]:
        assert test[3:] in ([], programs_of(service))


def test_images_are_built_from_what_is_there() -> None:
    """Each target exists, each copied path is tracked, and no program of an image lacks its folder."""
    targets = set(re.findall(r"^FROM \S+ AS (\w+)", DOCKERFILE, flags=re.MULTILINE))
    built = {one["build"]["target"] for one in OURS.values() if "build" in one}
    assert built == targets - {"platform"}
    assert {one["image"] for one in OURS.values()} == {f"gridline-{target}" for target in built}
    sources = [
        word
        for line in re.findall(r"^COPY (.*) \S+$", DOCKERFILE, flags=re.MULTILINE)
        for word in line.split()
    ]
    assert [source for source in sources if not (ROOT / source).exists()] == []


def test_the_dockerfile_passes_hadolint() -> None:
    """The usual faults of images: unpinned bases, left-over package lists, root where it is not needed."""
    hadolint = Path(sys.executable).with_name("hadolint")
    # apt's packages are security-updated with their base; WORKDIR is set where paths are relative.
    done = subprocess.run(
        [hadolint, "--ignore", "DL3008", ROOT / "deploy/Dockerfile"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == ""
    users = re.split(r"^FROM ", DOCKERFILE, flags=re.MULTILINE)[2:]
    assert all("USER 10001" in stage for stage in users)
