//! Nodes split among processes: how many in each, how many at once, what is split further when it fails, and what is
//! remembered afterwards.
//!
//! What a process read counts for all nodes in it. So when one file changes, all nodes that were evaluated with the one
//! that read it are evaluated again, in parts that are half as large, one after the other: what is changed often ends up
//! alone, and nodes that never change stay together, which is what costs the least.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::future::poll_fn;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::{Mutex, PoisonError};
use std::task::Poll;
use std::time::Duration;

use orch_model::{Digest, Identity};
use tokio::time::Instant;

use super::budget::{self, Need, Split};
use super::cache::{Cache, Record};
use super::reads::Reads;
use super::run::{Bench, Failure, Ran, Reach};
use super::tree::Tree;
use super::watch::{Number, Watch};
use super::{Evaluated, EvaluatorSettings, Results, Wanted};

/// What a run of evaluations works with.
pub(super) struct Batches<'b> {
    pub(super) bench: &'b Bench<'b>,
    pub(super) cache: &'b Cache,
    pub(super) keys: &'b BTreeMap<&'b Identity, Digest>,
    pub(super) settings: &'b EvaluatorSettings,
    pub(super) deadline: Instant,
    /// Why what is read outside of the site is not known, where it is not.
    pub(super) doubt: Option<String>,
}

/// Nodes that are evaluated together.
struct Batch<'b> {
    nodes: Vec<&'b Wanted>,
    reach: Reach,
}

/// A batch that came to an answer, for the cache.
struct Done {
    number: Number,
    evaluated: BTreeMap<Identity, Evaluated>,
    inside: BTreeSet<String>,
    outside: BTreeSet<PathBuf>,
}

#[derive(Default)]
struct State<'b> {
    waiting: VecDeque<Batch<'b>>,
    results: Results,
    done: Vec<Done>,
    /// Nodes that were evaluated with everything in reach.
    far: Vec<Identity>,
    need: Need,
    next: Number,
}

/// The site under watch.
struct Scene {
    tree: Tree,
    watch: Watch,
}

impl<'b> Batches<'b> {
    /// Evaluates these nodes. `is_stale` says that they were evaluated before and files have changed since.
    pub(super) async fn evaluate(
        &self,
        nodes: Vec<&'b Wanted>,
        (is_stale, folder): (bool, &Path),
        tell: &(dyn Fn(&str) + Send + Sync),
    ) -> Results {
        let need = self.cache.need();
        let memory = self.settings.memory.unwrap_or_else(budget::available);
        let split = need.split(nodes.len(), memory, self.settings.parallel, is_stale);
        let batch = |nodes: &[&'b Wanted]| Batch { nodes: nodes.to_vec(), reach: Reach::Kept };
        let waiting: VecDeque<_> = nodes.chunks(split.size).map(batch).collect();
        tell(&words(nodes.len(), waiting.len()));
        let scene = match &self.doubt {
            Some(doubt) => Err(doubt.clone()),
            None => Scene::set(self.bench.site, folder),
        };
        let scene = scene.inspect_err(|doubt| tell(&not_kept(doubt))).ok();
        let state = Mutex::new(State { waiting, need, ..State::default() });
        let workers = (0..split.at_once).map(|_| {
            let worker: Worker<'_> = Box::pin(self.work(&state, scene.as_ref(), split));
            worker
        });
        together(workers.collect()).await;
        let state = state.into_inner().unwrap_or_else(PoisonError::into_inner);
        let _ = self.cache.keep_need(state.need);
        for node in &state.far {
            tell(&not_kept(&format!("`{node}` reads what lies outside of the site")));
        }
        if let Some(scene) = scene {
            self.keep(&scene, &state.done, tell);
        }
        state.results
    }

    /// Takes batches as long as there are any.
    async fn work(&self, state: &Mutex<State<'b>>, scene: Option<&Scene>, split: Split) {
        let lock = || state.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let (batch, number, memory) = {
                let mut state = lock();
                let Some(batch) = state.waiting.pop_front() else { return };
                state.next += 1;
                let memory = state.need.of(batch.nodes.len()).min(split.share) / 4 * 3;
                (batch, state.next, memory)
            };
            let (ran, inside, outside) = self.run(&batch, (number, memory), scene).await;
            let mut state = lock();
            match ran.came {
                Ok(evaluated) => {
                    state.need.learn(batch.nodes.len(), ran.peak);
                    state
                        .results
                        .extend(evaluated.iter().map(|(identity, one)| (identity.clone(), Ok(one.clone()))));
                    if batch.reach == Reach::Open {
                        state.far.extend(evaluated.into_keys());
                    } else {
                        state.done.push(Done { number, evaluated, inside, outside });
                    }
                }
                Err(failure) => state.fail(batch, &failure, self.settings.limit),
            }
        }
    }

