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
    /// The distance, or [`NEVER`]; and how far was looked, beyond which it is not known.
    memo: FxHashMap<Question, (u8, u8)>,
}

impl Distances {
    /// How many steps at least lead from here to the input, without the last one, which says which
    /// axis is which; `None` if there are none, or more than the depth leaves.
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
        let limits = limits.clone();
        let chain = limits.chain;
        let skipping = state.data.iter().filter(|coord| coordinates.facts(**coord).skips).count();
        let axes = state.data.iter().filter(|coord| !coordinates.facts(**coord).skips);
        let mut axes: SmallVec<[Axis; 8]> =
            axes.map(|coord| coordinates.facts(*coord)).map(|facts| (facts.size, u8::from(facts.height < chain))).collect();
        axes.sort_unstable();
        if skipping > usize::from(left[3]) {
            return None;
        }
        let most = limits.depth.saturating_sub(state.steps(&counts) + 1).min(usize::from(NEVER) - 1) as u8;
        let distance = self.between(axes, left, most, coordinates);
        // A strided axis ends as a window or a repetition, and some weight has to come.
        let least = u8::from(state.weights.is_empty());
        distance.map(|d| (d + skipping as u8).max(least))
    }

    /// The same of sizes, ascending, each with 1 if steps may still be made on it, for so many
    /// weights, splits, merges, and windows with repetitions that are left; `None` if it is more
    /// than `most`.
    pub(crate) fn between(&mut self, axes: SmallVec<[Axis; 8]>, left: [u8; 4], most: u8, coordinates: &mut Coordinates<'_>) -> Option<u8> {
        let question = Question { axes, left };
        let known = self.memo.get(&question).copied().filter(|(distance, looked)| *distance < NEVER || *looked >= most);
        let (distance, _) = known.unwrap_or_else(|| {
            let answer = (distance(&question, most, coordinates), most);
            self.memo.insert(question, answer);
            answer
        });
        (distance <= most).then_some(distance)
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
#[derive(Clone, Copy, Debug)]
struct Group {
    wanted: Size,
    outputs: u8,
    size: Size,
    inputs: u8,
    /// Whether its only axis takes no more steps.
    closed: bool,
}

/// A search for the assignment of axes to groups that takes the fewest steps.
struct Search<'q, 'c, 's> {
    question: &'q Question,
    primaries: &'q [Size],
    coordinates: &'c mut Coordinates<'s>,
    groups: SmallVec<[Group; 4]>,
    /// Groups without an axis.
    empty: u8,
    /// Splits that axes which join a group take.
    joins: u8,
    best: u8,
}

/// More steps than any search makes.
const NEVER: u8 = 32;

/// The distance if it is at most this, else [`NEVER`].
fn distance(question: &Question, most: u8, coordinates: &mut Coordinates<'_>) -> u8 {
    let wanted: Vec<Size> = coordinates.spec.input.iter().map(|axis| axis.size).collect();
    let mut best = most + 1;
    // What primary variables the axes from each on have.
    let mut primaries = vec![Size::ONE];
    for (size, _) in question.axes.iter().rev() {
        let own: Size =
            size.exponents().filter(|(v, e)| *e > 0 && !coordinates.spec.is_coefficient(*v)).map(|(v, e)| Size::power(v, e)).collect();
        primaries.push(own * primaries[primaries.len() - 1]);
    }
    primaries.reverse();
    for groups in partitions(&wanted) {
        let groups: SmallVec<[Group; 4]> =
            groups.into_iter().map(|(wanted, outputs)| Group { wanted, outputs, size: Size::ONE, inputs: 0, closed: false }).collect();
        let merges: u8 = groups.iter().map(|group| group.outputs - 1).sum();
        if merges <= question.left[2] && groups.len() <= question.axes.len() {
            let empty = groups.len() as u8;
            let mut search = Search { question, primaries: &primaries, coordinates, groups, empty, joins: 0, best };
            search.assign(0, 0, 0, merges);
            best = search.best;
        }
    }
    if best <= most { best } else { NEVER }
}

impl Search<'_, '_, '_> {
    /// Gives the axes from `at` on to groups, or removes them; `steps` so far. Axes alike go to
    /// groups in order, from `first` on, removal last.
    fn assign(&mut self, at: usize, first: usize, removed: u8, steps: u8) {
        let [weights, splits, _, windows] = self.question.left;
        let rest = (self.question.axes.len() - at) as u8;
        let removal = if weights > 0 { removed.min(1) } else { removed };
        // Without a weight, each axis beyond those that open a group takes a step of its own.
        let least = if weights > 0 { 0 } else { rest.saturating_sub(self.empty) };
        if rest < self.empty || steps + removal + least >= self.best || weights == 0 && removed > windows {
            return;
        }
        let coming = self.primaries[at];
        let spec = self.coordinates.spec;
        let lacks = |group: &Group| {
            group.wanted.exponents().any(|(v, e)| !spec.is_coefficient(v) && group.size.exponent(v) + coming.exponent(v) < e)
        };
        if self.groups.iter().any(lacks) {
            return;
        }
        let Some(&(size, chain)) = self.question.axes.get(at) else {
            if let Some(total) = self.closed(removed, steps) {
                self.best = self.best.min(total);
            }
            return;
        };
        let next_is_alike = self.question.axes.get(at + 1) == Some(&(size, chain));
        for g in first..self.groups.len() {
            let group = self.groups[g];
            let same = |other: &Group| other.inputs == 0 && other.wanted == group.wanted && other.outputs == group.outputs;
            let alike = group.inputs == 0 && self.groups[..g].iter().any(same);
            let stuck = chain == 0 && (group.inputs > 0 || group.outputs > 1 || size != group.wanted);
            let joins = u8::from(group.inputs > 0);
            if alike || stuck || group.closed || self.joins + joins > splits {
                continue;
            }
            self.groups[g] = Group { size: group.size * size, inputs: group.inputs + 1, closed: chain == 0, ..group };
            self.joins += joins;
            self.empty -= 1 - joins;
            self.assign(at + 1, if next_is_alike { g } else { 0 }, removed, steps + joins);
            self.empty += 1 - joins;
            self.joins -= joins;
            self.groups[g] = group;
        }
        // A window or a repetition is a step on the axis; a weight takes any.
        if chain > 0 || weights > 0 {
            self.assign(at + 1, if next_is_alike { self.groups.len() } else { 0 }, removed + 1, steps);
        }
    }

    /// The steps of a complete assignment, if it is one.
    fn closed(&mut self, mut removed: u8, mut steps: u8) -> Option<u8> {
        let [weights, _, mut merges, windows] = self.question.left;
        for group in &self.groups {
            if group.inputs == 0 {
                return None;
            }
            merges = merges.checked_sub(group.outputs - 1)?;
            let rest = group.size / group.wanted;
            if rest == Size::ONE {
                continue;
            }
            // What is too much is cut off by a merge, and removed.
            if group.closed || !is_rest(rest, self.coordinates) {
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
