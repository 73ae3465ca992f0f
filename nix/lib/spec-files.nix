# Files. Those below /etc are NixOS's own kind; others are written by systemd at boot and at every switch.
role:
{ config, lib, ... }:

let
  # What is written from other parts of a spec, here as elsewhere.
  owned = {
    "/etc/hostname" = "identity";
    "/etc/timezone" = "config.timezone";
    "/etc/localtime" = "config.timezone";
    "/etc/passwd" = "access.users";
    "/etc/group" = "access.users";
    "/etc/shadow" = "access.users";
    "/etc/gshadow" = "access.users";
    "/etc/sudoers" = "access.users";
    "/etc/ssh/sshd_config" = "access.posture";
  };

  kept = {
    "/proc" = "the kernel's";
    "/sys" = "the kernel's";
    "/dev" = "the kernel's";
    "/nix" = "Nix's own";
    "/run" = "gone after a boot";
    "/var/lib/orch" = "orch's own";
  };

  isBelow = folder: path: path == folder || lib.hasPrefix "${folder}/" path;
  keeper = path: builtins.filter (folder: isBelow folder path) (builtins.attrNames kept);

  # Everything that Nix writes can be read by everybody on the node, in its store.
  isPublic =
    mode:
    builtins.elem (builtins.substring 3 1 mode) [
      "4"
      "5"
      "6"
      "7"
    ];

  check =
    file:
    if owned ? ${file.path} then
      throw "file `${file.path}` is written from `${owned.${file.path}}` of the spec"
    else if keeper file.path != [ ] then
      throw "file `${file.path}` cannot be written on NixOS: what is there is ${
        kept.${builtins.head (keeper file.path)}
      }"
    else if !isPublic (file.mode or "0644") then
      throw "file `${file.path}` has mode ${file.mode}, but on NixOS its content could be read in the store by everybody: make it one of `secrets`"
    else
      file;

  groupOf =
    owner:
    if owner == "root" then
      "root"
    else
      config.users.users.${owner}.group
        or (throw "`${owner}` is to own a file, and is no user of this system: have it among `access.users`, or let a module define it");

  files = map check (role.files or [ ]);
  isEtc = file: lib.hasPrefix "/etc/" file.path;

  etc = file: {
    name = lib.removePrefix "/etc/" file.path;
    value = {
      text = file.content;
      mode = file.mode or "0644";
      user = file.owner or "root";
      group = groupOf (file.owner or "root");
    };
  };

  # One line of tmpfiles.d: `%` begins a specifier, `\` an escape, and spaces at the ends of a text are lost.
  inQuotes =
    text: "\"" + builtins.replaceStrings [ "\\" "\"" "%" ] [ "\\\\" "\\\"" "%%" ] text + "\"";
  inLine =
    builtins.replaceStrings
      [ "\\" "%" " " "\n" "\t" "\r" ]
      [ "\\\\" "%%" "\\x20" "\\n" "\\t" "\\r" ];

  rule =
    file:
    let
      owner = file.owner or "root";
    in
    "f+ ${inQuotes file.path} ${file.mode or "0644"} ${owner} ${groupOf owner} - ${inLine file.content}";
in
{
  environment.etc = builtins.listToAttrs (map etc (builtins.filter isEtc files));
  systemd.tmpfiles.rules = map rule (builtins.filter (file: !isEtc file) files);
}
