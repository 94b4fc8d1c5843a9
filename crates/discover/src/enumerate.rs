//! The passes over all graphs: count them, mark repeated fingerprints, keep the graphs that have
//! them, judge groups of equal graphs.

use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use regraft_ir::parallel;

use crate::counting_filter::CountingFilter;
use crate::error::DiscoverError;
use crate::observe::Observer;
use crate::pairing::{Pair, Pairing, Tally};
use crate::record::{Merge, Record, Run, run_path};
use crate::rename::Renaming;
use crate::set::TermSet;
use crate::spec::Spec;
use crate::state::{Identity, Shard, State};
use crate::terms::Terms;
use crate::values::Values;
use crate::walk::{Size, Walk};

/// Items between two progress reports, per thread.
const STRIDE: usize = 4;
/// Items between two saved states of the work folder, per thread.
const BETWEEN_STATES: usize = 16;
/// Graphs judged at a time, per thread.
const JUDGED: usize = 1 << 16;

/// The resources of an enumeration, and its extent.
#[derive(Clone, Copy, Debug)]
pub struct Settings<'a> {
    /// Operators of the largest graphs.
    pub size: usize,
    /// Threads.
    pub threads: usize,
    /// Bytes of memory: half for the terms, a quarter for marks, a quarter for records.
    pub memory: u64,
    /// Seed of all random elements.
    pub seed: u64,
    /// Which fingerprints to enumerate.
    pub shard: Shard,
    /// An existing folder for records that do not fit into memory.
    pub work: &'a Path,
    /// Save the state in the work folder regularly, and resume from an existing one.
    pub checkpoint: bool,
}

/// What the passes found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Enumerated {
    /// Terms by number of operators; those without are the variables.
    pub terms: Vec<u64>,
    /// All graphs.
    pub size: Size,
    /// Graphs in the shard whose fingerprint seemed to repeat.
    pub records: u64,
    /// Bytes written to the work folder.
    pub spilled: u64,
    /// Pairs at each step.
    pub tally: Tally,
    /// The remaining pairs.
    pub pairs: Vec<Pair>,
}

/// The tables an enumeration is based on.
pub struct Tables {
    /// All terms.
    pub terms: Terms,
    /// Their fingerprints.
    pub values: Values,
}

impl Tables {
    /// Terms and fingerprints for these settings.
    pub fn new(spec: &Spec, settings: &Settings<'_>, observer: &mut dyn Observer) -> Result<Tables, DiscoverError> {
        observer.step("terms", &format!("of up to {} operators", settings.size));
        let terms = Terms::generate(spec, settings.size, settings.memory / 2)?;
        observer.step("values", &format!("of {} terms under {} assignments", terms.list().len(), spec.assignments.len()));
        let values = Values::of(spec, &terms, settings.seed, settings.threads)?;
        Ok(Tables { terms, values })
    }

    /// The same with fingerprints from a file that [`Values::write`] made.
    pub fn with_values(spec: &Spec, settings: &Settings<'_>, file: &Path, observer: &mut dyn Observer) -> Result<Tables, DiscoverError> {
        observer.step("terms", &format!("of up to {} operators", settings.size));
        let terms = Terms::generate(spec, settings.size, settings.memory / 2)?;
        observer.step("values", &format!("from {}", file.display()));
        let values = Values::read(file, &settings.identity(spec), terms.values())?;
        Ok(Tables { terms, values })
    }

    /// Terms for these settings, and fingerprints of everything in these pairs and their first
    /// names: enough to [`finish`](crate::finish), in a fraction of the time.
    pub fn of_pairs(spec: &Spec, settings: &Settings<'_>, pairs: &[Pair], observer: &mut dyn Observer) -> Result<Tables, DiscoverError> {
        observer.step("terms", &format!("of up to {} operators", settings.size));
        let terms = Terms::generate(spec, settings.size, settings.memory / 2)?;
        observer.step("values", &format!("of {} pairs under {} assignments", pairs.len(), spec.assignments.len()));
        let renaming = Renaming::new(spec, &terms);
        let named = parallel::map(pairs, settings.threads, |[l, r]| renaming.first_pair(l, r));
        let values = Values::of_graphs(spec, &terms, pairs.iter().chain(&named).flatten(), settings.seed, settings.threads)?;
        Ok(Tables { terms, values })
    }
}

impl Settings<'_> {
    /// The identity of an enumeration over a specification.
    pub fn identity(&self, spec: &Spec) -> Identity {
        Identity { spec: spec.digest, size: self.size, seed: self.seed, shard: self.shard }
    }
}

