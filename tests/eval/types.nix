# Types refuse what orch's own reader refuses, with the rule in the refusal. They need the `lib` of a nixpkgs, and of its packages none.
{
  lib,
  library,
  nixpkgs,
  ...
}:

let
  orch = import library { inherit lib; };
  inherit (orch) types typed;

  # Which of these a type takes.
  takes = type: builtins.filter type.check;
  long = lib.concatStrings (lib.genList (_: "a") 64);

  manifest = more: typed.manifest "manifests/web.nix" (minimal // more);
  node = more: manifest { nodes = [ (head // more) ]; };
  head = {
    name = "web";
    type = "vm";
  };
  minimal = {
    schema_version = 2;
    name = "web";
    nodes = [ head ];
  };
  host = typed.host "hosts/father.nix";
  # Put together, because Nix shows lines of files in its messages, this one's too.
  literal = "hunter" + toString 2;
  proxmox = {
    provider = "proxmox";
    api_endpoint = "https://father.core:8006";
    api_token = "secret:father-api-token";
    datastore = "local-zfs";
  };

  # Of the module for servers, where a mention is an option too.
  signingKey =
    value:
    ((import ../modules/harness.nix { inherit lib nixpkgs; }).evaluate {
      services.orchestrator.settings.server.signing_keys.a = value;
    }).services.orchestrator.settings.server.signing_keys.a;

  # Good ones first; nothing else may be taken.
  word = type: good: bad: {
    is = takes type (good ++ bad);
    wanted = good;
  };
in
{
  tests = {
    "names are lower-case letters, digits and dashes" =
      word types.nodeName
        [ "a" "web-1" ]
        [
          ""
          "1a"
          "A"
          "a_b"
          "../etc"
          "a/b"
          "a\n"
          long
          1
          null
          "\${x}"
        ];
    "user names" = word types.userName [ "ops" "_apt" ] [ "Root" "a b" "x;y" "" ];
    "key names" = word types.keyName [ "alice@laptop" ] [ "" "a b" "-a" "$(id)" ];
    "modes are four octal digits, in quotes" =
      word types.fileMode
        [ "0644" "1777" ]
        [ "644" "0o644" "0888" "u+x" 644 ];
    "lengths of time" =
      word types.timespan
        [ "90s" "10m" "2h" "1d" "250ms" ]
        [
          ""
          "5"
          "m"
          "0s"
          "-1s"
          "1.5h"
          "1w"
          5
        ];
    "public keys" =
      word types.publicKey
        [ "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIE comment words" ]
        [ "ssh-ed25519" "command=\"x\" ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIE" "ssh-dss AAAA" ];
    "https addresses" =
      word types.url
        [ "https://orch.example:44443" ]
        [ "http://a" "https://" "https://a b" ];
    "time zones" =
      word types.timeZone
        [ "UTC" "Europe/Berlin" "Etc/GMT+1" ]
        [ "" "/etc/passwd" "../x" ];
    "health checks are exactly one of four things" =
      word types.health
        [
          { tcp = 22; }
          { http = "http://localhost/"; }
          { unit = "nginx.service"; }
          { command = [ "true" ]; }
        ]
        [
          { }
          { tcp = 0; }
          { tcp = "22"; }
          {
            tcp = 22;
            unit = "x";
          }
          { command = [ ]; }
          { ping = 1; }
          "tcp"
        ];
    "a text that is too long is refused without being read" =
      word types.publicKey
        [ ]
        [ "ssh-ed25519 ${lib.concatStrings (lib.genList (_: long) 400)}" ];

    "a manifest that says little has orch's defaults" = {
      is = manifest { };
      wanted = {
        schema_version = 2;
        name = "web";
        pattern = "flat";
        execution.default_mode = "push";
        settings = {
          on_error = "stop";
          verify_ssh = true;
          cleanup_on_failure = true;
          parallelism = 16;
          timeouts = {
            create = "10m";
            boot = "5m";
            config = "10m";
            destroy = "5m";
          };
        };
        nodes = [
          {
            name = "web";
            type = "vm";
            count = 1;
            depends_on = [ ];
            peers = [ ];
            tags = [ ];
            execution = { };
          }
        ];
      };
    };
    "what a node says is kept" = {
      is =
        builtins.head
          (node {
            spec = "base";
            preset = "vm-small";
            vmid = 100;
            disk = 20;
            parent = null;
            tags = [ "front" ];
            execution.mode = "pull";
          }).nodes;
      wanted = head // {
        count = 1;
        spec = "base";
        preset = "vm-small";
        vmid = 100;
        disk = 20;
        depends_on = [ ];
        peers = [ ];
        tags = [ "front" ];
        execution.mode = "pull";
      };
    };
    "a manifest may be a function of lib" = {
      is = builtins.length (typed.manifest "manifests/many.nix" (import ./site/manifests/many.nix)).nodes;
      wanted = 20;
    };
    "text in a manifest stays text" = {
      is = (manifest { description = "\${abort \"read as code\"} '' \" \\"; }).description;
      wanted = "\${abort \"read as code\"} '' \" \\";
    };
    "a manifest that is read through manifest.nix is the same" = {
      is =
        import (library + "/manifest.nix") {
          file = toString ./site/manifests/plain.nix;
          nixpkgs = null;
        } == import ./site/manifests/plain.nix;
      wanted = true;
    };
    "a proxmox host" = {
      is =
        (host (
          proxmox
          // {
            vmid_range = [
              200
              300
            ];
          }
        )).vmid_range;
      wanted = [
        200
        300
      ];
    };
    "a mention of a secret stays a mention" = {
      is = (host (proxmox // { api_token = "secret:secrets/api.yaml#a[\"b\"].c"; })).api_token;
      wanted = "secret:secrets/api.yaml#a[\"b\"].c";
    };
    "so does that of a signing key" = {
      is = signingKey "secret:server-key";
      wanted = "secret:server-key";
    };
  };

  refusals = {
    "an unknown key of a node" = {
      value = node { naem = "x"; };
      words = "naem";
    };
    "a name that is none, with the rule" = {
      value = node { name = "Web_1"; };
      words = "is not of type `node name (lower-case letters, digits and `-`, first a letter, at most 63 characters)'";
    };
    "a type that there is not" = {
      value = node { type = "vm2"; };
      words = "vm2";
    };
    "a number that is too large" = {
      value = node { count = 100001; };
      words = "between 1 and 100000 (both inclusive)";
    };
    "a vmid that is too small" = {
      value = node { vmid = 99; };
      words = "between 100 and 999999999 (both inclusive)";
    };
    "a manifest of another layout" = {
      value = manifest { schema_version = 1; };
      words = "schema_version";
    };
    "a manifest without nodes" = {
      value = manifest { nodes = [ ]; };
      words = "a manifest has at least one node";
    };
    "a length of time without a unit" = {
      value = manifest { settings.timeouts.boot = "5"; };
      words = "a number and a unit: `90s`, `10m`, `2h` or `1d`";
    };
    "the file is named" = {
      value = manifest { pattern = "round"; };
      words = "manifests/web.nix";
    };
    "a key that only another provider has" = {
      value = host {
        provider = "local";
        datastore = "x";
      };
      words = "datastore";
    };
    "a provider that there is not" = {
      value = host { provider = "vmware"; };
      words = "vmware";
    };
    "a host without what it needs" = {
      value = host (removeAttrs proxmox [ "datastore" ]);
      words = "The option `datastore'";
    };
    "a range that is upside down" = {
      value = host (
        proxmox
        // {
          vmid_range = [
            300
            200
          ];
        }
      );
      words = "vmid_range";
    };
    "a literal secret" = {
      value = host (proxmox // { api_token = literal; });
      words = "`api_token`: a secret is mentioned as `secret:<file>#<path>` or `secret:<name>`, never written here";
      without = "hunter2";
    };
    "a literal secret beside a mention" = {
      value = host (
        proxmox
        // {
          api_token = lib.mkMerge [
            "secret:father-api-token"
            literal
          ];
        }
      );
      words = "never written here";
      without = "hunter2";
    };
    "a literal signing key" = {
      value = signingKey literal;
      words = "never written here";
      without = "hunter2";
    };
  };
}
