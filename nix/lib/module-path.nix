# A module of a spec, `hosts/web` or `./hosts/web.nix`, as a path inside of the site. It never leads out of it.
site: module:

let
  root = if builtins.isPath site then site else /. + builtins.unsafeDiscardStringContext site;
  parts = builtins.filter (part: builtins.isString part && part != "" && part != ".") (
    builtins.split "/" module
  );
  path = root + ("/" + builtins.concatStringsSep "/" parts);
in
if builtins.substring 0 1 module == "/" || builtins.elem ".." parts || parts == [ ] then
  throw "module `${module}` is not a path inside of the site"
else if !builtins.pathExists path then
  throw "module `${module}` does not exist in the site"
else
  path
