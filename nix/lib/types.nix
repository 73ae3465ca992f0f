# Types for what people write: the same words and ranges as orch's own reader has, with the rule in each refusal.
# A test holds them against docs/schema, which orch writes itself.
{ lib }:

let
  inherit (lib) types;

  # Text with a grammar. The length is looked at first: a regular expression over a long text is slow, or worse.
  word =
    noun: longest: pattern: rule:
    lib.mkOptionType {
      name = noun;
      description = "${noun} (${rule})";
      check =
        value:
        builtins.isString value
        && builtins.stringLength value <= longest
        && builtins.match pattern value != null;
      merge = lib.mergeEqualOption;
    }
    // {
      inherit pattern;
    };

  name =
    noun:
    word noun 63 "[a-z][a-z0-9-]*"
      "lower-case letters, digits and `-`, first a letter, at most 63 characters";

  isMention =
    value:
    builtins.isString value
    && builtins.stringLength value <= 4096
    && builtins.match "secret:[][A-Za-z0-9#./_@\"'-]+" value != null;
in
rec {
  nodeName = name "node name";
  manifestName = name "manifest name";
  hostName = name "host name";
  specName = name "spec name";
  presetName = name "preset name";
  tag = name "tag";
  keyName =
    word "key name" 128 "[A-Za-z0-9][A-Za-z0-9._@-]*"
      "letters, digits, `.`, `_`, `@` and `-`";
  userName =
    word "user name" 32 "[a-z_][a-z0-9_-]*"
      "lower-case letters, digits, `_` and `-`, at most 32 characters";
  domain = word "domain" 253 "[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?" "letters, digits, `-` and `.`";
  unit =
    word "unit or other name" 255 "[A-Za-z0-9][A-Za-z0-9:_.@-]*"
      "letters, digits and any of `:_.@-`, first a letter or digit";
  timeZone =
    word "time zone" 64 "[A-Za-z][A-Za-z0-9_+/-]*"
      "a name of the tz database such as `Europe/Berlin`";
  nodePath = word "absolute path" 4096 "/[^\n]*" "it starts with `/`";
  fileMode = word "file mode" 4 "[0-7]{4}" "four octal digits in quotes, such as \"0644\"";
  publicKey =
    word "ssh public key" 16384
      "(ssh-(ed25519|rsa)|ecdsa-sha2-nistp(256|384|521)|sk-[a-z0-9@.-]+) [A-Za-z0-9+/=]+( [^\n]*)?"
      "a key type, the key in base64, and a comment";
  url = word "https address" 2048 "https://[^[:space:]]+" "it starts with `https://`";
  fingerprint =
    word "certificate fingerprint" 95 "([0-9A-Fa-f]{2}:){31}[0-9A-Fa-f]{2}"
      "32 pairs of hexadecimal digits with `:` between";
  timespan =
    word "length of time" 11 "0*[1-9][0-9]{0,8}(ms|s|m|h|d)"
      "a number and a unit: `90s`, `10m`, `2h` or `1d`";
  address = word "IP address" 45 "[0-9A-Fa-f.:]+" "such as `10.0.0.1` or `fd00::1`";
  cidr = word "address with a prefix" 49 "[0-9A-Fa-f.:]+/[0-9]{1,3}" "such as `10.0.0.5/24`";

  vmid = types.ints.between 100 999999999;
  port = types.ints.between 1 65535;

  # A mention of a secret. What is not one may be the secret itself, so a refusal never shows it.
  secretRef = lib.mkOptionType {
    name = "mention of a secret";
    description = "mention of a secret (`secret:<file>#<path>` or `secret:<name>`)";
    check = _: true;
    # Each is looked at before they are compared, since what says that two differ shows both.
    merge =
      loc: defs:
      if builtins.all (def: isMention def.value) defs then
        lib.mergeEqualOption loc defs
      else
        throw "`${lib.showOption loc}`: a secret is mentioned as `secret:<file>#<path>` or `secret:<name>`, never written here";
  };

  # One thing that must hold for a node to count as healthy.
  health = lib.mkOptionType {
    name = "health check";
    description = "health check (exactly one of tcp, http, unit and command)";
    check =
      value:
      let
        is = {
          tcp = builtins.isInt value.tcp && value.tcp >= 1 && value.tcp <= 65535;
          http = builtins.isString value.http;
          unit = unit.check value.unit;
          command =
            builtins.isList value.command
            && value.command != [ ]
            && builtins.all builtins.isString value.command;
        };
        keys = builtins.attrNames value;
      in
      builtins.isAttrs value && builtins.length keys == 1 && is.${builtins.head keys} or false;
    merge = lib.mergeOneOption;
  };
}
