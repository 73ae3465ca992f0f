# `services.orch-node`: what a machine needs to be a node of orch on NixOS.
{
  imports = [
    ./options.nix
    ./pull.nix
    ./rollout.nix
    ./assertions.nix
  ];
}
