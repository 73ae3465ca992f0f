{ orch }:

{
  # The package, and every test of the workspace.
  orch = orch.override { runTests = true; };
}
