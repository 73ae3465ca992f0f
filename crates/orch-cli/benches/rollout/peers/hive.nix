# What colmena reads: the same nodes with the same module. `data.json`, beside this file, says where everything is.
let
  data = builtins.fromJSON (builtins.readFile ./data.json);
  node = name: {
    inherit name;
    value = {
      deployment.targetHost = name;
      deployment.targetUser = "root";
      standIn.node = name;
    };
  };
in
{
  # Of nixpkgs it takes the module system, and a NixOS that is the stand-in.
  meta.nixpkgs = {
    lib = import (data.lib + "/lib");
    path = data.nixos;
    system = builtins.currentSystem;
    overlays = [ ];
    config = { };
  };
}
// builtins.listToAttrs (map node data.nodes)
