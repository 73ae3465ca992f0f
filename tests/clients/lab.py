"""Where the lab is, and why it is trusted: read from the environment by the programs that try outside clients against it.

ORCH_LAB_ENDPOINT     such as https://127.0.0.1:8443/v1
ORCH_LAB_TOKEN        the token
ORCH_LAB_CA           a file with the certificate that signs, or is, the lab's
ORCH_LAB_FINGERPRINT  instead of a file: the SHA-256 of the lab's own certificate, in hex digits
"""

import hashlib
import os
import ssl
import tempfile
from urllib.parse import urlsplit

ENDPOINT = os.environ["ORCH_LAB_ENDPOINT"].rstrip("/")
TOKEN = os.environ["ORCH_LAB_TOKEN"]

# A key that opens nothing: nobody has its other half.
PUBLIC_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJvT0ZzX6mFz1sFQ2E0oT5QyYHhC0rKk0H5wFqvV7u7A nobody"


def certificates(folder):
    """The file whose certificates are trusted, or None where the lab speaks plain HTTP."""
    if "ORCH_LAB_CA" in os.environ:
        return os.environ["ORCH_LAB_CA"]
    wanted = os.environ.get("ORCH_LAB_FINGERPRINT", "").replace(":", "").lower()
    if not wanted:
        return None
    place = urlsplit(ENDPOINT)
    pem = ssl.get_server_certificate((place.hostname, place.port or 443))
    found = hashlib.sha256(ssl.PEM_cert_to_DER_cert(pem)).hexdigest()
    assert found == wanted, f"the lab shows the certificate {found}"
    path = os.path.join(folder, "lab.pem")
    with open(path, "w", encoding="ascii") as file:
        file.write(pem)
    return path


def folder():
    """A folder that goes when it is left."""
    return tempfile.TemporaryDirectory(prefix="orch-lab-client-")
