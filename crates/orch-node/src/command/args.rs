//! The arguments of `orch-node`, read by hand: they come from `orch`, and reading them must cost nothing.

use std::ffi::OsString;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use orch_model::{Digest, Mode};

use super::config::Origin;
use super::system::SystemOrder;
use crate::pull::{Manner, Pace};
use crate::push::BEFORE_SYSTEM;
use crate::resource::Extent;
use crate::worker::Terms;

pub(super) const USAGE: &str = "\
orch-node [--root DIR] COMMAND

With --root, the files of that tree are worked on; its programs are not run, and the machine is left alone.

  push [--mode MODE] [--limit SECONDS] [--health SECONDS] [--before-system]
                          apply the configuration of the delivery on standard input, by a worker that survives this
                          process, and wait until the node is healthy, for at most --health of the --limit; the first
                          line says the node's keys, the second what became of it or which secrets are lacking;
                          with --before-system only the secrets, for a NixOS system that is to come
  apply [--mode MODE] [--limit SECONDS] [--health SECONDS] FILE|-
                          apply a configuration in this process, with the secrets that the node has
  fetch [--once] [--limit SECONDS] [--health SECONDS]
                          fetch the configuration from the server that `/var/lib/orch/enrolment.json` names, apply it as
                          `push` does, and tell the server what became of it
  run [--limit SECONDS] [--health SECONDS]
                          do that again and again, when its time has come and when the server has something new
  converge [--limit SECONDS] [--health SECONDS]
                          tell whoever runs to do it now, or do it here
  keys                    make the node's own keys where they are missing, and say their public halves
  settle                  have the SSH server show the node's own key from now on
  unseal                  put the secrets of the last configuration in place, from what the node holds
  enrol                   take what is needed to fetch from standard input, and begin
  first-boot              do what cloud-init does with the document on standard input, once for each life of a machine
  inspect                 say what differs from the configuration on standard input, and change nothing
  health [--limit SECONDS]
                          repeat the health checks of the configuration on standard input until they pass
  report                  print the report of the last apply
  has DIGEST              print whether this configuration is the one that was last made true
  cancel [--grace SECONDS]
                          end a running worker
  system look             say what the node runs and boots, and what it lacks of the closure on standard input
  system lease            give the node to the run on standard input, for a while; `system release RUN` takes it back
  system receive [--limit SECONDS] [--idle SECONDS]
                          take what `nix-store --export` wrote, on standard input, into the store, unless nothing comes
                          for --idle
  system substitute [--limit SECONDS]
                          fetch what the node's own Nix can of the closure on standard input
  system build [--limit SECONDS] DERIVATION
                          build what a derivation makes that was received
  system switch           go over to the system of the order on standard input, watched over by a process that
                          survives this one: without a confirmation the node goes back by itself
  system await [--limit SECONDS] ROLLOUT
                          wait until the new system is activated, or until the node has gone back; confirm nothing
  system confirm [--limit SECONDS] ROLLOUT
                          keep the new system where the node is healthy with it, and wait for the end
  system back [--run RUN] [--limit SECONDS] ROLLOUT
                          go back to the system before, unless another run has the node, and wait for the end
  system boot             look after what a reboot left unfinished
  system inventory [PATH] say what a system is made of, or the one that runs
  init                    be the first process of a local node

Answers are lines of JSON on standard output. Exit codes: 0 done, 1 failed or unhealthy, 3 wrong input and
nothing was touched, 4 a time limit was reached, 6 secrets are lacking and nothing was touched.
";

const LIMIT: Duration = Duration::from_mins(10);
const HEALTH_LIMIT: Duration = Duration::from_mins(1);
const GRACE: Duration = Duration::from_secs(10);

/// What is asked, and of which tree.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Args {
    pub(super) root: PathBuf,
    pub(super) order: Order,
}

/// What is asked.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Order {
    Push(Terms),
    Worker { digest: Digest, terms: Terms },
    Apply { from: Origin, terms: Terms },
    Fetch(Manner),
    Run(Manner),
    Converge(Manner),
    Keys,
    Settle,
    Unseal,
    Enrol,
    FirstBoot,
    Inspect,
    Health { limit: Duration },
    Report,
    Has(Digest),
    Cancel { grace: Duration },
    System(SystemOrder),
    Init,
    Version,
    Help,
}

