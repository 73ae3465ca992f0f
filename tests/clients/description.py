"""Asks the lab's Hetzner Cloud whatever its published description allows, with PyPI `schemathesis`, for a minute; prints `ok`.

`description.py <hcloud-openapi.json>`. Where the lab is, lab.py says. Every answer has to be one that is described, and no question
may break the lab.
"""

import os
import ssl
import subprocess
import sys
import urllib.request

import lab

# What the lab has; of the rest of the real one it says that it is not there.
PATHS = "^/(%s)(/|$)" % "|".join(
    (
        "actions",
        "datacenters",
        "firewalls",
        "images",
        "isos",
        "locations",
        "networks",
        "placement_groups",
        "pricing",
        "primary_ips",
        "server_types",
        "servers",
        "ssh_keys",
        "volumes",
    )
)
# Addresses come with servers there, and cannot be had alone.
LACKING = "create_primary_ip"
CHECKS = "not_a_server_error,response_schema_conformance,content_type_conformance"
SECONDS = 60
# So many for each question that the hour's share of them is not used up: what is refused for that says nothing.
EXAMPLES = "20"


def left(host):
    """How many questions may still be asked."""
    request = urllib.request.Request(host.endpoint + "/pricing", headers={"Authorization": f"Bearer {host.token}"})
    trusted = ssl.create_default_context(cafile=host.certificate)
    with urllib.request.urlopen(request, context=trusted, timeout=10) as answer:
        return int(answer.headers["ratelimit-remaining"])


def main(description):
    with lab.folder() as folder:
        host = lab.Host("hetzner", folder)
        program = os.path.join(os.path.dirname(sys.executable), "st")
        command = [program, "run", description, "--url", host.endpoint, "--tls-verify", host.certificate]
        command += ["--header", f"Authorization: Bearer {host.token}", "--include-path-regex", PATHS]
        command += ["--exclude-operation-id", LACKING]
        command += ["--checks", CHECKS, "--phases", "examples,fuzzing", "--max-examples", EXAMPLES, "--max-time", str(SECONDS)]
        command += ["--max-failures", "20", "--suppress-health-check", "all", "--warnings", "off", "--no-color"]
        done = subprocess.run(command, cwd=folder, timeout=SECONDS * 3, check=False)
        assert done.returncode == 0, "schemathesis found something"
        print(f"{left(host)} questions are left")
    print("ok")


if __name__ == "__main__":
    main(os.path.abspath(sys.argv[1]))
