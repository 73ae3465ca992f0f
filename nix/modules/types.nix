# Types that both modules have options of.
{ lib }:

let
  inherit (lib) types;

  portOf = address: lib.toIntBase10 (lib.last (lib.splitString ":" address));

  isPort = port: port > 0 && port < 65536;
in
{
  inherit portOf;

  # A file with a secret in it. A Nix path would be copied to the store, where everybody can read it, so it has to be text; and
  # it stands in a unit, where some characters mean something.
  secretFile =
    types.addCheck (types.strMatching "/[A-Za-z0-9@_+=,./-]+") (
      file: !lib.hasPrefix builtins.storeDir file
    )
    // {
      description = "absolute path of a file outside of the Nix store, as a string";
      descriptionClass = "noun";
    };

  # `10.0.0.1:44443`, `[fd00::1]:44443`, or a port alone for every address.
  address =
    types.addCheck (types.strMatching "(\\[[0-9a-fA-F:.]+]:|[0-9.]+:)?[0-9]{1,5}") (
      address: isPort (portOf address)
    )
    // {
      description = "address and port, such as `10.0.0.1:44443` or `[fd00::1]:44443`, or a port alone";
      descriptionClass = "noun";
    };

  # What a secret is called in a site, in the stead of its value. The library's own: a refusal must not show what may be the value.
  mention = (import ../lib/types.nix { inherit lib; }).secretRef // {
    descriptionClass = "noun";
  };

  # Checked here, since systemd would only note a wrong one in its log and leave the timer out.
  timeSpan = types.strMatching "([0-9]+(s|min|m|h|d) ?)+" // {
    description = "time span, such as `15min` or `1h 30min`";
    descriptionClass = "noun";
  };

  # The name of a user or of a group.
  account =
    what:
    types.strMatching "[a-z_][a-z0-9_-]{0,30}"
    // {
      description = "${what} name";
      descriptionClass = "noun";
    };
}
