//! Two machines that begin alike: one is pushed to, the other one fetches.

use std::process::Output;

use orch_model::{ApplyReport, ApplyStatus, Delivery, Lacking, Mode, NodeKeys};
use orch_run::{SiteTreasury, Treasury as _};
use serde_json::Value as Json;
use tempfile::TempDir;

use crate::ends::{End, told};
use crate::machine::Machine;
use crate::machines::Furniture;
use crate::server::Server;
use crate::site::{Plot, Site};

pub(crate) struct Twins {
    pushed: Machine,
    pulled: Machine,
    site: Site,
    server: Server,
    _folder: TempDir,
}

impl Twins {
    pub(crate) fn of(plot: &Plot, furniture: &Furniture) -> Self {
        let folder = TempDir::new().unwrap();
        let site = Site::write(plot, folder.path().join("site"));
        let server = Server::of(&site);
        let (pushed, pulled) = (Machine::new(furniture), Machine::new(furniture));
        let enrolment = serde_json::to_string(&server.enrol(&site)).unwrap();
        pulled.write("/var/lib/orch/enrolment.json", &enrolment, 0o400);
        Self { pushed, pulled, site, server, _folder: folder }
    }

    pub(crate) fn change_spec(&self, spec: &Json) {
        self.site.change_spec(spec);
        self.server.reload();
    }

    /// Brings both to what the site says, twice, and fails unless they are alike each time and the second changes nothing.
    pub(crate) fn converge(&self) -> ApplyStatus {
        let first = self.bring();
        let [pushed, pulled] = self.ends();
        assert_eq!(pushed.differences(&pulled), Vec::<String>::new());
        // Once it is complete, a push asks again, and a node that pulls looks for itself and keeps its report.
        let again = self.push();
        assert_eq!(again.status, first.status, "{again:?}");
        let fetched = self.fetch();
        if first.status == ApplyStatus::Complete {
            assert!(!again.changed(), "{again:?}");
            assert_eq!(fetched.attempts, 1, "{fetched:?}");
            assert_eq!(alike(&fetched), alike(&first));
        } else {
            assert_eq!(alike(&fetched), alike(&again));
        }
        let then = self.ends().map(End::without_own);
        assert_eq!(then[0].differences(&then[1]), Vec::<String>::new());
        if first.status == ApplyStatus::Complete {
            assert_eq!(pushed.without_own().differences(&then[0]), Vec::<String>::new());
        }
        first.status
    }

    /// Brings both to what the site says, and fails unless both tell the same of it.
    fn bring(&self) -> ApplyReport {
        let (pushed, pulled) = (self.push(), self.fetch());
        assert_eq!((pushed.mode, pulled.mode), (Mode::Push, Mode::Pull));
        assert_eq!(alike(&pushed), alike(&pulled));
        pulled
    }

    fn push(&self) -> ApplyReport {
        let config = self.site.resolve();
        let run = |parcel| {
            let delivery = Delivery { config: config.clone(), parcel };
            self.pushed.run(&["push"], &serde_json::to_vec(&delivery).unwrap())
        };
        let mut output = run(None);
        // It lacks secrets, and says which, after what can be encrypted to it.
        if output.status.code() == Some(6) {
            let mut lines = output.stdout.split(|byte| *byte == b'\n');
            let keys: NodeKeys = serde_json::from_slice(lines.next().unwrap()).unwrap();
            let Lacking { lacking } = serde_json::from_slice(lines.next().unwrap()).unwrap();
            let treasury = SiteTreasury::new(self.site.vault());
            output = run(Some(treasury.pack(&config, &lacking, &keys.age).unwrap()));
        }
        read(&self.pushed, &output)
    }

    fn fetch(&self) -> ApplyReport {
        read(&self.pulled, &self.pulled.run(&["fetch"], &[]))
    }

    fn ends(&self) -> [End; 2] {
        [self.pushed.end(), self.pulled.end()]
    }
}

/// A report but for who brought the configuration, and when.
fn alike(report: &ApplyReport) -> ApplyReport {
    let (started_at, finished_at) = (String::new(), String::new());
    ApplyReport { mode: Mode::Push, started_at, finished_at, ..report.clone() }
}

/// The report that the program printed; its exit code must say the same.
fn read(machine: &Machine, output: &Output) -> ApplyReport {
    let said = String::from_utf8_lossy(&output.stderr);
    // Before it, one that is pushed to says by what it is known.
    let last = output.stdout.trim_ascii_end().rsplit(|byte| *byte == b'\n').next();
    let report: Result<ApplyReport, _> = serde_json::from_slice(last.unwrap_or_default());
    let report = report.unwrap_or_else(|error| unreachable!("{error}: {said}"));
    let is_complete = report.status == ApplyStatus::Complete;
    assert_eq!(output.status.code(), Some(i32::from(!is_complete)), "{said}");
    told(machine.root(), report)
}
