# Who gets in, and how: accounts, their keys, sudo, the SSH server, fail2ban.
role:
{ lib, options, ... }:

let
  users = role.users or [ ];
  isYes = word: word == "yes";

  account = user: {
    name = user.name;
    value = {
      openssh.authorizedKeys.keys = user.ssh_keys or [ ];
    }
    # `root` is on every machine and is never made.
    // lib.optionalAttrs (user.name != "root") { isNormalUser = true; };
  };

  # The same line that stands in /etc/sudoers.d elsewhere: no group is given away for it.
  rule = user: {
    users = [ user.name ];
    runAs = "ALL:ALL";
    commands = [
      {
        command = "ALL";
        options = lib.optional (role.sudo_nopasswd or false) "NOPASSWD";
      }
    ];
  };
  mayUseSudo = builtins.filter (user: (user.sudo or false) && user.name != "root") users;

  # NixOS lets a password in by this way too unless told, which Debian does not.
  answers =
    if options.services.openssh ? settings then
      {
        settings = {
          PermitRootLogin = role.ssh.permit_root_login;
          PasswordAuthentication = isYes role.ssh.password_authentication;
          KbdInteractiveAuthentication = lib.mkDefault false;
        };
      }
    else
      {
        permitRootLogin = role.ssh.permit_root_login;
        passwordAuthentication = isYes role.ssh.password_authentication;
        challengeResponseAuthentication = lib.mkDefault false;
      };
in
{
  users.users = builtins.listToAttrs (map account users);

  security.sudo = lib.mkIf (mayUseSudo != [ ]) {
    enable = true;
    extraRules = map rule mayUseSudo;
  };

  services.openssh = {
    enable = true;
    ports = [ role.ssh.port ];
  }
  // answers;

  # NixOS has a jail for its SSH server by itself. Where it is not asked for, a module may still want it.
  services.fail2ban = lib.mkIf (role.fail2ban or false) { enable = true; };
}
