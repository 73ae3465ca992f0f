"""Drives the lab's Hetzner Cloud with the official Python library (PyPI `hcloud`), through a whole life; prints `ok`.

Where the lab is, lab.py says.
"""

import os

import lab
from hcloud import APIException, Client
from hcloud.firewalls.domain import FirewallResource, FirewallRule
from hcloud.images.domain import Image
from hcloud.locations.domain import Location
from hcloud.networks.domain import NetworkSubnet
from hcloud.server_types.domain import ServerType


def refused(code, call):
    """The call has to be refused with this code."""
    try:
        call()
    except APIException as error:
        assert error.code == code, f"{error.code} instead of {code}"
    else:
        raise AssertionError(f"not refused with {code}")


def offered(client):
    """Everything that is offered can be read by a client that expects every field."""
    assert client.server_types.get_by_name("cx22").memory == 4
    assert client.locations.get_by_name("nbg1").network_zone == "eu-central"
    assert client.images.get_by_name_and_architecture("debian-13", "arm").architecture == "arm"
    for things in (client.isos, client.floating_ips, client.volumes, client.load_balancers):
        things.get_all()


def life(client, is_paper):
    """One server, with everything around it, from its making to its end."""
    key = client.ssh_keys.create(name="me", public_key=lab.PUBLIC_KEY)
    refused("uniqueness_error", lambda: client.ssh_keys.create(name="me", public_key=lab.PUBLIC_KEY))
    subnet = NetworkSubnet(ip_range="10.0.1.0/24", network_zone="eu-central", type="cloud")
    network = client.networks.create(name="net", ip_range="10.0.0.0/16", subnets=[subnet])
    rule = FirewallRule(direction="in", protocol="tcp", port="22", source_ips=["0.0.0.0/0", "::/0"])
    firewall = client.firewalls.create(name="wall", rules=[rule]).firewall
    group = client.placement_groups.create(name="group", type="spread").placement_group
    made = client.servers.create(
        name="web-1",
        server_type=ServerType(name="cx22"),
        image=Image(name="debian-13"),
        location=Location(name="nbg1"),
        ssh_keys=[key],
        networks=[network],
        firewalls=[firewall],
        placement_group=group,
        labels={"role": "web"},
        user_data="#cloud-config\n{}\n",
    )
    assert made.root_password is None
    for action in [made.action, *made.next_actions]:
        action.wait_until_finished()
    server = client.servers.get_by_name("web-1")
    assert server.status == "running" and server.public_net.ipv4.ip
    assert server.private_net[0].ip == "10.0.1.2"
    if not is_paper:
        lab.answers(server.public_net.ipv4.ip)
    assert server.placement_group.id == group.id
    chosen(client)
    changes(client, server)
    snapshot(server)
    server.change_protection(delete=True, rebuild=True).wait_until_finished()
    refused("protected", server.delete)
    server.change_protection(delete=False, rebuild=False).wait_until_finished()
    resource = FirewallResource(type="server", server=server)
    refused("resource_in_use", firewall.delete)
    for action in firewall.remove_from_resources([resource]):
        action.wait_until_finished()
    server.detach_from_network(network).wait_until_finished()
    server.delete().wait_until_finished()
    assert client.servers.get_by_name("web-1") is None
    for thing in (firewall, group, network, key):
        thing.delete()


def chosen(client):
    """Labels choose, and lists come in pages."""
    for number in range(3):
        client.servers.create(name=f"more-{number}", server_type=ServerType(name="cx22"), image=Image(name="debian-12"))
    assert [server.name for server in client.servers.get_all(label_selector="role in (web, db)")] == ["web-1"]
    page = client.servers.get_list(per_page=2, page=2)
    assert page.meta.pagination.total_entries == 4 and len(page.servers) == 2
    for server in client.servers.get_all(label_selector="!role"):
        for action in server.get_actions():
            action.wait_until_finished()
        server.delete().wait_until_finished()


def changes(client, server):
    """Off, larger, and on again."""
    refused("server_not_stopped", lambda: server.change_type(ServerType(name="cx32"), upgrade_disk=False))
    server.power_off().wait_until_finished()
    server.change_type(ServerType(name="cx32"), upgrade_disk=False).wait_until_finished()
    server.power_on().wait_until_finished()
    server = server.update(labels={"role": "web", "size": "large"})
    server = client.servers.get_by_id(server.id)
    assert (server.status, server.server_type.name, server.primary_disk_size) == ("running", "cx32", 40)


def snapshot(server):
    """A snapshot is made, found and removed."""
    made = server.create_image(description="before", type="snapshot", labels={"of": "web-1"})
    made.action.wait_until_finished()
    made.image.reload()
    assert made.image.status == "available"
    made.image.delete()


def main():
    with lab.folder() as folder:
        host = lab.Host("hetzner", folder)
        os.environ["REQUESTS_CA_BUNDLE"] = host.certificate
        client = Client(token=host.token, api_endpoint=host.endpoint, poll_interval=0.05)
        offered(client)
        life(client, host.is_paper)
        stranger = Client(token="wrong", api_endpoint=host.endpoint)
        refused("unauthorized", stranger.servers.get_all)
    print("ok")


if __name__ == "__main__":
    main()
