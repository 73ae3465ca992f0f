# What people write is data: nothing of it becomes Nix code, whatever it looks like.
{
  nixpkgs,
  lib,
  library,
  ...
}:

let
  # Each would end the evaluation, were it ever read as code.
  texts = [
    "\${abort \"read as code\"}"
    "''\${abort ''read as code''}''"
    "\"; abort \"read as code"
    "''; abort ''read as code"
    "\\\${abort \"read as code\"}"
    "\\\" + abort \"read as code\" + \\\""
    "@abort@ <nixpkgs> ./. # /* "
    "$(touch /tmp/read-as-code) `id` ; & | > \n\t\r"
    "ünïcode \u{1F600} …"
  ];
  all = builtins.concatStringsSep "" texts;

  # The file is what orch writes: JSON text.
  evaluate =
    identity: node:
    (import (library + "/fleet.nix") { inherit lib; }).evaluate {
      site = ./site;
      inherit nixpkgs;
      nodes.${identity} = builtins.fromJSON (builtins.toJSON node);
    };

  node = {
    name = all;
    kind = "node";
    modules = [ "hosts/web" ];
    platform = "x86_64-linux";
    tags = texts;
    config = {
      hostname = "web";
      domain = all;
      packages = texts;
      config = {
        inherit all;
        ${all} = all;
      };
      files = map (content: {
        path = "/etc/${content}";
        inherit content;
      }) texts;
      users = map (name: {
        inherit name;
        ssh_keys = texts;
      }) texts;
      health = map (http: { inherit http; }) texts;
    };
  };

  web = (evaluate all node).${all};
  file = toString ./. + "/\${abort \"read as code\"}.nix";
in
{
  tests = {
    "a node's identity, name, tags and configuration reach its modules as they were written" = {
      is = builtins.toJSON web.config.orch.node;
      wanted = builtins.toJSON {
        identity = all;
        inherit (node)
          name
          kind
          tags
          config
          ;
      };
    };
    "so do its health checks" = {
      is = web.health;
      wanted = node.config.health;
    };
    "text that a module puts into its system stays text" = {
      is = web.config.standIn.files;
      wanted = {
        "etc/motd" = all;
        "etc/who" = all;
      };
    };
    "such a node has a derivation like every other" = {
      is =
        builtins.match "/nix/store/.*\\.drv" (builtins.unsafeDiscardStringContext web.toplevel.drvPath)
        != null;
      wanted = true;
    };
  };

  refusals = {
    "a module with such a name is a file that does not exist" = {
      value =
        (evaluate "m.web@h" (node // { modules = [ (builtins.head texts) ]; }))."m.web@h".toplevel.drvPath;
      words = "module `\${abort \"read as code\"}` does not exist in the site";
    };
    "a manifest with such a name is a file that does not exist" = {
      value = import (library + "/manifest.nix") { inherit file; };
      words = "No such file or directory";
    };
    "a host name with such a text is no name of a system" = {
      value =
        (evaluate "m.web@h" (
          node
          // {
            config = node.config // {
              hostname = builtins.head texts;
            };
          }
        ))."m.web@h".toplevel.drvPath;
      words = "contains illegal character";
    };
  };
}
