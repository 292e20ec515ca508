"""Checks of the container files, without a container runtime."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
import tomllib
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import click
import pytest
import yaml

from crawler.cli.shared import cli
from crawler.engine.page_messages import MAX_MEMORY_BYTES
from crawler.reasons import EndCode, RunEnd
from crawler.settings.loading import settings_from
from crawler.settings.settings import Settings
from crawler.store.postgres.store import PostgresStore
from tests.command import crawler
from tests.orphans import BOUND
from tests.postgres import Cluster

ROOT = Path(__file__).parents[2]
DOCKERFILE = (ROOT / "config/docker/Dockerfile").read_text()


@pytest.fixture
def compose() -> dict[str, Any]:
    return dict(yaml.safe_load((ROOT / "docker-compose.yml").read_text()))


def test_the_image_passes_its_store_to_every_command_that_takes_one() -> None:
    script = (ROOT / "config/docker/crawl").read_text()
    (listed,) = re.findall(r"^  (status \|[^)]*)\)$", script, re.MULTILINE)
    passed = set(listed.replace("\\", "").replace("|", " ").split())
    context = click.Context(cli)
    commands = {name: command for name in cli.list_commands(context) if (command := cli.get_command(context, name))}
    taking = {name for name, command in commands.items() if any("--db" in each.opts for each in command.params)}
    assert passed == (taking | {"sample"}) - {"run", "plan", "demo"}  # `sample` and its own commands take one


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
    assert worker["healthcheck"]["test"] == ["CMD", "crawl", "healthy"]


def test_looking_and_ending_need_no_contact(compose: dict[str, Any]) -> None:
    assert ":?" not in (ROOT / "docker-compose.yml").read_text()
    assert compose["services"]["worker"]["environment"]["CRAWLER_CONTACT"] == "${CRAWLER_CONTACT:-}"


def test_no_password_stands_in_a_file_or_on_a_command_line(compose: dict[str, Any]) -> None:
    assert "postgres_password" in compose["secrets"]
    for service in compose["services"].values():
        for key, value in service.get("environment", {}).items():
            assert "PASSWORD" not in key or key.endswith("_FILE"), key
            assert not re.search(r"://[^@/]*:[^@/]*@", value), "a password in a URL"
    assert "PASSWORD" not in DOCKERFILE


def test_containers_have_few_privileges(compose: dict[str, Any]) -> None:
    for name, service in compose["services"].items():
        assert service["cap_drop"] == ["ALL"], name
        assert service["security_opt"] == ["no-new-privileges:true"], name
        assert "privileged" not in service, name
        assert not set(service.get("cap_add", ())) & {"SYS_ADMIN", "NET_ADMIN", "SYS_PTRACE"}, name


def test_a_worker_has_memory_for_its_parsers(compose: dict[str, Any]) -> None:
    parsers = tomllib.loads((ROOT / "config/cluster.toml").read_text())["workers"]["parsers"]
    limit = compose["services"]["worker"]["deploy"]["resources"]["limits"]["memory"]
    assert int(limit.removesuffix("g")) << 30 >= parsers * MAX_MEMORY_BYTES + (1 << 29)


def test_what_reads_uses_the_reading_role(compose: dict[str, Any]) -> None:
    services = compose["services"]
    assert "//crawl_reader@" in services["look"]["environment"]["CRAWLER_DB"]
    assert services["look"]["secrets"] == ["reader_password"]
    assert "reader_password" not in services["worker"]["secrets"]


def test_the_dashboard_is_on_this_machine_only_and_asks_for_a_token(compose: dict[str, Any]) -> None:
    dashboard = compose["services"]["dashboard"]
    assert dashboard["ports"] == ["127.0.0.1:8787:8787"]
    assert dashboard["environment"]["CRAWLER_DASHBOARD_TOKEN_FILE"] == "/run/secrets/dashboard_token"
    assert "dashboard_token" in dashboard["secrets"]
    assert dashboard["healthcheck"]["test"][1:3] == ["crawl", "serves"]


@pytest.mark.parametrize(("token", "code"), [("right", 0), ("wrong", 1)])
def test_the_dashboard_is_healthy_if_it_answers_to_the_token(token: str, code: int, tmp_path: Path) -> None:
    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200 if self.headers["Authorization"] == "Bearer right" else 403)
            self.end_headers()

        def log_message(self, format: str, *arguments: object) -> None:
            pass

    (tmp_path / "token").write_text(f"{token}\n")
    with HTTPServer(("127.0.0.1", 0), Answer) as server:
        thread = Thread(target=server.handle_request)
        thread.start()
        url = f"http://127.0.0.1:{server.server_port}/metrics"
        command = [sys.executable, str(ROOT / "config/docker/healthy"), url, str(tmp_path / "token")]
        ended = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
        thread.join()
    assert (ended.returncode, "403" in ended.stderr) == (code, bool(code))


async def test_the_roles_of_the_compose_file_can_crawl_and_read(postgres: Cluster, tmp_path: Path) -> None:
    """The script runs against a real server, with the passwords of the secrets in files of this test."""
    db = postgres.make_database()
    name = postgres.name_in(db)
    script = (ROOT / "config/docker/roles").read_text()
    sql = script.partition("<<'SQL'\n")[2].partition("SQL\n")[0]
    sql = (
        sql.replace(":'crawler'", "'one'").replace(":'reader'", "'two'").replace("DATABASE crawl ", f"DATABASE {name} ")
    )
    sql = re.sub(r"\bROLE crawler\b|\b(TO) crawler\b", lambda found: found[0].replace("crawler", "composed"), sql)
    sql = sql.replace("crawl_reader", "composed_reader")
    for statement in filter(str.strip, sql.split(";\n")):
        postgres.psql(statement, database=name)
    owner, reader = db.replace("//crawler@", "//composed@"), db.replace("//crawler@", "//composed_reader@")
    await (await PostgresStore.open(owner)).close()
    granted = await asyncio.to_thread(crawler, "store", "grant-reader", "composed_reader", "--db", owner)
    assert (granted.code, granted.err) == (0, "")
    assert (await asyncio.to_thread(crawler, "status", "--db", reader)).code == 0
    assert postgres.psql("SELECT count(*) FROM pg_roles WHERE rolname ~ '^composed' AND rolsuper").strip() == "0"


def test_what_is_mounted_and_named_is_there(compose: dict[str, Any]) -> None:
    for service in compose["services"].values():
        for volume in service.get("volumes", ()):
            source = volume["source"] if isinstance(volume, dict) else volume.split(":")[0]
            assert source == "./seeds.txt" or source in compose["volumes"] or (ROOT / source).is_file(), source
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
    for script in ("crawl", "roles"):
        assert subprocess.run(["sh", "-n", str(ROOT / "config/docker" / script)], check=False).returncode == 0


@pytest.fixture
def image(tmp_path: Path) -> dict[str, str]:
    """A stand-in for an image: a crawler that prints its arguments, and ends as it is told to."""
    (tmp_path / "crawler").write_text('#!/bin/sh\necho "$@" "${PGPASSWORD-}"\neval "$DO"\n')
    (tmp_path / "crawler").chmod(0o755)
    (tmp_path / "secret").write_text("hush")
    return {
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
        "CRAWLER_DB": "postgresql://crawler@database/crawl",
        "CRAWLER_CONTACT": "a@example.org",
        "POSTGRES_PASSWORD_FILE": str(tmp_path / "secret"),
    }


def in_image(image: dict[str, str], *command: str) -> subprocess.CompletedProcess[str]:
    entry = [str(ROOT / "config/docker/crawl"), *command]
    return subprocess.run(entry, env=image, capture_output=True, text=True, timeout=300, check=False)


@pytest.mark.parametrize(("code", "seen"), [(0, 0), (1, 1), (2, 0), (3, 0), (4, 4), (5, 0), (137, 137)])
def test_only_what_another_start_may_mend_fails_the_container(image: dict[str, str], code: int, seen: int) -> None:
    ended = in_image(image | {"DO": f"exit {code}"}, "run", "--x")
    assert ended.returncode == seen
    assert ended.stdout == f"run --db {image['CRAWLER_DB']} --contact a@example.org --no-progress --x hush\n"


def test_a_worker_restarts_only_if_its_entry_point_fails(compose: dict[str, Any]) -> None:
    assert compose["services"]["worker"]["restart"] == "on-failure"


def test_stopping_the_container_stops_the_crawl(image: dict[str, str]) -> None:
    wait = "trap 'echo stopping; sleep 0.2; exit 4' TERM; echo up; while :; do sleep 0.05; done"
    entry = [*BOUND, str(ROOT / "config/docker/crawl"), "run"]
    with subprocess.Popen(entry, env=image | {"DO": wait}, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        while process.stdout.readline() != "up\n":
            pass
        process.terminate()
        assert process.stdout.read() == "stopping\n"
        assert process.wait() == 4


def test_the_reading_role_is_granted_by_one_word(image: dict[str, str]) -> None:
    ended = in_image(image | {"DO": "exit 0", "CRAWLER_CONTACT": ""}, "grant-reader")
    assert ended.stdout == f"store grant-reader --db {image['CRAWLER_DB']} hush\n"


@pytest.mark.parametrize("command", ["status", "control", "sample"])
def test_commands_that_look_are_given_the_database(image: dict[str, str], command: str) -> None:
    ended = in_image(image | {"DO": "exit 2", "CRAWLER_CONTACT": ""}, command)
    assert (ended.returncode, ended.stdout) == (2, f"{command} --db {image['CRAWLER_DB']} hush\n")


def test_what_the_container_lacks_is_said(image: dict[str, str]) -> None:
    ended = in_image(image | {"CRAWLER_CONTACT": ""}, "run")
    assert (ended.returncode, ended.stdout) == (0, "")
    assert "CRAWLER_CONTACT" in ended.stderr
    nothing = image | {"POSTGRES_PASSWORD_FILE": "/nowhere"}
    for command, code in (("run", 0), ("status", 2)):
        ended = in_image(nothing, command)
        assert (ended.returncode, ended.stdout) == (code, "")
        assert "the password in /nowhere cannot be read" in ended.stderr


async def test_a_container_is_healthy_while_a_worker_in_it_holds_a_lease(postgres: Cluster) -> None:
    def checked(db: str) -> tuple[int, str]:
        healthy = [sys.executable, str(ROOT / "config/docker/healthy")]
        ended = subprocess.run(
            healthy, env=os.environ | {"CRAWLER_DB": db}, capture_output=True, text=True, timeout=300, check=False
        )
        return ended.returncode, ended.stderr

    db = postgres.make_database()
    assert "does not answer" in checked(db)[1]  # as yet, it has no tables
    store = await PostgresStore.open(db, lease_s=60)
    assert checked(db) == (1, "no worker here holds a lease\n")
    await store.start_run({}, 1000.0)
    assert checked(db) == (0, "")
    await store.end_run(RunEnd(EndCode.DONE), 1001.0)
    assert checked(db) == (1, "no worker here holds a lease\n")
    await store.close()


def test_the_profile_for_clusters_is_a_configuration() -> None:
    values = tomllib.loads((ROOT / "config/cluster.toml").read_text())
    settings = settings_from(values, source="cluster.toml")
    assert settings != Settings()
    assert settings.lease_s == 120
