# Short words for options of files, which are many and have little to say each.
{ lib }:

let
  inherit (lib) mkOption types;
in
{
  # One that may be left out, and then is null.
  maybe =
    type: description:
    mkOption {
      type = types.nullOr type;
      default = null;
      inherit description;
    };

  # One that may be left out, and then is this.
  with' =
    default: type: description:
    mkOption { inherit type default description; };

  # One that may not be left out.
  needed = type: description: mkOption { inherit type description; };
}