impl Order {
    /// Whether it changes something on the node.
    pub(super) const fn changes(&self) -> bool {
        matches!(self, Self::Enrol | Self::FirstBoot | Self::Cancel { .. } | Self::System(_))
            || (self.may_open_secrets() && !matches!(self, Self::Inspect))
    }

    /// Whether a value or a private key may come to be in the memory of this process.
    pub(super) const fn may_open_secrets(&self) -> bool {
        let pulls = matches!(self, Self::Fetch(_) | Self::Run(_) | Self::Converge(_));
        let applies = matches!(self, Self::Push(_) | Self::Worker { .. } | Self::Apply { .. });
        pulls
            || applies
            || matches!(self, Self::Keys | Self::Settle | Self::Unseal | Self::Inspect | Self::FirstBoot)
    }
}

impl Args {
    pub(super) fn parse(args: impl IntoIterator<Item = OsString>) -> Result<Self, String> {
        let mut words = Words::new(args);
        let root = words.option("--root")?.map_or_else(|| PathBuf::from("/"), PathBuf::from);
        let order = words.order()?;
        words.finish()?;
        Ok(Self { root, order })
    }
}

/// The arguments that are left.
pub(super) struct Words(Vec<OsString>);

impl Words {
    fn new(args: impl IntoIterator<Item = OsString>) -> Self {
        Self(args.into_iter().collect())
    }

    fn order(&mut self) -> Result<Order, String> {
        let name = self.next().ok_or("it is not said what to do")?;
        Ok(match name.to_str() {
            Some("push") => Order::Push(self.terms()?),
            Some("worker") => Order::Worker { terms: self.terms()?, digest: self.digest()? },
            Some("apply") => Order::Apply { terms: self.terms()?, from: self.origin()? },
            Some("fetch") => {
                // There is no other way to fetch; who says so is understood.
                self.0.retain(|word| word != "--once");
                Order::Fetch(self.manner()?)
            }
            Some("run") => Order::Run(self.manner()?),
            Some("converge") => Order::Converge(self.manner()?),
            Some("keys") => Order::Keys,
            Some("settle") => Order::Settle,
            Some("unseal") => Order::Unseal,
            Some("enrol") => Order::Enrol,
            Some("first-boot") => Order::FirstBoot,
            Some("inspect") => Order::Inspect,
            Some("health") => Order::Health { limit: self.seconds("--limit")?.unwrap_or(HEALTH_LIMIT) },
            Some("report") => Order::Report,
            Some("has") => Order::Has(self.digest()?),
            Some("cancel") => Order::Cancel { grace: self.seconds("--grace")?.unwrap_or(GRACE) },
            Some("system") => Order::System(SystemOrder::read(self)?),
            Some("init") => Order::Init,
            Some("--version" | "-V" | "version") => Order::Version,
            Some("--help" | "-h" | "help") => Order::Help,
            _ => return Err(format!("`{}` is not something it does", name.display())),
        })
    }

    fn terms(&mut self) -> Result<Terms, String> {
        Ok(Terms {
            mode: self.value("--mode")?.unwrap_or(Mode::Push),
            limit: self.seconds("--limit")?.unwrap_or(LIMIT),
            health: self.seconds("--health")?.unwrap_or(HEALTH_LIMIT),
            extent: if self.flag(BEFORE_SYSTEM) { Extent::BeforeSystem } else { Extent::Whole },
        })
    }

    /// How a node converges. What is counted in milliseconds is for tests, which have no time for the real ones.
    fn manner(&mut self) -> Result<Manner, String> {
        let usual = Pace::default();
        let tries: Option<Millis> = self.value("--tries-ms")?;
        let patience: Option<u64> = self.value("--patience-ms")?;
        let call: Option<u64> = self.value("--call-ms")?;
        let pace = Pace {
            tries: tries.map_or(usual.tries, |Millis(times)| times),
            patience: patience.map_or(usual.patience, Duration::from_millis),
            call: call.map_or(usual.call, Duration::from_millis),
        };
        Ok(Manner {
            pace,
            limit: self.seconds("--limit")?.unwrap_or(LIMIT),
            health: self.seconds("--health")?.unwrap_or(HEALTH_LIMIT),
            skew: self.value("--skew")?.unwrap_or(0),
        })
    }

