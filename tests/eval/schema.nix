# The options of manifests and hosts are those of docs/schema, which orch writes itself: keys, choices, ranges, defaults.
{ lib, library, ... }:

let
  schemaOf = name: builtins.fromJSON (builtins.readFile (../../docs/schema + "/${name}.schema.json"));
  optionsOf = module: removeAttrs (lib.evalModules { modules = [ module ]; }).options [ "_module" ];

  manifest = schemaOf "manifest";
  hosts = (schemaOf "host").oneOf;
  providerOf = schema: schema.properties.provider.const;

  # The options inside of a type: of a section, of one that may be absent, of each in a list.
  inside =
    type:
    removeAttrs (type.getSubOptions [ ]) [
      "_module"
      "_freeformOptions"
    ];

  # What is held against each other, of every key at any depth.
  ofSchema =
    at: schema:
    lib.concatLists (
      lib.mapAttrsToList (
        key: property:
        let
          here = "${at}.${key}";
          of = property.items or property;
        in
        [
          {
            inherit here;
            default = if property ? properties then null else property.default or null;
          }
        ]
        ++ lib.optionals (of ? properties) (ofSchema here of)
      ) (schema.properties or { })
    );

  ofOptions =
    at: options:
    lib.concatLists (
      lib.mapAttrsToList (
        key: option:
        let
          here = "${at}.${key}";
          deeper = inside option.type;
          default = option.default or null;
        in
        [
          {
            inherit here;
            # A section and an empty list are how Nix says that nothing was said.
            default = if deeper != { } || default == [ ] || default == { } then null else default;
          }
        ]
        ++ ofOptions here deeper
      ) options
    );

  index = list: builtins.listToAttrs (map (one: lib.nameValuePair one.here one.default) list);

  # Every choice of a schema, with where it is.
  choices =
    at: schema:
    lib.concatLists (
      lib.mapAttrsToList (
        key: property:
        let
          of = property.items or property;
        in
        lib.optional (of ? enum) {
          path = at ++ [ key ];
          enum = builtins.filter (value: value != null) of.enum;
        }
        ++ lib.optionals (of ? properties) (choices (at ++ [ key ]) of)
      ) (schema.properties or { })
    );

  optionAt =
    options: path:
    lib.foldl (at: key: if at ? _type then (inside at.type).${key} else at.${key}) options path;
  accepts =
    options: choice:
    map ((optionAt options choice.path).type.check) (choice.enum ++ [ "no such choice" ]);

  manifestOptions = optionsOf (library + "/manifest-options.nix");
  # Keys of the ssh section that this schema may not have yet are Nix's to offer; none that it has may be missing.
  missing = lib.concatMap (
    schema:
    let
      options = index (
        ofOptions "" (optionsOf (import (library + "/host-options.nix") (providerOf schema)))
      );
    in
    builtins.filter (one: !(options ? ${one.here})) (ofSchema "" schema)
  ) hosts;
in
{
  tests = {
    "a manifest has the keys and defaults of its schema, no more and no less" = {
      is = index (ofOptions "" manifestOptions);
      wanted = index (ofSchema "" manifest);
    };
    "a manifest has the choices of its schema" = {
      is = map (accepts manifestOptions) (choices [ ] manifest);
      wanted = map (choice: map (_: true) choice.enum ++ [ false ]) (choices [ ] manifest);
    };
    "there are choices to compare" = {
      is = builtins.length (choices [ ] manifest) > 4;
      wanted = true;
    };
    "every provider of hosts is known" = {
      is = map providerOf hosts;
      wanted = [
        "local"
        "proxmox"
        "hetzner"
        "k3s"
      ];
    };
    "no key of a host is missing" = {
      is = missing;
      wanted = [ ];
    };
  };
}
