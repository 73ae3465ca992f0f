# Files of a site that are written in Nix, as plain data that was held against its types.
{ lib }:

let
  # What was not said is left out, so that orch's own defaults count.
  said =
    value:
    if builtins.isAttrs value then
      builtins.mapAttrs (_: said) (lib.filterAttrs (_: part: part != null) value)
    else if builtins.isList value then
      map said value
    else
      value;

  # A function is given `lib`, as every file of Nix is that wants to say a thing once.
  open = value: if builtins.isFunction value then value { inherit lib; } else value;

  check =
    file: options: value:
    said
      (lib.evalModules {
        modules = [
          options
          {
            _file = file;
            config = value;
          }
        ];
      }).config;
in
{
  inherit open;

  # `file` is for messages. `value` is the manifest, or a function from `{ lib, ... }` to it.
  manifest = file: value: check file ./manifest-options.nix (open value);

  host =
    file: value:
    let
      host = open value;
      provider = host.provider or "";
    in
    check file (import ./host-options.nix (if builtins.isString provider then provider else "")) host;
}
