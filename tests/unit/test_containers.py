"""The files for containers are read and checked: no container runtime is needed, and none is asked."""

from __future__ import annotations

import re
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from crawler.config import Settings, settings_from

ROOT = Path(__file__).parents[2]
DOCKERFILE = (ROOT / "config/docker/Dockerfile").read_text()


@pytest.fixture
def compose() -> dict[str, Any]:
    return dict(yaml.safe_load((ROOT / "docker-compose.yml").read_text()))


def test_every_service_has_an_image_limits_and_a_way_to_end(compose: dict[str, Any]) -> None:
    services = compose["services"]
    assert {"database", "worker"} <= set(services)
    for name, service in services.items():
        assert "image" in service, name
        limits = service["deploy"]["resources"]["limits"]
        assert float(limits["cpus"]) > 0, name
        assert re.fullmatch(r"\d+[mg]", limits["memory"]), name
        assert "restart" in service, name
        assert "stop_grace_period" in service, name


def test_workers_can_be_scaled_and_wait_for_a_healthy_database(compose: dict[str, Any]) -> None:
    worker = compose["services"]["worker"]
    assert "container_name" not in worker  # or there could be but one
    assert "ports" not in worker
    assert worker["depends_on"]["database"]["condition"] == "service_healthy"
    assert compose["services"]["database"]["healthcheck"]["test"][1].startswith("pg_isready")


def test_no_password_stands_in_a_file_or_on_a_command_line(compose: dict[str, Any]) -> None:
    assert "postgres_password" in compose["secrets"]
    for service in compose["services"].values():
        for key, value in service.get("environment", {}).items():
            assert "PASSWORD" not in key or key.endswith("_FILE"), key
            assert not re.search(r"://[^@/]*:[^@/]*@", value), "a password in a URL"
    assert "PASSWORD" not in DOCKERFILE


def test_what_is_mounted_and_named_is_there(compose: dict[str, Any]) -> None:
    for service in compose["services"].values():
        for volume in service.get("volumes", ()):
            source = volume.split(":")[0]
            assert source == "./seeds.txt" or source in compose["volumes"], source
    build = compose["services"]["worker"]["build"]
    assert (ROOT / build["context"] / build["dockerfile"]).is_file()
    copied = re.findall(r"^COPY (?:--chmod=\d+ )?(?!--from)(.+) \S+$", DOCKERFILE, re.MULTILINE)
    for source in " ".join(copied).split():
        assert (ROOT / source).exists(), source
        assert f"!{source.split('/')[0]}" in (ROOT / ".dockerignore").read_text().splitlines(), source


def test_the_image_is_made_in_stages_and_does_not_run_as_root() -> None:
    stages = re.findall(r"^FROM .*$", DOCKERFILE, re.MULTILINE)
    assert len(stages) == 2
    last = DOCKERFILE[DOCKERFILE.rindex("FROM ") :]
    (user,) = re.findall(r"^USER (\S+)$", last, re.MULTILINE)
    assert user not in ("root", "0")
    assert "pip install" not in last


def test_the_entry_point_is_a_shell_script_that_parses() -> None:
    assert subprocess.run(["sh", "-n", str(ROOT / "config/docker/crawl")], check=False).returncode == 0


def test_the_profile_for_clusters_is_a_configuration() -> None:
    values = tomllib.loads((ROOT / "config/cluster.toml").read_text())
    settings = settings_from(values, source="cluster.toml")
    assert settings != Settings()
    assert settings.lease_s == 120
