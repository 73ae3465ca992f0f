# The derivation of a stand-in system. It needs /bin/sh and coreutils, to be built and to be activated.
{
  system,
  hostname,
  version,
  activate,
  check,
  files,
  units,
  kernel,
  initrd,
  systemd,
  references,
}:

let
  make =
    name: attributes:
    derivation (
      {
        inherit name system;
        builder = "/bin/sh";
        PATH = "/usr/bin:/bin";
      }
      // attributes
    );

  # Text goes to the builder as a variable, so that whatever it holds stays text.
  text =
    name: content:
    make name {
      inherit content;
      args = [
        "-c"
        ''printf '%s' "$content" > "$out"''
      ];
    };

  part = name: word: text "${name}-${word}" word;

  entry = at: content: [
    at
    (text (builtins.replaceStrings [ "/" "@" ] [ "-" "-" ] at) content)
  ];

  entries =
    builtins.concatMap (at: entry at files.${at}) (builtins.attrNames files)
    ++ builtins.concatMap (unit: entry "etc/systemd/system/${unit}" units.${unit}) (
      builtins.attrNames units
    );
in
make "nixos-system-${hostname}-${version}" {
  inherit references version;
  kernelPart = part "linux" kernel;
  initrdPart = part "initrd" initrd;
  modulesPart = part "kernel-modules" kernel;
  systemdPart = part "systemd" systemd;
  lines = text "activate-lines" activate;
  checks = text "check-lines" check;
  switch = ./switch-to-configuration;
  activation = ./activate;
  args = [
    ./build
  ]
  ++ entries;
}