    fn next(&mut self) -> Option<OsString> {
        if self.0.is_empty() { None } else { Some(self.0.remove(0)) }
    }

    /// Takes `name VALUE` out, wherever it stands.
    fn option(&mut self, name: &str) -> Result<Option<OsString>, String> {
        let Some(place) = self.0.iter().position(|word| word == name) else { return Ok(None) };
        if place + 1 == self.0.len() {
            return Err(format!("`{name}` needs a value"));
        }
        self.0.remove(place);
        Ok(Some(self.0.remove(place)))
    }

    pub(super) fn value<T: FromStr>(&mut self, name: &str) -> Result<Option<T>, String> {
        let Some(word) = self.option(name)? else { return Ok(None) };
        let value = word.to_str().and_then(|word| word.parse().ok());
        value.map(Some).ok_or_else(|| format!("`{}` is not a value for `{name}`", word.display()))
    }

    pub(super) fn seconds(&mut self, name: &str) -> Result<Option<Duration>, String> {
        // More than this would not fit into the time that is left to the clock.
        const MOST: u32 = 10 * 365 * 24 * 3600;
        let seconds: Option<u32> = self.value(name)?;
        Ok(seconds.map(|seconds| Duration::from_secs(seconds.min(MOST).into())))
    }

    /// Takes `name` out, wherever it stands. Whether it was there.
    pub(super) fn flag(&mut self, name: &str) -> bool {
        let count = self.0.len();
        self.0.retain(|word| word != name);
        self.0.len() < count
    }

    /// The next word, which must be there and be text.
    pub(super) fn text(&mut self, what: &str) -> Result<String, String> {
        let word = self.next().ok_or_else(|| format!("{what} is missing"))?;
        word.into_string().map_err(|word| format!("`{}` is not text", word.display()))
    }

    fn digest(&mut self) -> Result<Digest, String> {
        let word = self.next().ok_or("the digest of a configuration is missing")?;
        word.to_str().unwrap_or_default().parse()
    }

    fn origin(&mut self) -> Result<Origin, String> {
        let word = self.next().ok_or("`apply` needs a file, or `-` for standard input")?;
        Ok(if word == "-" { Origin::Input } else { Origin::File(word.into()) })
    }

    fn finish(self) -> Result<(), String> {
        self.0.first().map_or(Ok(()), |word| Err(format!("`{}` is one argument too many", word.display())))
    }
}

/// Times in milliseconds, with commas between them.
struct Millis(Vec<Duration>);

impl FromStr for Millis {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.split(',')
            .map(|number| number.parse().map(Duration::from_millis))
            .collect::<Result<_, _>>()
            .map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Args, String> {
        Args::parse(line.split_whitespace().map(OsString::from))
    }

    #[test]
    fn what_is_asked_is_understood_wherever_options_stand() {
        let push = parse("push --health 5 --limit 9").unwrap();
        let (limit, health) = (Duration::from_secs(9), Duration::from_secs(5));
        assert_eq!(push.order, Order::Push(Terms { mode: Mode::Push, limit, health, extent: Extent::Whole }));
        assert_eq!(parse("--root /x inspect").unwrap(), Args { root: "/x".into(), order: Order::Inspect });
        let apply = parse("apply - --mode pull").unwrap();
        let terms = Terms { mode: Mode::Pull, limit: LIMIT, health: HEALTH_LIMIT, extent: Extent::Whole };
        assert_eq!(apply.order, Order::Apply { from: Origin::Input, terms });
        let Order::Fetch(manner) = parse("fetch --tries-ms 0,5 --once --limit 9").unwrap().order else {
            panic!("it was not understood")
        };
        assert_eq!((manner.pace.tries.len(), manner.limit), (2, limit));
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for line in [
            "",
            "dance",
            "push --limit",
            "push --limit x",
            "push --limit -1",
            "push now",
            "push --mode sideways",
            "has",
            "has abc",
            "apply",
            "apply a b",
            "inspect --limit 3",
            "fetch now",
            "fetch --tries-ms 0,,1",
            "run --once",
        ] {
            assert!(parse(line).is_err(), "{line:?}");
        }
    }
}
