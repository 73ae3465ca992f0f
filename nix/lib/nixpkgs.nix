# Which nixpkgs a site is evaluated with: the folder that was named, else what the site's flake.lock pins, else `<nixpkgs>`.
{
  # A folder, as text or as a path.
  nixpkgs ? null,
  # The site's folder.
  site ? null,
}:

let
  path = text: if builtins.isPath text then text else /. + builtins.unsafeDiscardStringContext text;

  lockFile = path site + "/flake.lock";
  lock = builtins.fromJSON (builtins.readFile lockFile);
  name = lock.nodes.${lock.root}.inputs.nixpkgs or null;
  # A list means that the input follows another one; that is a path through the inputs.
  follow =
    input:
    if builtins.isString input then
      input
    else
      builtins.foldl' (node: step: follow lock.nodes.${node}.inputs.${step}) lock.root input;
  locked = lock.nodes.${follow name}.locked;
  isLocked = site != null && builtins.pathExists lockFile && name != null;

  # Text for `fetchTarball`, of parts that the lock file holds; it is an address and never code.
  address = {
    github = "https://${locked.host or "github.com"}/${locked.owner}/${locked.repo}/archive/${locked.rev}.tar.gz";
    gitlab = "https://${locked.host or "gitlab.com"}/${locked.owner}/${locked.repo}/-/archive/${locked.rev}.tar.gz";
    tarball = locked.url;
  };

  fetched =
    if locked.type == "path" then
      path locked.path
    else if locked.type == "git" then
      builtins.fetchGit { inherit (locked) url rev; }
    else
      builtins.fetchTarball {
        name = "source";
        url =
          address.${locked.type}
            or (throw "flake.lock has nixpkgs as `${locked.type}`, which orch cannot fetch; name a folder with --nixpkgs or ORCH_NIXPKGS");
        sha256 = locked.narHash;
      };

  searched = builtins.tryEval <nixpkgs>;
in
if nixpkgs != null then
  path nixpkgs
else if isLocked then
  fetched
else if searched.success then
  searched.value
else
  throw "there is no nixpkgs: name a folder with --nixpkgs or ORCH_NIXPKGS, or have a flake.lock with an input `nixpkgs` in the site"
