# `services.orchestrator`: `orch serve` as a service. Nodes that pull fetch their configuration here.
{
  imports = [
    ./options.nix
    ./site.nix
    ./service.nix
    ./assertions.nix
  ];
}
