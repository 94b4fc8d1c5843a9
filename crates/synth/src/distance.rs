//! How many steps at least lie between a partial operator and the input (Syno, section 6.2 and
//! appendix A).
//!
//! The published distance is no lower bound: it charges for each group of axes what one weight can
//! remove at once, and forbids weights where no step is to spare. This one never exceeds the number
//! of steps that are needed, so that a search which follows it loses nothing.

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use crate::coordinate::Coordinates;
use crate::size::Size;
use crate::state::State;

/// An axis of the data: its size, and 1 if steps may still be made on it.
type Axis = (Size, u8);

/// What the distance depends on.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Question {
    /// Ascending.
    axes: SmallVec<[Axis; 8]>,
    /// Steps of each kind that are left: weights, splits, merges, and windows with repetitions.
    left: [u8; 4],
}

/// Distances, remembered by the sizes and remaining steps of the axes alone.
#[derive(Clone, Debug, Default)]
pub struct Distances {
    memo: FxHashMap<Question, Option<u8>>,
}

impl Distances {
    /// How many steps at least lead from here to the input, without the last one, which says which
    /// axis is which; `None` if none do.
    pub fn of(&mut self, state: &State, coordinates: &mut Coordinates<'_>) -> Option<u8> {
        let limits = &coordinates.spec.limits;
        let counts = state.counts(coordinates);
        let left = [
            limits.weights - state.weights.len().min(limits.weights),
            limits.splits - counts.splits.min(limits.splits),
            limits.merges - counts.merges.min(limits.merges),
            limits.unfolds + limits.expands - (counts.unfolds + counts.expands).min(limits.unfolds + limits.expands),
        ]
        .map(|n| n.min(9) as u8);
        let chain = limits.chain;
        let skipping = state.data.iter().filter(|coord| coordinates.facts(**coord).skips).count();
        let axes = state.data.iter().filter(|coord| !coordinates.facts(**coord).skips);
        let mut axes: SmallVec<[Axis; 8]> = axes
            .map(|coord| coordinates.facts(*coord))
            .map(|facts| (facts.size, u8::from(facts.height < chain)))
            .collect();
        axes.sort_unstable();
        if skipping > usize::from(left[3]) {
            return None;
        }
        let distance = self.between(axes, left, coordinates);
        // A strided axis ends as a window or a repetition, and some weight has to come.
        let least = u8::from(state.weights.is_empty());
        distance.map(|d| (d + skipping as u8).max(least))
    }

    /// The same of sizes, ascending, each with 1 if steps may still be made on it, for so many
    /// weights, splits, merges, and windows with repetitions that are left.
    pub(crate) fn between(&mut self, axes: SmallVec<[Axis; 8]>, left: [u8; 4], coordinates: &mut Coordinates<'_>) -> Option<u8> {
        let question = Question { axes, left };
        if let Some(known) = self.memo.get(&question) {
            return *known;
        }
        let distance = distance(&question, coordinates);
        self.memo.insert(question, distance);
        distance
    }

    /// How many questions were answered.
    pub fn len(&self) -> usize {
        self.memo.len()
    }

    /// Whether none was.
    pub fn is_empty(&self) -> bool {
        self.memo.is_empty()
    }
}

/// A group of axes that become some axes of the input together.
#[derive(Clone, Debug)]
struct Group {
    wanted: Size,
    outputs: u8,
    size: Size,
    inputs: u8,
    /// Whether its only axis takes no more steps.
    closed: bool,
}

fn distance(question: &Question, coordinates: &mut Coordinates<'_>) -> Option<u8> {
    let wanted: Vec<Size> = coordinates.spec.input.iter().map(|axis| axis.size).collect();
    let mut best = None;
    for groups in partitions(&wanted) {
        let groups: SmallVec<[Group; 4]> = groups
            .into_iter()
            .map(|(wanted, outputs)| Group { wanted, outputs, size: Size::ONE, inputs: 0, closed: false })
            .collect();
        let merges: u8 = groups.iter().map(|group| group.outputs - 1).sum();
        if merges <= question.left[2] {
            assign(question, 0, groups, 0, merges, coordinates, &mut best);
        }
    }
    best
}

