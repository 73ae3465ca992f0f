# A node with an unfinished rollout brings it to its end at boot; one that pulls waits until it is enrolled.
{ modules, ... }:

{
  name = "node";

  nodes.machine = {
    imports = [ modules.node ];
    services.orch-node = {
      enable = true;
      pull.enable = true;
    };
  };

  testScript = ''
    import json

    machine.wait_for_unit("multi-user.target")

    with subtest("without a rollout there is nothing to do"):
        machine.succeed("test $(systemctl show -P ConditionResult orch-node-rollout.service) = no")

    with subtest("who is not enrolled does not fetch"):
        machine.succeed("test $(systemctl show -P ConditionResult orch-node.service) = no")
        machine.fail("systemctl is-failed orch-node.service")

    with subtest("a rollout that a reboot interrupted ends on the system before it, and says why"):
        running = machine.succeed("readlink -f /run/current-system").strip()
        other = "/nix/store/00000000000000000000000000000000-nixos-system-other"
        record = {
            "id": "interrupted",
            "run": "test",
            "system": other,
            "previous": running,
            "previous_default": running,
            "phase": "activating",
            "why": None,
            "evidence": [],
            "reboot_needed": [],
            "since": "2026-01-01T00:00:00Z",
        }
        machine.succeed("mkdir -p -m 0700 /var/lib/orch")
        machine.succeed(f"printf '%s' '{json.dumps(record)}' > /var/lib/orch/rollout.json")
        machine.shutdown()
        machine.start()
        machine.wait_until_succeeds("grep -q rolled-back /var/lib/orch/rollout.json", timeout=120)
        assert running == machine.succeed("readlink -f /run/current-system").strip()
  '';
}
