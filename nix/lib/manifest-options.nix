# A manifest as options, so that one written in Nix is refused where one in YAML would be: nodes and how they hang together.
# What holds between nodes (parents, cycles, patterns) is checked by orch, for every form alike.
{ lib, ... }:

let
  inherit (lib) mkOption types;
  orch = import ./types.nix { inherit lib; };
  inherit (import ./declare.nix { inherit lib; }) maybe with' needed;

  mode = types.enum [
    "push"
    "pull"
    "hybrid"
  ];

  section =
    description: options:
    mkOption {
      type = types.submodule { inherit options; };
      default = { };
      inherit description;
    };

  node.options = {
    name = needed orch.nodeName "Its name, unique in the manifest.";
    type = needed (types.enum [
      "vm"
      "ct"
      "pve"
    ]) "What kind of machine it is.";
    count =
      with' 1 (types.ints.between 1 100000)
        "More than one makes `<name>-1` to `<name>-<count>`, all with the same parent.";
    spec = maybe orch.specName "What it becomes: a name under specs/. Without one it is created and not configured.";
    preset = maybe orch.presetName "How large it is: a name under presets/.";
    image = maybe types.str "The image of a vm or pve.";
    template = maybe types.str "The template of a ct.";
    vmid = maybe orch.vmid "Its number on a Proxmox host; derived from its identity where it is not given.";
    disk = maybe types.ints.positive "Disk in GB; wins over the preset.";
    host = maybe orch.hostName "Where it is placed, if not on the host that the command names: a name under hosts/.";
    parent = maybe orch.nodeName "The node that it lives on: another node of this manifest.";
    depends_on =
      with' [ ] (types.listOf orch.nodeName)
        "Nodes that must be ready before it, without being its parent.";
    peers = with' [ ] (types.listOf orch.nodeName) "The other nodes of a mesh; mutual.";
    tags = with' [ ] (types.listOf orch.tag) "Words that group nodes, for `--only tag:<tag>`.";
    execution = section "How it receives its configuration." {
      mode = maybe mode "The mode of this node.";
    };
  };
in
{
  options = {
    schema_version = needed (types.enum [ 2 ]) "The layout of this file: 2.";
    name = needed orch.manifestName "The manifest's name, the same as its file's.";
    description = maybe types.str "What it is for.";
    pattern = with' "flat" (types.enum [
      "flat"
      "tiered"
      "mesh"
      "hub-spoke"
      "federated"
    ]) "The shape in which the nodes hang together; checked against them.";
    execution = section "How nodes receive their configuration." {
      default_mode = with' "push" mode "The mode of every node that does not name one.";
    };
    settings = section "How a run behaves." {
      on_error = with' "stop" (types.enum [
        "stop"
        "rollback"
        "continue"
      ]) "What a failed node means for the others.";
      verify_ssh = with' true types.bool "Whether a node counts as created only once SSH answers.";
      cleanup_on_failure =
        with' true types.bool
          "Whether `test` destroys what it made even when it failed.";
      parallelism = with' 16 (types.ints.between 1 1000) "How many nodes are worked on at once.";
      timeouts = section "How long each phase may take." {
        create = with' "10m" orch.timespan "Making the machine.";
        boot = with' "5m" orch.timespan "From power-on until it can be reached.";
        config = with' "10m" orch.timespan "Applying the configuration.";
        destroy = with' "5m" orch.timespan "Taking the machine down.";
      };
    };
    nodes = needed (types.listOf (types.submodule node)) "The machines." // {
      apply = nodes: if nodes == [ ] then throw "`nodes`: a manifest has at least one node" else nodes;
    };
  };
}