/// Runs all passes.
///
/// If interrupted with [`Settings::checkpoint`], it leaves a state from which a rerun resumes.
pub fn enumerate(spec: &Spec, tables: &Tables, settings: &Settings<'_>, observer: &mut dyn Observer) -> Result<Enumerated, DiscoverError> {
    let Tables { terms, values } = tables;
    let walk = Walk::new(terms, settings.size);
    let mut passes = Passes { walk: &walk, values, settings, observer };
    let size = count(terms, settings, passes.observer)?;
    let filter = passes.mark(size.graphs)?;
    let (runs, memory) = passes.keep(&filter, settings.identity(spec))?;
    drop(filter);
    let record_bytes = Run::record_bytes(settings.size);
    let mut found = Enumerated {
        terms: (0..=settings.size).map(|n| terms.of_size(n).len() as u64).collect(),
        size,
        records: memory.len() as u64 + runs.iter().map(|r| r.records).sum::<u64>(),
        spilled: runs.iter().map(|r| r.records * record_bytes).sum(),
        ..Enumerated::default()
    };
    let judge = Pairing::new(spec, terms, values);
    passes.judge(&judge, Merge::new(&runs, memory, settings.size)?, &mut found)?;
    Ok(found)
}

/// How many graphs there are over `terms`. Needs no values, and takes a small part of the time of
/// enumerating them.
pub fn count(terms: &Terms, settings: &Settings<'_>, observer: &mut dyn Observer) -> Result<Size, DiscoverError> {
    let walk = Walk::new(terms, settings.size);
    let items: Vec<usize> = (0..walk.items()).collect();
    let mut total = Size::default();
    for items in items.chunks(STRIDE * settings.threads.max(1)) {
        observer.step("count", &format!("{} of {} parts, {} graphs", items[0], walk.items(), total.graphs));
        if observer.interrupted() {
            return Err(DiscoverError::Interrupted);
        }
        for size in parallel::map(items, settings.threads, |item| walk.count(*item)) {
            total.graphs += size.graphs;
            total.orders += size.orders;
        }
    }
    Ok(total)
}

struct Passes<'a> {
    walk: &'a Walk<'a>,
    values: &'a Values,
    settings: &'a Settings<'a>,
    observer: &'a mut dyn Observer,
}

impl Passes<'_> {
    fn tell(&mut self, phase: &str, done: usize) -> Result<(), DiscoverError> {
        self.observer.step(phase, &format!("{done} of {} parts", self.walk.items()));
        if self.observer.interrupted() { Err(DiscoverError::Interrupted) } else { Ok(()) }
    }

    fn strides(&self) -> Vec<Vec<usize>> {
        let items: Vec<usize> = (0..self.walk.items()).collect();
        items.chunks(STRIDE * self.settings.threads.max(1)).map(<[usize]>::to_vec).collect()
    }

    fn mark(&mut self, graphs: u64) -> Result<CountingFilter, DiscoverError> {
        let shard = self.settings.shard;
        let filter = CountingFilter::new(graphs / u64::from(shard.count.max(1)) + 1, self.settings.memory / 4);
        for items in self.strides() {
            self.tell("mark", items[0])?;
            parallel::map(&items, self.settings.threads, |item| {
                self.walk.visit(self.values, *item, &mut |print, _| {
                    if shard.has(print) {
                        filter.mark(print);
                    }
                });
            });
        }
        Ok(filter)
    }

    /// Graphs with repeated fingerprints: in runs, and the rest in memory.
    fn keep(&mut self, filter: &CountingFilter, identity: Identity) -> Result<(Vec<Run>, Vec<Record>), DiscoverError> {
        let Settings { threads, work, checkpoint, shard, .. } = *self.settings;
        let mut state = if checkpoint { State::load(work, identity)? } else { State::new(identity) };
        if checkpoint {
            remove_unlisted(work, &state.runs)?;
        }
        let threads = threads.max(1);
        let room = (self.settings.memory / 4 / size_of::<Record>() as u64 / threads as u64).max(1) as usize;
        let mut keeper =
            Keeper { walk: self.walk, values: self.values, filter, shard, work, size: self.settings.size, room, runs: AtomicUsize::new(0) };
        *keeper.runs.get_mut() = state.runs.len();
        let mut buffers: Vec<Vec<Record>> = (0..threads).map(|_| Vec::new()).collect();
        while state.next < self.walk.items() {
            self.tell("keep", state.next)?;
            let stride = if checkpoint { BETWEEN_STATES } else { STRIDE };
            let end = self.walk.items().min(state.next + stride * threads);
            let mut runs = keeper.items(state.next, end, &mut buffers)?;
            if checkpoint {
                for buffer in buffers.iter_mut().filter(|b| !b.is_empty()) {
                    runs.push(keeper.spill(buffer)?);
                }
            }
            state.runs.extend(runs);
            state.next = end;
            if checkpoint {
                state.save(work)?;
            }
        }
        Ok((state.runs, buffers.concat()))
    }

    fn judge(&mut self, judge: &Pairing<'_>, mut merge: Merge, found: &mut Enumerated) -> Result<(), DiscoverError> {
        let mut groups: Vec<Vec<TermSet>> = Vec::new();
        let mut print = None;
        let (mut waiting, mut seen) = (0, 0u64);
        loop {
            let record = merge.next()?;
            let fresh = record.map(|r| r.print) != print || record.is_none();
            if fresh && groups.last().is_some_and(|group| group.len() < 2) {
                groups.pop();
                waiting -= 1;
            }
            if record.is_none() || (fresh && waiting >= JUDGED * self.settings.threads.max(1)) {
                self.observer.step("judge", &format!("{seen} of {} graphs, {} pairs left", found.records, found.pairs.len()));
                if self.observer.interrupted() {
                    return Err(DiscoverError::Interrupted);
                }
                let shares: Vec<&[Vec<TermSet>]> = groups.chunks(64).collect();
                let judged = parallel::map(&shares, self.settings.threads, |share| {
                    let (mut tally, mut pairs) = (Tally::default(), Vec::new());
                    share.iter().for_each(|group| judge.group(group, &mut tally, &mut pairs));
                    (tally, pairs)
                });
                for (tally, pairs) in judged {
                    found.tally += tally;
                    found.pairs.extend(pairs);
                }
                groups.clear();
                waiting = 0;
            }
            let Some(record) = record else { return Ok(()) };
            if fresh {
                groups.push(Vec::new());
                print = Some(record.print);
            }
            if let Some(group) = groups.last_mut() {
                group.push(record.graph);
            }
            waiting += 1;
            seen += 1;
        }
    }
}

