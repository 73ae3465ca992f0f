"""Drives the lab's Proxmox VE with PyPI `proxmoxer`, by ticket and by token, through a whole life; prints `ok`.

Where the lab is, lab.py says. What is refused is refused in the words that the real one was seen to use.
"""

import io
import time

import lab
from proxmoxer import AuthenticationError, ProxmoxAPI, ResourceException
from proxmoxer.tools import Tasks

IMAGE = "local:import/debian-13.qcow2"
PATIENCE = 60


class Box:
    """The box, and one way in."""

    def __init__(self, host, **way):
        self.host = host
        self.api = ProxmoxAPI(host.address, port=host.port, verify_ssl=host.certificate, timeout=30, **way)
        self.node = self.api.nodes(host.node)

    def done(self, upid):
        """A task that has to end well."""
        end = self.ended(upid)
        assert end == "OK", f"{upid}: {end}"

    def ended(self, upid):
        """How a task ends."""
        assert Tasks.decode_upid(upid)["node"] == self.host.node
        status = Tasks.blocking_status(self.api, upid, timeout=PATIENCE, polling_interval=0.05)
        assert status and status["status"] == "stopped", status
        return status["exitstatus"]

    def free(self):
        """The next id that nobody has: the real one says it as text."""
        number = self.api.cluster.nextid.get()
        assert isinstance(number, str), number
        return int(number)

    def seen(self, vmid):
        """A machine among everything there is."""
        found = [one for one in self.api.cluster.resources.get(type="vm") if one["vmid"] == vmid]
        return found[0] if found else None


def refused(status, words, call):
    """The call has to be refused with this status, in these words."""
    try:
        call()
    except ResourceException as error:
        assert error.status_code == status, f"{error.status_code} instead of {status}: {error}"
        assert words in str(error), f"`{words}` is not in `{error}`"
        return error.errors
    raise AssertionError(f"not refused with {status}")


def waits(what, look):
    """What there is to be seen, as soon as it is."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        try:
            found = look()
        except ResourceException:
            found = None
        if found:
            return found
        time.sleep(0.05)
    raise AssertionError(f"{what} is not to be seen")


def offered(box):
    """What is there before anything is made."""
    assert box.api.version.get()["version"].startswith("9.")
    nodes = box.api.nodes.get()
    assert [node["node"] for node in nodes] == [box.host.node] and nodes[0]["status"] == "online"
    assert box.node.status.get()["memory"]["total"] > 0
    storages = {storage["storage"]: storage for storage in box.node.storage.get()}
    assert "images" in storages[box.host.datastore]["content"] and "iso" in storages["local"]["content"]
    imports = box.node.storage("local").content.get(content="import")
    assert IMAGE in [volume["volid"] for volume in imports]
    assert any(card["iface"] == "vmbr0" for card in box.node.network.get())


def made(box):
    """A machine that begins as an image, and is changed both ways."""
    vmid = box.free()
    box.done(
        box.node.qemu.post(
            vmid=vmid,
            name="base",
            memory=256,
            cores=1,
            agent=1,
            ostype="l26",
            scsihw="virtio-scsi-single",
            scsi0=f"{box.host.datastore}:0,import-from={IMAGE}",
            ide2=f"{box.host.datastore}:cloudinit",
            net0="virtio,bridge=vmbr0",
            ipconfig0="ip=dhcp",
            boot="order=scsi0",
        )
    )
    machine = box.node.qemu(vmid)
    before = machine.config.get()
    assert str(before["memory"]) == "256" and before["scsi0"].startswith(f"{box.host.datastore}:")
    assert machine.config.put(description="as it was", tags="base;orch") is None
    box.done(machine.config.post(cores=2))
    after = machine.config.get()
    assert (after["cores"], after["description"], after["tags"]) == (2, "as it was", "base;orch")
    assert after["digest"] != before["digest"]
    refused(500, "checksum mismatch", lambda: machine.config.put(cores=1, digest=before["digest"]))
    return vmid


def cloned(box, base):
    """A template of it, and a clone of that which is larger."""
    box.done(box.node.qemu(base).template.post())
    vmid = box.free()
    box.done(box.node.qemu(base).clone.post(newid=vmid, name="web-1", full=1, storage=box.host.datastore))
    machine = box.node.qemu(vmid)
    config = machine.config.get()
    assert config["name"] == "web-1" and "template" not in config
    machine.config.put(tags="web", ciuser="ops", sshkeys=lab.PUBLIC_KEY.replace(" ", "%20").replace("+", "%2B").replace("/", "%2F"))
    box.done(machine.resize.put(disk="scsi0", size="+1G"))
    assert machine.config.get()["scsi0"] != config["scsi0"]
    refused(500, "config file already exists", lambda: box.node.qemu(base).clone.post(newid=vmid))
    return vmid


def lived(box, vmid):
    """On, reachable, off, remembered, and gone."""
    machine = box.node.qemu(vmid)
    refused(500, f"VM {vmid} is not running", lambda: machine.agent("network-get-interfaces").get())
    box.done(machine.status.start.post())
    assert machine.status.current.get()["status"] == "running"
    waits("the machine", lambda: (box.seen(vmid) or {}).get("status") == "running" and box.seen(vmid)["name"] == "web-1")
    assert "web" in box.seen(vmid)["tags"]
    found = waits("its address", lambda: addresses(machine))
    if not box.host.is_paper:
        lab.answers(found[0])
    assert box.ended(machine.status.start.post()) == f"VM {vmid} already running"
    refused(500, f"VM {vmid} is running - destroy failed", machine.delete)
    upid = machine.status.stop.post()
    box.done(upid)
    log = box.node.tasks(upid).log.get()
    assert log[-1]["t"] == "TASK OK", log
    assert any(task["upid"] == upid for task in box.node.tasks.get(vmid=vmid))
    box.done(machine.snapshot.post(snapname="before", description="as it was"))
    assert {"before", "current"} <= {one["name"] for one in machine.snapshot.get()}
    box.done(machine.config.post(memory=512))
    box.done(machine.snapshot("before").rollback.post())
    assert str(machine.config.get()["memory"]) == "256"
    box.done(machine.snapshot("before").delete())
    removed(box, vmid)


def removed(box, vmid):
    """With everything that belongs to it."""
    box.done(box.node.qemu(vmid).delete(purge=1, **{"destroy-unreferenced-disks": 1}))
    missing = f"Configuration file 'nodes/{box.host.node}/qemu-server/{vmid}.conf' does not exist"
    refused(500, missing, box.node.qemu(vmid).config.get)
    waits("its absence", lambda: box.seen(vmid) is None)
    assert not [one for one in box.node.storage(box.host.datastore).content.get() if one.get("vmid") == vmid]


def addresses(machine):
    """What the agent says of the machine's own card; others may be there that lead nowhere."""
    own = machine.config.get()["net0"].split(",")[0].split("=")[1].lower()
    cards = machine.agent("network-get-interfaces").get()["result"]
    cards = [card for card in cards if card["hardware-address"].lower() == own]
    return [address["ip-address"] for card in cards for address in card.get("ip-addresses", [])]


