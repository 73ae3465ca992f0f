"""Plays `playbooks/<kind>.yaml` against the lab with Ansible: `playbook.py proxmox` or `playbook.py hetzner`; prints `ok`.

Where the lab is, lab.py says. ANSIBLE_COLLECTIONS_PATH says where the collections are. Ansible is the one beside this Python.
"""

import json
import os
import subprocess
import sys

import lab

HERE = os.path.dirname(os.path.abspath(__file__))


def environment(kind, host, folder):
    """What the modules of a collection read where a task does not say it."""
    words = {
        "ANSIBLE_COLLECTIONS_PATH": os.environ["ANSIBLE_COLLECTIONS_PATH"],
        "ANSIBLE_LOCALHOST_WARNING": "False",
        "ANSIBLE_INVENTORY_UNPARSED_WARNING": "False",
        "ANSIBLE_NOCOLOR": "1",
        "HOME": folder,
        "LC_ALL": "C.UTF-8",
        "PATH": os.environ["PATH"],
        "REQUESTS_CA_BUNDLE": host.certificate,
    }
    if kind == "hetzner":
        return words | {"HCLOUD_ENDPOINT": host.endpoint, "HCLOUD_TOKEN": host.token}
    name, secret = host.token.split("=")
    user, token = name.split("!")
    return words | {
        "PROXMOX_HOST": host.address,
        "PROXMOX_PORT": str(host.port),
        "PROXMOX_USER": user,
        "PROXMOX_TOKEN_ID": token,
        "PROXMOX_TOKEN_SECRET": secret,
        "PROXMOX_VALIDATE_CERTS": "true",
    }


def main(kind):
    with lab.folder() as folder:
        host = lab.Host(kind, folder)
        said = {"node": host.node, "datastore": host.datastore, "public_key": lab.PUBLIC_KEY}
        said["ansible_python_interpreter"] = sys.executable
        program = os.path.join(os.path.dirname(sys.executable), "ansible-playbook")
        command = [program, "-i", "localhost,", "-c", "local", "-e", json.dumps(said)]
        command.append(os.path.join(HERE, "playbooks", f"{kind}.yaml"))
        subprocess.run(command, env=environment(kind, host, folder), timeout=300, check=True)
    print("ok")


if __name__ == "__main__":
    main(sys.argv[1])