/// Enumerates items into buffers that are written to disk when full.
struct Keeper<'a> {
    walk: &'a Walk<'a>,
    values: &'a Values,
    filter: &'a CountingFilter,
    shard: Shard,
    work: &'a Path,
    size: usize,
    /// Capacity of a buffer in records.
    room: usize,
    runs: AtomicUsize,
}

impl Keeper<'_> {
    fn spill(&self, buffer: &mut Vec<Record>) -> Result<Run, DiscoverError> {
        Run::write(run_path(self.work, self.runs.fetch_add(1, Ordering::Relaxed)), buffer, self.size)
    }

    /// Enumerates the items in `from..to`, one thread per buffer; returns the runs written.
    fn items(&self, from: usize, to: usize, buffers: &mut [Vec<Record>]) -> Result<Vec<Run>, DiscoverError> {
        let next = AtomicU64::new(from as u64);
        let failed = AtomicBool::new(false);
        let written: Mutex<Vec<Result<Run, DiscoverError>>> = Mutex::new(Vec::new());
        let report = |run: Result<Run, DiscoverError>| {
            if run.is_err() {
                failed.store(true, Ordering::Relaxed);
            }
            written.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push(run);
        };
        std::thread::scope(|scope| {
            for buffer in buffers.iter_mut() {
                scope.spawn(|| {
                    loop {
                        let item = next.fetch_add(1, Ordering::Relaxed) as usize;
                        if item >= to || failed.load(Ordering::Relaxed) {
                            break;
                        }
                        self.walk.visit(self.values, item, &mut |print, graph| {
                            if !self.shard.has(print) || !self.filter.is_repeated(print) {
                                return;
                            }
                            buffer.push(Record { print, graph: *graph });
                            if buffer.len() >= self.room {
                                report(self.spill(buffer));
                            }
                        });
                    }
                });
            }
        });
        written.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner).into_iter().collect()
    }
}

/// Removes runs left behind by a process that ended early.
fn remove_unlisted(work: &Path, listed: &[Run]) -> Result<(), DiscoverError> {
    for entry in std::fs::read_dir(work).map_err(DiscoverError::io(work))? {
        let path = entry.map_err(DiscoverError::io(work))?.path();
        let is_run = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("run-"));
        if is_run && listed.iter().all(|run| run.path != path) {
            std::fs::remove_file(&path).map_err(DiscoverError::io(&path))?;
        }
    }
    Ok(())
}
