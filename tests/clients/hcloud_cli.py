"""Drives the lab's Hetzner Cloud with the official command line (`hcloud`), through a whole life; prints `ok`.

Where the lab is, lab.py says. HCLOUD_PROGRAM names another program than `hcloud`.
"""

import json
import os
import subprocess

import lab

PROGRAM = os.environ.get("HCLOUD_PROGRAM", "hcloud")


class Cli:
    """The command line, with the lab as its project."""

    def __init__(self, folder):
        host = lab.Host("hetzner", folder)
        self.environment = {
            "HCLOUD_ENDPOINT": host.endpoint,
            "HCLOUD_TOKEN": host.token,
            "HOME": folder,
            "PATH": os.environ["PATH"],
            "SSL_CERT_FILE": host.certificate,
        }

    def run(self, *words):
        """What a command prints; it has to succeed."""
        done = self._run(words)
        assert done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"
        return done.stdout

    def read(self, *words):
        """What a command prints, as data."""
        return json.loads(self.run(*words, "-o", "json"))

    def refused(self, code, *words):
        """A command that has to be refused with this code."""
        done = self._run(words)
        assert done.returncode != 0 and code in done.stderr, f"{words}: {done.stdout}{done.stderr}"

    def _run(self, words):
        command = [PROGRAM, "--poll-interval", "50ms", *words]
        return subprocess.run(command, env=self.environment, capture_output=True, text=True, timeout=60, check=False)


def prepare(cli, folder):
    """Everything around a server."""
    key, data = os.path.join(folder, "key.pub"), os.path.join(folder, "user-data")
    for path, text in ((key, lab.PUBLIC_KEY), (data, "#cloud-config\n{}\n")):
        with open(path, "w", encoding="ascii") as file:
            file.write(text)
    cli.run("ssh-key", "create", "--name", "me", "--public-key-from-file", key)
    cli.run("network", "create", "--name", "net", "--ip-range", "10.0.0.0/16")
    cli.run("network", "add-subnet", "net", "--type", "cloud", "--network-zone", "eu-central", "--ip-range", "10.0.1.0/24")
    cli.run("firewall", "create", "--name", "wall")
    ssh = ("--direction", "in", "--protocol", "tcp", "--port", "22", "--source-ips", "0.0.0.0/0")
    cli.run("firewall", "add-rule", "wall", *ssh)
    cli.run("placement-group", "create", "--name", "group", "--type", "spread")
    return data


def life(cli, data):
    """One server, from its making to its end."""
    make = ("server", "create", "--name", "web-1", "--type", "cx22", "--image", "debian-13", "--location", "nbg1")
    around = ("--ssh-key", "me", "--network", "net", "--firewall", "wall", "--placement-group", "group")
    cli.run(*make, *around, "--label", "role=web", "--user-data-from-file", data)
    cli.refused("uniqueness_error", *make)
    server = cli.read("server", "describe", "web-1")
    assert server["status"] == "running" and server["private_net"][0]["ip"] == "10.0.1.2"
    assert "web-1" in cli.run("server", "list", "--selector", "role in (web,db)", "-o", "columns=name", "-o", "noheader")
    assert cli.run("server", "list", "--selector", "!role", "-o", "columns=name", "-o", "noheader").strip() == ""
    cli.run("server", "add-label", "web-1", "size=large")
    cli.run("server", "poweroff", "web-1")
    cli.run("server", "change-type", "--keep-disk", "web-1", "cx32")
    cli.run("server", "poweron", "web-1")
    assert cli.read("server", "describe", "web-1")["server_type"]["name"] == "cx32"
    cli.run("server", "create-image", "web-1", "--type", "snapshot", "--description", "before")
    snapshots = cli.read("image", "list", "--type", "snapshot")
    cli.run("image", "delete", str(snapshots[0]["id"]))
    cli.run("server", "rebuild", "web-1", "--image", "debian-12")
    cli.run("server", "enable-protection", "web-1", "delete", "rebuild")
    cli.refused("protected", "server", "delete", "web-1")
    cli.run("server", "disable-protection", "web-1", "delete", "rebuild")
    cli.run("server", "delete", "web-1")
    cli.refused("not found", "server", "describe", "web-1")


def main():
    with lab.folder() as folder:
        cli = Cli(folder)
        for kind in ("server-type", "location", "datacenter", "image", "iso", "primary-ip", "volume", "floating-ip"):
            cli.run(kind, "list")
        life(cli, prepare(cli, folder))
        for kind, name in (("firewall", "wall"), ("network", "net"), ("placement-group", "group"), ("ssh-key", "me")):
            cli.run(kind, "delete", name)
    print("ok")


if __name__ == "__main__":
    main()
