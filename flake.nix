{
  description = "Nix-integrated host provisioning: one manifest, the whole life of a machine";

  inputs.nixpkgs.url = "github:NixOS/nixpkgs/nixos-26.05";

  outputs =
    { self, nixpkgs }:
    let
      inherit (nixpkgs) lib;

      # Where orch itself runs. The machines it makes may be of another system.
      systems = [
        "x86_64-linux"
        "aarch64-linux"
      ];

      eachSystem =
        f:
        lib.genAttrs systems (
          system:
          f {
            pkgs = nixpkgs.legacyPackages.${system};
            inherit (self.packages.${system}) orch;
          }
        );
    in
    {
      packages = eachSystem (
        { pkgs, orch }:
        {
          orch = pkgs.callPackage ./nix/package.nix { };
          # For nodes, of either system and with whatever libraries.
          orch-node = pkgs.pkgsStatic.callPackage ./nix/package.nix { program = "orch-node"; };
          default = orch;
        }
      );

      apps = eachSystem ({ orch, ... }: import ./nix/apps.nix { inherit lib orch; });

      checks = eachSystem ({ orch, ... }: import ./nix/checks.nix { inherit orch; });

      devShells = eachSystem (
        { pkgs, ... }:
        {
          default = pkgs.callPackage ./nix/shell.nix { };
        }
      );

      formatter = eachSystem ({ pkgs, ... }: pkgs.nixfmt-tree);
    };
}
