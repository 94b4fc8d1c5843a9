//! `Offers`: what other searches found, taken apart by the regions of a cut.

use regraft_cost::Ns;
use regraft_ir::NodeId;
use rustc_hash::FxHashMap;

use crate::engine::{Engine, Matcher};
use crate::regions::Regions;
use crate::strategy::Script;
use crate::transfer::{Current, Names, Recorded, pass_over};

/// Sequences from one state. Each was chosen as a whole: where regions are searched by themselves,
/// its part in one of them may be the best there, while another part is not.
pub(crate) struct Offers {
    sequences: Vec<Vec<Offered>>,
}

/// A move, and the region that all of it is in, if it is one.
struct Offered {
    recorded: Recorded,
    home: Option<usize>,
}

impl Offers {
    /// Those that save anything, from the engine's current state, whose graph was cut.
    pub(crate) fn of(engine: &mut Engine<'_>, regions: &Regions, scripts: &[Script]) -> Offers {
        let cost = engine.cost();
        let cheaper = scripts.iter().filter(|script| script.cost < cost);
        let sequences = cheaper.map(|script| at_home(Recorded::all(engine, &script.moves), regions)).collect();
        Offers { sequences }
    }

    /// The most that the moves of one of them save in a part, and these moves; `None` if that is
    /// nothing. The engine is where the sequences start, and stays there.
    pub(crate) fn best(
        &self,
        (engine, matcher): (&mut Engine<'_>, &mut Matcher<'_>),
        (regions, part): (&Regions, usize),
        current: &Current,
    ) -> Option<(Ns, Vec<Recorded>)> {
        let (start, before) = (engine.depth(), engine.cost());
        let mut best: Option<(Ns, Vec<Recorded>)> = None;
        for sequence in &self.sequences {
            if sequence.iter().all(|one| one.home != Some(part)) {
                continue;
            }
            let (mut here, mut names, mut taken) = (current.clone(), Names::default(), Vec::new());
            for Offered { recorded, home } in sequence {
                if *home != Some(part) {
                    pass_over(recorded, &mut names);
                    continue;
                }
                let Some(step) = here.follow((engine, matcher), recorded, &mut names) else {
                    pass_over(recorded, &mut names);
                    continue;
                };
                // What lies across the border is for whoever searches both sides.
                if engine.disturbed().any(|id| !regions.owns(part, id)) {
                    break;
                }
                taken.push(Recorded::latest(engine, &step));
                let saved = before.saturating_sub(engine.cost());
                if saved > best.as_ref().map_or(0, |best| best.0) {
                    best = Some((saved, taken.clone()));
                }
            }
            engine.rewind(start);
        }
        best
    }
}

/// The moves with the regions that they are in. Constants are in none.
fn at_home(sequence: Vec<Recorded>, regions: &Regions) -> Vec<Offered> {
    let mut made: FxHashMap<NodeId, Option<usize>> = FxHashMap::default();
    let mut offered = Vec::with_capacity(sequence.len());
    for recorded in sequence {
        let owner = |id: &NodeId| made.get(id).copied().unwrap_or_else(|| regions.owner(*id));
        let mut owners = recorded.step.nodes.iter().filter_map(owner);
        let first = owners.next();
        let home = first.filter(|first| owners.all(|owner| owner == *first));
        made.extend(recorded.created.iter().map(|id| (*id, home)));
        offered.push(Offered { recorded, home });
    }
    offered
}