/// Gives the axes from `at` on to groups, or removes them; `steps` so far.
fn assign(
    question: &Question,
    at: usize,
    groups: SmallVec<[Group; 4]>,
    removed: u8,
    steps: u8,
    coordinates: &mut Coordinates<'_>,
    best: &mut Option<u8>,
) {
    let [weights, splits, _, windows] = question.left;
    let removal = if weights > 0 { removed.min(1) } else { removed };
    if best.is_some_and(|best| steps + removal >= best) || weights == 0 && removed > windows {
        return;
    }
    let Some(&(size, chain)) = question.axes.get(at) else {
        if let Some(total) = closed(question, &groups, removed, steps, coordinates) {
            *best = Some(best.map_or(total, |best| best.min(total)));
        }
        return;
    };
    for g in 0..groups.len() {
        let group = &groups[g];
        // Axes of one size and groups that want the same are alike: the first empty one is taken.
        let alike = group.inputs == 0 && groups[..g].iter().any(|other| other.inputs == 0 && other.wanted == group.wanted && other.outputs == group.outputs);
        let stuck = chain == 0 && (group.inputs > 0 || group.outputs > 1 || size != group.wanted);
        if alike || stuck || group.closed {
            continue;
        }
        let joins = u8::from(group.inputs > 0);
        let used: u8 = groups.iter().map(|group| group.inputs.saturating_sub(1)).sum();
        if joins + used > splits {
            continue;
        }
        let mut groups = groups.clone();
        groups[g].size = groups[g].size * size;
        groups[g].inputs += 1;
        groups[g].closed = chain == 0;
        assign(question, at + 1, groups, removed, steps + joins, coordinates, best);
    }
    // A window or a repetition is a step on the axis; a weight takes any.
    if chain > 0 || weights > 0 {
        assign(question, at + 1, groups, removed + 1, steps, coordinates, best);
    }
}

/// The steps of a complete assignment, if it is one.
fn closed(question: &Question, groups: &[Group], mut removed: u8, mut steps: u8, coordinates: &mut Coordinates<'_>) -> Option<u8> {
    let [weights, _, mut merges, windows] = question.left;
    for group in groups {
        if group.inputs == 0 {
            return None;
        }
        merges = merges.checked_sub(group.outputs - 1)?;
        let rest = group.size / group.wanted;
        if rest == Size::ONE {
            continue;
        }
        // What is too much is cut off by a merge, and removed.
        if group.closed || !is_rest(rest, coordinates) {
            return None;
        }
        merges = merges.checked_sub(1)?;
        steps += 1;
        removed += 1;
    }
    match weights {
        0 if removed > windows => None,
        0 => Some(steps + removed),
        _ => Some(steps + removed.min(1)),
    }
}

/// Whether a size can be what some axes that are removed have together.
fn is_rest(rest: Size, coordinates: &mut Coordinates<'_>) -> bool {
    let spec = coordinates.spec;
    let primaries: i32 = rest.exponents().filter(|(v, _)| !spec.is_coefficient(*v)).map(|(_, e)| i32::from(e)).sum();
    rest.exponents().all(|(variable, exponent)| exponent > 0 || spec.is_coefficient(variable) && primaries > 0)
        && coordinates.values(rest).is_some()
}

/// All partitions of the wanted axes, as products and numbers of axes.
fn partitions(wanted: &[Size]) -> Vec<Vec<(Size, u8)>> {
    let mut found = vec![Vec::<(Size, u8)>::new()];
    for size in wanted {
        let mut more = Vec::new();
        for partition in found {
            for group in 0..partition.len() {
                let mut joined = partition.clone();
                joined[group] = (joined[group].0 * *size, joined[group].1 + 1);
                more.push(joined);
            }
            let mut apart = partition;
            apart.push((*size, 1));
            more.push(apart);
        }
        found = more;
    }
    for partition in &mut found {
        partition.sort_unstable();
    }
    found.sort_unstable();
    found.dedup();
    found
}
