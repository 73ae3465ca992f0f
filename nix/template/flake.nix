{
  description = "My machines";

  inputs = {
    nixpkgs.url = "github:NixOS/nixpkgs/nixos-26.05";

    # Where you have orch from; a folder works too: `path:/home/you/orch`.
    orch.url = "github:example/orch";
    orch.inputs.nixpkgs.follows = "nixpkgs";
  };

  outputs =
    {
      self,
      nixpkgs,
      orch,
    }:
    let
      fleet = orch.lib.mkFleet {
        inherit nixpkgs;
        site = self;
        hosts = ./hosts;
        manifests = ./manifests;
      };

      eachSystem = nixpkgs.lib.genAttrs [
        "x86_64-linux"
        "aarch64-linux"
      ];
    in
    {
      # Every `hosts/<name>/default.nix`. `orch rollout -H server` deploys one of them, and `nixos-rebuild` can as well.
      nixosConfigurations = fleet.hosts;

      # `nix develop`, then `orch validate`.
      devShells = eachSystem (system: {
        default = nixpkgs.legacyPackages.${system}.mkShell {
          packages = [ orch.packages.${system}.orch ];
        };
      });
    };
}
