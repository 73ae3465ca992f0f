# The server starts under all of its hardening, answers on the interface asked for and on no other, and keeps its secrets.
{ modules, ... }:

{
  name = "orchestrator";

  nodes.server = {
    imports = [ modules.orchestrator ];
    virtualisation.vlans = [
      1
      2
    ];
    # The first network is the nodes', the second one anybody's.
    services.orchestrator = {
      enable = true;
      site = ../modules/site;
      settings.name = "home";
      listen = [ "44443" ];
      firewallInterfaces = [ "eth1" ];
      ageIdentityFile = "/var/lib/secrets/age";
    };
    # A stand-in for what a tool for secrets would put there.
    systemd.tmpfiles.rules = [ "f /var/lib/secrets/age 0400 root root - AGE-SECRET-KEY-1NOTONE" ];
  };

  nodes.node = {
    virtualisation.vlans = [ 1 ];
  };
  nodes.stranger = {
    virtualisation.vlans = [ 2 ];
  };

  testScript = ''
    start_all()
    server.wait_for_unit("orchestrator.service")

    with subtest("it answers whoever may ask"):
        node.wait_until_succeeds("curl --insecure --fail --max-time 5 https://server:44443/health", timeout=60)

    with subtest("it cannot be reached from elsewhere"):
        address = server.succeed("ip -4 -oneline address show eth2").split()[3].split("/")[0]
        stranger.succeed(f"ping -c 1 {address}")
        stranger.fail(f"curl --insecure --fail --max-time 5 https://{address}:44443/health")

    with subtest("it is not root, and its state is for itself"):
        server.succeed("test $(stat -c %U:%a /var/lib/orchestrator) = orchestrator:700")
        pid = server.succeed("systemctl show -P MainPID orchestrator.service").strip()
        server.succeed(f"test $(stat -c %U /proc/{pid}) = orchestrator")

    with subtest("nobody else can read its secret"):
        server.fail("runuser -u nobody -- cat /run/credentials/orchestrator.service/age-identity")

    with subtest("sockets outlive it"):
        server.systemctl("restart orchestrator.service")
        node.succeed("curl --insecure --fail --max-time 30 https://server:44443/health")

    with subtest("it reads everything anew, and goes on"):
        server.succeed("systemctl reload orchestrator.service")
        node.succeed("curl --insecure --fail --max-time 30 https://server:44443/health")

    with subtest("systemd thinks that it is confined"):
        server.succeed("systemd-analyze security --threshold=20 orchestrator.service")
  '';
}
