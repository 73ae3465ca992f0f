"""Where the lab is, and why it is trusted: for the programs that try outside clients against it.

ORCH_LAB_FILE names the `lab.json` of a lab that is up.
"""

import hashlib
import json
import os
import socket
import ssl
import tempfile
import time
from urllib.parse import urlsplit

# A key that opens nothing: nobody has its other half.
PUBLIC_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJvT0ZzX6mFz1sFQ2E0oT5QyYHhC0rKk0H5wFqvV7u7A nobody"


class Host:
    """The first host of a kind, `proxmox` or `hetzner`, and a file with the certificate by which it is known."""

    def __init__(self, kind, folder):
        with open(os.environ["ORCH_LAB_FILE"], encoding="utf-8") as file:
            hosts = json.load(file)["hosts"].values()
        host = next(host for host in hosts if host["kind"] == kind)
        self.token, self.node, self.datastore = host["token"], host.get("node"), host.get("datastore")
        self.is_paper = "node_program" not in host
        self.endpoint = host["endpoint"] + ("/v1" if kind == "hetzner" else "")
        place = urlsplit(host["endpoint"])
        self.address, self.port = place.hostname, place.port or 443
        self.certificate = self._certificate(host["fingerprint"], folder)

    def _certificate(self, wanted, folder):
        """What the lab shows, which has to be what it said that it would."""
        pem = ssl.get_server_certificate((self.address, self.port))
        found = hashlib.sha256(ssl.PEM_cert_to_DER_cert(pem)).hexdigest()
        assert found == wanted.replace(":", "").lower(), f"the lab shows the certificate {found}"
        path = os.path.join(folder, "lab.pem")
        with open(path, "w", encoding="ascii") as file:
            file.write(pem)
        return path


def answers(address, patience=30):
    """A machine that is more than paper has an SSH server at its address."""
    end = time.monotonic() + patience
    while True:
        try:
            with socket.create_connection((address, 22), timeout=5) as connection:
                greeting = connection.recv(16)
            assert greeting.startswith(b"SSH-2.0"), greeting
            return
        except OSError:
            assert time.monotonic() < end, f"nobody answers at {address}"
            time.sleep(0.05)


def folder():
    """A folder that goes when it is left."""
    return tempfile.TemporaryDirectory(prefix="orch-lab-client-")
