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
        f: lib.genAttrs systems (system: f nixpkgs.legacyPackages.${system} self.packages.${system});
    in
    {
      packages = eachSystem (
        pkgs: packages: import ./nix/packages.nix { inherit pkgs; } // { default = packages.orch; }
      );

      apps = eachSystem (_: packages: import ./nix/apps.nix { inherit lib packages; });

      overlays.default = import ./nix/overlay.nix;

      # For everybody's flake: it needs the `lib` of a nixpkgs alone, until a system is evaluated.
      lib = import ./nix/lib { inherit lib; };

      nixosModules = import ./nix/modules;

      # Every `hosts/<name>/default.nix`, as everybody's flake has them, and as `orch rollout` evaluates them.
      nixosConfigurations =
        (self.lib.mkFleet {
          inherit nixpkgs;
          site = ./.;
          hosts = ./hosts;
        }).hosts;

      checks = eachSystem (
        pkgs: packages:
        import ./nix/checks.nix {
          inherit lib pkgs;
          packages = removeAttrs packages [ "default" ];
          hosts = self.nixosConfigurations;
          modules = self.nixosModules;
        }
      );

      devShells = eachSystem (
        pkgs: _: {
          default = pkgs.callPackage ./nix/shell.nix { };
        }
      );

      templates.default = {
        path = ./nix/template;
        description = "A site of your own: hosts, manifests and specs, with NixOS where you like";
      };

      formatter = eachSystem (pkgs: _: pkgs.nixfmt-tree);
    };
}
