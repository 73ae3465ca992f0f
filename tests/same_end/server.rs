//! A spec server in this process, with real TLS on a port of loopback, which is gone with its site.

use std::net::TcpListener;
use std::sync::LazyLock;

use orch_model::pull::Enrolment;
use orch_model::{Mode, SpecName};
use orch_run::StateDir;
use orch_server::{InOffice, Limits, Minter, ServerFolder, SitePlace, nobody, system_clock};
use tempfile::TempDir;
use tokio::runtime::Runtime;

use crate::site::Site;

/// What all servers of this process run on.
static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| {
    tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap()
});

pub(crate) struct Server {
    folder: ServerFolder,
    address: String,
    office: InOffice,
    _state: TempDir,
}

impl Server {
    pub(crate) fn of(site: &Site) -> Self {
        let state = TempDir::new().unwrap();
        let folder =
            ServerFolder::of(&StateDir::locate(Some(state.path())).unwrap(), &"lab".parse().unwrap());
        let place =
            SitePlace { root: site.root.clone(), manifest: None, identities: site.identities.clone() };
        let _runtime = RUNTIME.enter();
        let office = InOffice::enter(&folder, place, Limits::default(), system_clock(), nobody());
        let office = office.unwrap().unwrap();
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let address = format!("https://{}", listener.local_addr().unwrap());
        office.listen(listener).unwrap();
        Self { folder, address, office, _state: state }
    }

    /// Has it read the site anew, also where nobody tells it of changes: there may be too many who watch files already.
    pub(crate) fn reload(&self) {
        self.office.reload().unwrap();
    }

    /// What a node is given when it is made.
    pub(crate) fn enrol(&self, site: &Site) -> Enrolment {
        let spec: SpecName = "base".parse().unwrap();
        let minter = Minter::of(&self.folder, system_clock());
        minter.enrol(&site.node, &spec, Mode::Pull, self.address.clone()).unwrap()
    }
}
