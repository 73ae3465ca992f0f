# The NixOS modules of orch, as the flake exports them. They are paths, so that importing one twice is importing it once.
{
  orchestrator = ./orchestrator;
  node = ./node;
}
