# A whole machine that is given a secret: as the modules have it, or, for the control, in the way that they refuse.
{
  nixpkgs,
  secret,
  kind ? "credential",
}:

(import ./system.nix {
  inherit nixpkgs;
  module = {
    services.orchestrator = {
      enable = true;
      site = ./site;
      ageIdentityFile = secret;
    };
    services.orch-node = {
      enable = true;
      pull.enable = true;
      pull.enrolmentFile = secret;
    };
    environment.etc = if kind == "leak" then { leak.source = /. + secret; } else { };
  };
}).config.system.build.toplevel
