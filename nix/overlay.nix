# orch for other people's nixpkgs: `nixpkgs.overlays = [ orch.overlays.default ];`
final: _prev: import ./packages.nix { pkgs = final; }