    async fn run(
        &self,
        batch: &Batch<'b>,
        (number, memory): (Number, u64),
        scene: Option<&Scene>,
    ) -> (Ran, BTreeSet<String>, BTreeSet<PathBuf>) {
        let left = self.deadline.saturating_duration_since(Instant::now());
        // Time is left for evaluating its nodes apart, since one of them may be what does not end.
        let limit = if batch.nodes.len() > 1 { left / 2 } else { left };
        let watch = scene.map(|scene| &scene.watch);
        let beat = || {
            if let Some(watch) = watch {
                watch.beat();
            }
        };
        if let Some(watch) = watch {
            watch.begin(number);
        }
        let ran = self.bench.run(&batch.nodes, batch.reach, (memory, limit), beat).await;
        let Some(scene) = scene else { return (ran, BTreeSet::new(), BTreeSet::new()) };
        let library = &self.bench.library.folder;
        let own = |path: &&PathBuf| {
            !path.is_absolute() || path.starts_with("/nix/store") || path.starts_with(library)
        };
        let (mut inside, mut outside) = (BTreeSet::new(), BTreeSet::new());
        for path in ran.files.iter().filter(|path| !own(path)) {
            match scene.tree.inside(path) {
                Some(path) => drop(inside.insert(path)),
                None => drop(outside.insert(path.clone())),
            }
        }
        scene.watch.end(number, &inside);
        (ran, inside, outside)
    }

    /// Remembers what was evaluated, now that nobody reads any more: looking at files is reading them.
    fn keep(&self, scene: &Scene, done: &[Done], tell: &(dyn Fn(&str) + Send + Sync)) {
        for done in done {
            if done.inside.is_empty() && done.outside.is_empty() {
                tell(&not_kept("Nix did not say what it evaluates"));
                continue;
            }
            let opened = scene.watch.opened(done.number, &done.inside);
            let reads = Reads::of(&scene.tree, &opened, (&done.inside, &done.outside));
            let sure = |reads| scene.watch.doubt(&opened).map_or(Ok(reads), Err);
            match reads.and_then(sure) {
                Ok(reads) => self.keep_all(&reads, &done.evaluated),
                Err(doubt) => tell(&not_kept(&doubt)),
            }
        }
        self.cache.tidy();
    }

    /// A cache that cannot be written costs an evaluation the next time, and nothing now.
    fn keep_all(&self, reads: &Reads, evaluated: &BTreeMap<Identity, Evaluated>) {
        let Ok(reads) = self.cache.keep_reads(reads) else { return };
        for (identity, one) in evaluated {
            let Some(key) = self.keys.get(identity).copied() else { continue };
            let Evaluated { drv, system, platform, health, secrets, disks, .. } = one.clone();
            let record = Record { key, reads, drv, system, platform, health, secrets, disks };
            let _ = self.cache.keep(identity, record);
        }
    }
}

impl Scene {
    /// Watches a site, and looks at it again once it is watched.
    fn set(site: &Path, cache: &Path) -> Result<Self, String> {
        let cannot = |error: std::io::Error| format!("what is read cannot be watched: {error}");
        let before = Tree::walk(site, cache).map_err(cannot)?;
        if let Some(odd) = before.odd() {
            return Err(odd.to_owned());
        }
        let watch = Watch::over(&before).map_err(cannot)?;
        let tree = Tree::walk(site, cache).map_err(cannot)?;
        watch.beat();
        if before.names() == tree.names() {
            Ok(Self { tree, watch })
        } else {
            Err("the site is being changed".into())
        }
    }
}

impl<'b> State<'b> {
    /// Splits what failed, until each node that is to blame is alone.
    fn fail(&mut self, batch: Batch<'b>, failure: &Failure, limit: Duration) {
        let Batch { nodes, reach } = batch;
        if nodes.len() > 1 && !matches!(failure, Failure::Run(_)) {
            let (first, second) = nodes.split_at(nodes.len() / 2);
            for nodes in [second, first] {
                self.waiting.push_front(Batch { nodes: nodes.to_vec(), reach });
            }
            return;
        }
        if matches!(failure, Failure::OutOfReach(_)) {
            self.waiting.push_front(Batch { nodes, reach: Reach::Open });
            return;
        }
        for node in nodes {
            let error = failure.about(&node.identity, limit);
            self.results.insert(node.identity.clone(), Err(error));
        }
    }
}

type Worker<'w> = Pin<Box<dyn Future<Output = ()> + Send + 'w>>;

/// Has workers work at once, in the task of who asks.
async fn together(mut workers: Vec<Worker<'_>>) {
    poll_fn(|context| {
        workers.retain_mut(|worker| worker.as_mut().poll(context).is_pending());
        if workers.is_empty() { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
}

fn words(nodes: usize, batches: usize) -> String {
    let plural =
        |count: usize, one: &str, many: &str| format!("{count} {}", if count == 1 { one } else { many });
    let nodes = plural(nodes, "node", "nodes");
    if batches == 1 { format!("evaluates {nodes}") } else { format!("evaluates {nodes} in {batches} parts") }
}

fn not_kept(doubt: &str) -> String {
    format!("will evaluate again the next time, since {doubt}")
}