def stored(box):
    """An ISO goes up, is listed, and goes."""
    content = io.BytesIO(bytes(range(256)) * 256)
    content.name = "seed.iso"
    box.done(box.node.storage("local").upload.post(content="iso", filename=content))
    found = [one for one in box.node.storage("local").content.get(content="iso") if one["volid"] == "local:iso/seed.iso"]
    assert found and found[0]["size"] == 65536
    gone = box.node.storage("local").content("local:iso/seed.iso").delete()
    if gone:
        box.done(gone)
    assert not box.node.storage("local").content.get(content="iso")


def wrong(box, taken):
    """What the real one refuses, in its words."""
    errors = refused(400, "Parameter verification failed", lambda: box.api.version.get(bogus=1))
    assert "property is not defined in schema" in errors["bogus"], errors
    errors = refused(400, "Parameter verification failed", lambda: box.api.cluster.nextid.get(vmid=taken))
    assert errors["vmid"].strip() == f"VM {taken} already exists", errors
    refused(500, "does not exist", lambda: box.node.qemu(999).delete())
    refused(500, "unable to find configuration file for VM 999", lambda: box.node.qemu(999).clone.post(newid=998))
    refused(500, "hostname lookup 'nowhere' failed", lambda: box.api.nodes("nowhere").qemu.get())
    refused(501, "not implemented", lambda: box.api.get("no/such/thing"))


def life(box):
    offered(box)
    base = made(box)
    vmid = cloned(box, base)
    wrong(box, vmid)
    lived(box, vmid)
    stored(box)
    removed(box, base)


def main():
    with lab.folder() as folder:
        host = lab.Host("proxmox", folder)
        name, secret = host.token.split("=")
        user, token = name.split("!")
        life(Box(host, user=user, token_name=token, token_value=secret))
        life(Box(host, user="root@pam", password="lab"))
        stranger = Box(host, user=user, token_name=token, token_value="wrong")
        refused(401, "invalid token value!", stranger.api.version.get)
        nobody = Box(host, user=user, token_name="x", token_value="wrong")
        refused(401, "does not look like a valid token ID", nobody.api.version.get)
        try:
            Box(host, user="root@pam", password="wrong")
        except AuthenticationError:
            pass
        else:
            raise AssertionError("a wrong password opens the box")
    print("ok")


if __name__ == "__main__":
    main()
