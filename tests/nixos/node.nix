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
        with open("${../../crates/orch-node/tests/system/interrupted.json}") as file:
            record = json.load(file)
        # What such a machine boots by default is whatever it says: it has no boot loader, and may have no profile.
        view = json.loads(machine.succeed("echo '{}' | orch-node system look"))
        record["previous"], record["previous_default"] = running, view["boot_default"]
        machine.succeed("mkdir -p -m 0700 /var/lib/orch")
        machine.succeed(f"printf '%s' '{json.dumps(record)}' > /var/lib/orch/rollout.json")
        machine.shutdown()
        machine.start()
        machine.wait_until_succeeds("grep -q rolled-back /var/lib/orch/rollout.json", timeout=120)
        assert running == machine.succeed("readlink -f /run/current-system").strip()
  '';
}
